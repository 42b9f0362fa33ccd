//! Which slips of an oracle are caught, and where: before a run, at length, at the certificate. docs/check.md has the table that this test measures.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracles;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use oracles::{Honest, START, TRUTH, Wrong, catalogue, honest_ones, regression};
use pasta_opt::check::{self, Effort};
use pasta_opt::checkpoint::{Checkpoint, Saver};
use pasta_opt::draws::Role;
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
        let claim =
            Claim { target: 1.0, delta: 0.05, basis: Basis::Kurtosis(100.0), budget: None, guess: None };
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
        let cells =
            caught(wrong).map(|caught| if caught == SEEDS { "all".into() } else { caught.to_string() });
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
            let mut say =
                |what: &str, slips: String| accused.push(format!("{name}, seed {seed}, {what}: {slips}"));
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
            let claim =
                Claim { target: 1.0, delta: 0.05, basis: Basis::Variance(1.0), budget: None, guess: None };
            let mut gate = gate();
            let mut certifier = Certifier::start(&mut gate, &point, claim, seed).unwrap();
            if let Ok(Some(certificate)) = certifier.advance(&mut gate)
                && certificate.verdict == Verdict::Void
            {
                say("certificate", certificate.statement());
            }
            checks += 4;
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
    let (accused, checks) = accusations(2_000..=2_125, 10_000);
    println!("{} of {checks} checks accused an honest oracle", accused.len());
    assert!(accused.is_empty(), "{} of {checks}:\n{}", accused.len(), accused.join("\n"));
}

/// The oracle of the catalogue with this name.
fn named(name: &str) -> Arc<dyn Oracle> {
    Arc::from(catalogue().into_iter().find(|wrong| wrong.name == name).unwrap().oracle)
}

/// A regression in four coordinates whose gradients belong to its losses.
fn right() -> Arc<dyn Oracle> {
    Arc::new(Batched::new(regression()))
}

fn rule(basis: Basis) -> StopRule {
    StopRule { target: 0.5, delta: 0.05, basis, share: 0.5 }
}

fn sgd(gate: &Gate) -> Baseline {
    let settings = Settings { rule: Rule::Sgd { eta: Sequence::Constant(0.03) }, steps: 100_000, batch: 4 };
    Baseline::start(gate, settings, &START).unwrap()
}

#[test]
fn a_certificate_compares_losses_with_gradients_at_its_point_and_says_so() {
    let claim = Claim { target: 1.0, delta: 0.05, basis: Basis::Kurtosis(100.0), budget: None, guess: None };
    let certify = |oracle: Arc<dyn Oracle>, claim| {
        let mut gate = Gate::over(oracle, 1);
        let certificate = Certifier::start(&mut gate, &TRUTH, claim, 3).unwrap().finish(&mut gate).unwrap();
        assert_eq!(certificate.samples, gate.ledger().samples());
        (certificate, gate.ledger().of(Role::Slopes).samples)
    };
    let (certificate, slopes) = certify(right(), claim);
    assert_eq!((certificate.verdict, slopes), (Verdict::Certified, 16));
    let said = certificate.statement();
    assert!(said.ends_with(" Losses and gradients of 16 further samples agree at x."), "{said}");
    // The budget of a claim holds, and a small one is for the bound.
    for budget in [100, 320, 1_000] {
        let (certificate, slopes) = certify(right(), Claim { budget: Some(budget), ..claim });
        assert!(certificate.samples <= budget && (slopes > 0) == (budget > 256 + 320), "{budget}: {slopes}");
    }
    let (certificate, slopes) = certify(named("a forgotten coordinate"), claim);
    assert_eq!((certificate.verdict, certificate.bound), (Verdict::Void, None));
    assert_eq!(certificate.agreement.unwrap().contradiction.unwrap().coordinate, Some(2));
    let said = certificate.statement();
    assert!(
        said.starts_with(
            "VOID: nothing is claimed: the losses of samples at x do not change along coordinate 2"
        ),
        "{said}"
    );
    assert_eq!(slopes, 16 + 24);
    // Without losses, or where gradients are declared not to be those of the samples' losses, nothing is compared.
    let (certificate, slopes) = certify(named("a forgotten coordinate, no losses"), claim);
    assert_eq!((certificate.agreement, slopes), (None, 0));
    let undeclared = Arc::new(Batched::new(oracles::Made { pathwise: false, ..regression() }));
    assert_eq!(certify(undeclared, claim).1, 0);
}

