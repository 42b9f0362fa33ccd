//! SGD with every step size at once: what it certifies, what it costs, and how it is resumed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use pasta_opt::method::{self, Engine};
use pasta_opt::prelude::*;
use pasta_opt::problems::{Quadratic, SineBowl};
use pasta_opt::universal::Bound;
use rayon::prelude::*;

const START: [f64; 1] = [1.2];
const NOISE: Noise = Noise { growth: 2.0, floor: 0.5, tail: Tail::Gaussian };
const RULE: StopRule = StopRule { target: 0.5, delta: 0.05, basis: Basis::Kurtosis(3.0), share: 0.5 };

fn gate(seed: u64) -> Gate {
    Gate::new(Noisy::new(Box::new(SineBowl { dimension: 1 }), NOISE, START.to_vec()).unwrap(), seed)
}

fn engine(rule: StopRule) -> Engine {
    Engine::Universal { rule: Some(rule) }
}

fn finished(rule: StopRule, mut gate: Gate) -> Finished {
    engine(rule).start(&gate, &START).unwrap().finish(&mut gate).unwrap()
}

fn gradient(x: &[f64]) -> f64 {
    Measure::GradientSquared.at(&SineBowl { dimension: 1 }, x).unwrap().sqrt()
}

#[test]
fn it_arrives_without_constants_and_what_it_certifies_is_true() {
    let declared = Basis::Growth { growth: 2.0, floor: 0.5, distance: 0.0 };
    let ends: Vec<Finished> = (1..=40u64)
        .into_par_iter()
        .map(|seed| {
            let basis = if seed % 2 == 0 { declared } else { RULE.basis };
            finished(StopRule { basis, ..RULE }, gate(seed))
        })
        .collect();
    for end in &ends {
        assert_eq!(end.stop, Stop::Certified);
        let certificate = end.certification.as_ref().unwrap().last.unwrap();
        assert_eq!((certificate.delta, certificate.bound.unwrap() <= 0.5), (0.05, true));
    }
    // With error .05 six false ones of forty have probability .01 at most; the bounds are far from sharp, and none is expected.
    let wrong = ends.iter().filter(|end| gradient(&end.point) > 0.5).count();
    assert!(wrong < 6, "{wrong}");
    // The theorem's bound, with the constants that are true of the bowl and any first step: here the curvature of the start, about.
    let bound =
        Bound { smoothness: 3.0, gap: 1.6, growth: 2.0, floor: 0.5, target: 0.5, delta: 0.05, eta: 0.5 };
    let mean = ends.iter().map(|end| end.ledger.samples() as f64).sum::<f64>() / 40.0;
    assert!(mean < bound.samples().unwrap(), "{mean}");
}

#[test]
fn no_step_of_the_start_is_too_wrong_for_it() {
    // The same bowl in units a thousand times smaller and larger: the first step is measured in them.
    for unit in [1e-3, 1e3] {
        let noise = Noise { growth: unit, floor: 0.5 * unit, tail: Tail::Gaussian };
        let start = [1.0];
        let quadratic = Quadratic { spectrum: vec![unit] };
        let oracle = Noisy::new(Box::new(quadratic), noise, start.to_vec()).unwrap();
        let mut gate = Gate::new(oracle, 1).with_budget(3_000_000);
        let rule = StopRule { target: 0.3 * unit, ..RULE };
        let end = engine(rule).start(&gate, &start).unwrap().finish(&mut gate).unwrap();
        assert_eq!(end.stop, Stop::Certified, "in units of {unit}");
        assert!(end.point[0].abs() <= 0.3);
    }
}

#[test]
fn no_budget_is_overdrawn_and_the_smallest_bound_is_handed_out() {
    for budget in [1, 10, 127, 128, 1_000, 30_001, 200_000] {
        let rule = StopRule { target: 0.05, ..RULE };
        let mut gate = gate(budget as u64).with_budget(budget);
        let mut walk = engine(rule).start(&gate, &START).unwrap();
        let mut bounds = Vec::new();
        let stop = loop {
            match walk.advance(&mut gate) {
                Ok(Advance::Tried(certificate)) => bounds.extend(certificate.bound),
                Ok(Advance::Stop(stop)) => break stop,
                Ok(_) => {}
                Err(halt) => break halt.stop().unwrap(),
            }
            assert!(gate.ledger().samples() <= budget);
        };
        assert_eq!(stop, Stop::OutOfBudget, "{budget}");
        let log = walk.view().certification.cloned().unwrap();
        let best = bounds.iter().copied().reduce(f64::min);
        assert_eq!(log.last.and_then(|certificate| certificate.bound), best, "{budget}");
        assert!(best.is_some() || walk.view().point == START);
    }
}

fn saved(gate: &Gate, walk: &dyn Walk) -> Vec<u8> {
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    saver.to_bytes()
}

#[test]
fn a_run_that_is_taken_up_again_ends_with_the_same_bits() {
    let straight = finished(RULE, gate(7));
    let mut gate = gate(7);
    let mut walk = engine(RULE).start(&gate, &START).unwrap();
    let mut moves = 0u64;
    let stop = loop {
        let advance = walk.advance(&mut gate).unwrap();
        moves += 1;
        if let Advance::Stop(stop) = advance {
            break stop;
        }
        // Also where an attempt is planned or under way.
        if moves.is_power_of_two() || matches!(advance, Advance::Planned) || moves.is_multiple_of(9973) {
            let mut checkpoint = Checkpoint::from_bytes(&saved(&gate, &*walk)).unwrap();
            let oracle = Noisy::new(Box::new(SineBowl { dimension: 1 }), NOISE, START.to_vec()).unwrap();
            gate = Gate::resume(std::sync::Arc::new(oracle), &mut checkpoint).unwrap();
            assert_eq!(Engine::of(&checkpoint).unwrap(), engine(RULE));
            walk = method::resume(&gate, &mut checkpoint).unwrap();
        }
    };
    assert_eq!((stop, gate.ledger()), (straight.stop, &straight.ledger));
    assert_eq!(walk.view().point[0].to_bits(), straight.point[0].to_bits());
    assert_eq!(walk.view().step, straight.steps);
}

#[test]
fn lanes_that_diverge_leave_the_run_to_the_others() {
    // Steps above 2/L diverge at once.
    let quadratic = Quadratic { spectrum: vec![1.0, 100.0] };
    let noise = Noise { growth: 0.0, floor: 0.1, tail: Tail::Gaussian };
    let oracle = Noisy::new(Box::new(quadratic), noise, vec![1.0, 1.0]).unwrap();
    let mut gate = Gate::new(oracle, 3).with_budget(2_000_000);
    let rule = StopRule { target: 0.1, ..RULE };
    let end = engine(rule).start(&gate, &[1.0, 1.0]).unwrap().finish(&mut gate).unwrap();
    assert_eq!(end.stop, Stop::Certified);
}

#[test]
fn without_a_certificate_it_does_not_start() {
    let refused = Engine::Universal { rule: None }.start(&gate(1), &START).err().unwrap();
    assert!(refused.to_string().contains("give a target"), "{refused}");
    let rule = StopRule { basis: Basis::Approximate, ..RULE };
    assert!(engine(rule).start(&gate(1), &START).is_err());
}
