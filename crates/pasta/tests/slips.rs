//! Which slips of an oracle are caught, and where: before a run, at length, at the certificate. docs/check.md has the table that this test measures.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracles;

use std::sync::Arc;

use oracles::{Honest, Wrong, catalogue, honest_ones};
use pasta_opt::check::{self, Effort};
use pasta_opt::prelude::*;

const SEEDS: u64 = 8;
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.md");

/// In how many of eight seeds a slip is caught before a run, in a check at length, and by a certificate.
fn caught(wrong: Wrong) -> [u64; 3] {
    let Wrong { oracle, start, point, .. } = wrong;
    let oracle: Arc<dyn Oracle> = Arc::from(oracle);
    let mut caught = [0; 3];
    for seed in 1..=SEEDS {
        let gate = || Gate::over(Arc::clone(&oracle), seed);
        caught[0] += u64::from(check::before_run(&mut gate(), &start).is_err());
        let at_length = check::oracle(&mut gate(), &start, Effort::Thorough).unwrap();
        caught[1] += u64::from(!at_length.slips.is_empty());
        let claim = Claim { target: 1.0, delta: 0.05, basis: Basis::Kurtosis(100.0), budget: None, guess: None };
        let mut gate = gate();
        let certified = Certifier::start(&mut gate, &point, claim, 0)
            .and_then(|certifier| Ok(certifier.finish(&mut gate)?));
        let is_refused = match certified {
            Ok(certificate) => matches!(certificate.verdict, Verdict::Void | Verdict::NoNoise),
            Err(_) => true,
        };
        caught[2] += u64::from(is_refused);
    }
    caught
}

#[test]
fn slips_are_caught_where_the_page_says() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut missing = Vec::new();
    for wrong in catalogue() {
        let name = wrong.name;
        let cells = caught(wrong).map(|caught| if caught == SEEDS { "all".into() } else { caught.to_string() });
        let row = format!("| {name} | {} |", cells.join(" | "));
        if !page.contains(&row) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "docs/check.md does not have\n{}", missing.join("\n"));
}

/// How often honest oracles are accused, in a quick check, at length, and by what a certificate compares; and of how many times.
fn accusations(seeds: std::ops::RangeInclusive<u64>, large: usize) -> (Vec<String>, u64) {
    let (mut accused, mut checks) = (Vec::new(), 0);
    for Honest { name, oracle, point } in honest_ones(large) {
        let oracle: Arc<dyn Oracle> = Arc::from(oracle);
        for seed in seeds.clone() {
            let gate = || Gate::over(Arc::clone(&oracle), seed);
            let mut say = |what: &str, slips: String| accused.push(format!("{name}, seed {seed}, {what}: {slips}"));
            for effort in [Effort::Quick, Effort::Thorough] {
                let found = check::oracle(&mut gate(), &point, effort).unwrap();
                if !found.slips.is_empty() {
                    say(&format!("{effort:?}"), check::sentences(&found.slips));
                }
            }
            // Small budgets: what is compared with few samples must not accuse either.
            let budget = 100 + 37 * (seed % 40);
            if let Err(halt) = check::before_run(&mut gate().with_budget(u128::from(budget)), &point) {
                say(&format!("budget {budget}"), halt.to_string());
            }
            checks += 3;
        }
    }
    (accused, checks)
}

#[test]
fn honest_oracles_are_not_accused() {
    let (accused, checks) = accusations(1..=20, 1_000);
    assert!(accused.is_empty(), "{} of {checks}:\n{}", accused.len(), accused.join("\n"));
}

#[test]
#[ignore = "evidence: some minutes"]
fn honest_oracles_are_not_accused_in_thousands_of_checks() {
    let (accused, checks) = accusations(1_000..=1_150, 10_000);
    println!("{} of {checks} checks accused an honest oracle", accused.len());
    assert!(accused.is_empty(), "{} of {checks}:\n{}", accused.len(), accused.join("\n"));
}