#[test]
fn a_run_ends_void_where_its_certificate_is_contradicted() {
    for seed in 1..=8 {
        let mut gate = Gate::over(named("a forgotten coordinate"), seed).without_check();
        let end =
            sgd(&gate).certified(&gate, rule(Basis::Kurtosis(100.0))).unwrap().finish(&mut gate).unwrap();
        assert_eq!(end.stop, Stop::Void, "{seed}");
        let last = end.certification.unwrap().last.unwrap();
        assert!(last.agreement.unwrap().contradiction.is_some(), "{seed}");
    }
    // Checked first, none of them begins.
    for seed in 1..=8 {
        let mut gate = Gate::over(named("a forgotten coordinate"), seed);
        let walk = sgd(&gate).certified(&gate, rule(Basis::Kurtosis(100.0))).unwrap();
        let refused = walk.finish(&mut gate).unwrap_err().to_string();
        assert!(refused.contains("coordinate 2 (counted from 0) of the gradient is exactly 0"), "{refused}");
    }
}

#[test]
fn samples_that_are_all_equal_certify_nothing_unless_no_noise_is_declared() {
    let oracle = named("a fixed seed in every sample");
    let findings = check::oracle(&mut Gate::over(oracle.clone(), 1), &START, Effort::Quick).unwrap();
    assert!(findings.note().unwrap().starts_with("no noise at all was seen"));
    let run = |basis| {
        let mut gate = Gate::over(oracle.clone(), 1);
        let end = sgd(&gate).certified(&gate, rule(basis)).unwrap().finish(&mut gate).unwrap();
        (end.stop, end.certification.unwrap().last.unwrap())
    };
    let (stop, last) = run(Basis::Kurtosis(100.0));
    assert_eq!((stop, last.verdict, last.bound), (Stop::Void, Verdict::NoNoise, None));
    assert!(last.statement().starts_with("no noise was seen"), "{}", last.statement());
    let (stop, last) = run(Basis::Variance(0.0));
    assert_eq!((stop, last.verdict), (Stop::Certified, Verdict::Certified));
}

#[test]
fn a_run_that_is_killed_while_it_compares_has_the_bits_of_one_that_is_not() {
    let rule = rule(Basis::Kurtosis(20.0));
    for oracle in [right(), named("a forgotten coordinate")] {
        let start = || {
            let gate = Gate::over(oracle.clone(), 2).without_check();
            let walk = sgd(&gate).certified(&gate, rule).unwrap();
            (gate, walk)
        };
        let (mut gate, walk) = start();
        let whole = walk.finish(&mut gate).unwrap();
        let (mut gate, mut walk) = start();
        let end = loop {
            match walk.advance(&mut gate).unwrap() {
                Advance::Stop(_) => break walk.finish(&mut gate).unwrap(),
                Advance::Step(_) => continue,
                _ => {}
            }
            let mut saver = Saver::default();
            gate.save(&mut saver);
            walk.save(&mut saver);
            let mut checkpoint = Checkpoint::from_bytes(&saver.to_bytes()).unwrap();
            gate = Gate::resume(oracle.clone(), &mut checkpoint).unwrap().without_check();
            let bare = Baseline::resume(&gate, &mut checkpoint).unwrap();
            walk = bare.certified_again(&gate, rule, &mut checkpoint).unwrap();
        };
        assert_eq!(end, whole);
        assert!(end.ledger.of(Role::Slopes).samples >= 16);
    }
    // An interrupt in the middle of the comparison leaves no trace of it, and it is made again.
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, asked) = (Arc::clone(&stop), AtomicU64::new(0));
    let interrupting = oracles::Made::new(
        4,
        move |x, xi| {
            if asked.fetch_add(1, Ordering::Relaxed) == 50 {
                flag.store(true, Ordering::Relaxed);
            }
            oracles::gradient(x, xi)
        },
        oracles::loss,
    );
    let mut gate = Gate::new(Batched::new(interrupting), 1).with_stop(Arc::clone(&stop));
    let claim = Claim { target: 1.0, delta: 0.05, basis: Basis::Variance(50.0), budget: None, guess: None };
    let mut certifier = Certifier::start(&mut gate, &TRUTH, claim, 0).unwrap();
    assert!(matches!(certifier.advance(&mut gate), Err(Halt::Interrupted)));
    assert_eq!(gate.ledger().samples(), 0);
    stop.store(false, Ordering::Relaxed);
    assert!(certifier.advance(&mut gate).unwrap().is_none());
    assert_eq!(gate.ledger().samples(), 16);
}
