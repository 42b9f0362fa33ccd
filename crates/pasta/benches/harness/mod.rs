//! What the benchmarks share: rounds that take turns, and a table of ratios with their goals.

#![expect(clippy::print_stdout, reason = "the table is what the programs are for")]

use std::hint::black_box;
use std::ops::{Bound, RangeBounds};
use std::time::Instant;

use pasta_opt::prelude::*;

/// Runs the benchmarks whose names contain the word on the command line.
pub(crate) fn main(benchmarks: &[(&str, fn(&str))]) {
    // Cargo passes `--bench`; anything that is not an option is a name to look for.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    print_line(["name", "what is compared", "value", "goal", ""]);
    for (name, run) in benchmarks.iter().filter(|(name, _)| name.contains(&wanted)) {
        run(name);
    }
}

/// So many steps of a walk that has no end in sight.
pub(crate) fn advance((gate, walk): &mut (Gate, impl Walk), steps: u32) {
    for _ in 0..steps {
        let step = walk.advance(gate).expect("these oracles cannot fail");
        assert!(matches!(step, Advance::Step(_)), "a benchmark must not run into the end of its walk");
    }
}

/// The seconds that `a` and `b` take, each in the fastest of its rounds. They take turns.
pub(crate) fn fastest(rounds: u32, mut a: impl FnMut(), mut b: impl FnMut()) -> [f64; 2] {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..rounds {
        best[0] = best[0].min(seconds(&mut a));
        best[1] = best[1].min(seconds(&mut b));
    }
    best
}

/// Makes the compiler believe that a result is used.
pub(crate) fn sink<T>(result: T) {
    black_box(result);
}

fn seconds(work: &mut impl FnMut()) -> f64 {
    let clock = Instant::now();
    work();
    clock.elapsed().as_secs_f64()
}

/// A row of the table: a value and where it should be, `..` if it is only there to be read.
pub(crate) fn print_row(name: &str, what: &str, value: f64, goal: impl RangeBounds<f64>) {
    let wanted = match (goal.start_bound(), goal.end_bound()) {
        (Bound::Included(least), _) => format!(">= {least}"),
        (_, Bound::Included(most)) => format!("<= {most}"),
        _ => String::new(),
    };
    let verdict = match (wanted.is_empty(), goal.contains(&value)) {
        (true, _) => "",
        (_, true) => "met",
        (_, false) => "missed",
    };
    print_line([name, what, &format!("{value:.2}"), &wanted, verdict]);
}

fn print_line([name, what, value, goal, verdict]: [&str; 5]) {
    println!("{name:<12} {what:<64} {value:>7}  {goal:<6}  {verdict}");
}
