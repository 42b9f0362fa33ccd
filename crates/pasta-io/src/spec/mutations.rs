//! Problem files with something changed at random, by proptest: each is read or refused with a line, and none panics.
//!
//! `PROPTEST_CASES=100000 cargo test -p pasta-io --lib spec::mutations` tries more.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use pasta_opt::run::Target;

use super::{Overrides, ProblemFile, Spec};
use crate::Failure;

/// A recipe with the problem's constants, one with declared ones and a certificate, a baseline, and no method at all.
const FILES: [&str; 4] = [
    r#"seed = 1
budget = 100_000

[problem]
name = "ramp"
slope = 0.5
reach = 2.0
curvature = 0.25
start = [0.0]

[noise]
tail = "student-t"
dof = 5.0
growth = 9.0
floor = 1.0

[recipe]
name = "smooth"
target = 0.5
constants = "problem"
"#,
    r#"threads = 2
output = "run"

[problem]
name = "sine-bowl"
dimension = 2
start = [1.2, -0.5]

[noise]
tail = "two-point"
probability = 0.1
growth = 1.0
floor = 1.0

[recipe]
name = "mean-square-smooth"
target = 0.5

[recipe.constants]
ms-smoothness = 3.2
gap = 1.6
growth = 1.0
floor = 1.0

[certificate]
target = 0.5
delta = 0.05
"#,
    r#"[problem]
name = "quadratic"
spectrum = [1.0, 0.1]
start = [1.0, 1.0]

[noise]
tail = "gaussian"
growth = 0.5
floor = 1.0

[recipe]
name = "adam"
eta = 0.05
steps = 1000
batch = 4
"#,
    r#"budget = 1e4

[problem]
name = "huber"
dimension = 3
curvature = 2.0
lipschitz = 1.0
start = [1.0, 1.0, 0.0]

[noise]
tail = "lognormal"
sigma = 1.0
growth = 0.0
floor = 1.0
"#,
];

/// What breaks readers of numbers and of TOML, and what means something in these files.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "1.5",
    "-0.0",
    "1e999",
    "1e308",
    "5e-324",
    "nan",
    "inf",
    "-inf",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "0x10",
    "1_000",
    "true",
    "[]",
    "{}",
    "\"\"",
    "[0.0]",
    "[[]]",
    "[[x]]",
    "[noise]",
    "\"problem\"",
    "1979-05-27",
    "=",
    ".",
    "#",
    "\n",
    "'",
    "é",
    "auto",
    "sgd",
    "smooth-convex",
    "weakly-convex",
    "absolute",
    "flat",
    "wells",
    "gaussian",
    "variance",
    "lambda = 2",
    "smoothness = 0",
];

#[derive(Debug, Clone)]
enum Edit {
    /// A word becomes another.
    Word(Index, &'static str),
    /// A word becomes another one of the same file.
    Borrow(Index, Index),
    /// A line goes.
    Cut(Index),
    /// A line stands elsewhere too.
    Move(Index, Index),
    /// Characters go.
    Cross(Index, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), select(WORDS)).prop_map(|(at, word)| Edit::Word(at, word)),
        2 => (at(), at()).prop_map(|(at, from)| Edit::Borrow(at, from)),
        1 => at().prop_map(Edit::Cut),
        1 => (at(), at()).prop_map(|(from, to)| Edit::Move(from, to)),
        1 => (at(), 1..12usize).prop_map(|(at, n)| Edit::Cross(at, n)),
    ]
}

/// The words of a text: runs of letters and digits, and single marks.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for c in text.chars() {
        let inside = c.is_alphanumeric() || "_+-.".contains(c);
        match words.last_mut() {
            Some(word) if open && inside => word.push(c),
            _ => words.push(c.into()),
        }
        open = inside;
    }
    words
}

fn apply(text: &str, edit: &Edit) -> String {
    let mut words = words(text);
    let mut lines: Vec<&str> = text.lines().collect();
    if words.is_empty() || lines.is_empty() {
        return text.to_owned();
    }
    let (all, n) = (words.len(), lines.len());
    match edit {
        Edit::Word(at, word) => words[at.index(all)] = (*word).to_owned(),
        Edit::Borrow(at, from) => words[at.index(all)] = words[from.index(all)].clone(),
        Edit::Cut(at) => {
            lines.remove(at.index(n));
            return lines.join("\n");
        }
        Edit::Move(from, to) => {
            lines.insert(to.index(n), lines[from.index(n)]);
            return lines.join("\n");
        }
        Edit::Cross(at, count) => {
            let from = at.index(text.chars().count());
            return text.chars().take(from).chain(text.chars().skip(from + count)).collect();
        }
    }
    words.concat()
}

fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").map_or(3000, |n| n.parse().unwrap());
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn parse(name: &str, text: &str, overrides: &Overrides) -> Result<Spec, Failure> {
    ProblemFile { name: name.into(), text: text.into() }.spec(overrides)
}

#[test]
fn the_files_that_are_changed_below_are_good_ones() {
    for file in FILES {
        parse("p.toml", file, &Overrides::default()).unwrap();
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_problem_file_that_was_changed_is_read_or_refused_with_its_name(
        which in 0..FILES.len(),
        edits in prop::collection::vec(edit(), 1..4),
        target in prop_oneof![Just(None), Just(Some(0.1)), Just(Some(f64::NAN))],
    ) {
        let text = edits.iter().fold(FILES[which].to_owned(), |text, edit| apply(&text, edit));
        let overrides = Overrides { target: target.map(Target::Norm), ..Overrides::default() };
        match parse("p.toml", &text, &overrides) {
            // What is kept for a resumed run says the same.
            Ok(spec) => {
                let again = parse("p.toml", &spec.effective, &Overrides::default());
                prop_assert!(again.is_ok(), "{:?}\n{}", again, spec.effective);
            }
            Err(failure) => {
                let message = failure.to_string();
                prop_assert!(message.contains("p.toml") || target.is_some(), "{}", message);
            }
        }
    }
}
