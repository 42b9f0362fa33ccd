//! A recipe with the method without constants beside it: what that costs, what it saves, and how it is resumed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pasta_opt::draws::Role;
use pasta_opt::method::{self, Engine};
use pasta_opt::oracle::{Answer, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;
use pasta_opt::walk::View;
use rayon::prelude::*;

const NOISE: Noise = Noise { growth: 1.0, floor: 1.0, tail: Tail::Gaussian };
const BASIS: Basis = Basis::Growth { growth: 1.0, floor: 1.0, distance: 0.0 };
const RULE: StopRule = StopRule { target: 0.1, delta: 0.05, basis: BASIS, share: 0.5 };
const START: [f64; 1] = [1.2];

/// The constants that are true of the bowl.
const TRUE: Smooth =
    Smooth { smoothness: 3.0, gap: 1.6, growth: 1.0, floor: 1.0, variance: None, target: 0.1 };

fn gate(seed: u64) -> Gate {
    Gate::new(Noisy::new(Box::new(SineBowl { dimension: 1 }), NOISE, START.to_vec()).unwrap(), seed)
}

fn hedged(recipe: &Smooth) -> Engine {
    Engine::Hedged { schedule: recipe.plan().unwrap().schedule, rule: RULE }
}

fn finished(engine: Engine, mut gate: Gate) -> Finished {
    engine.start(&gate, &START).unwrap().finish(&mut gate).unwrap()
}

/// The recipe alone, with the whole of delta.
fn alone(recipe: &Smooth, mut gate: Gate) -> Finished {
    let walk = Pasta::start(&gate, recipe.plan().unwrap().schedule, &START).unwrap();
    walk.certified(&gate, RULE).unwrap().finish(&mut gate).unwrap()
}

fn gradient(x: &[f64]) -> f64 {
    Measure::GradientSquared.at(&SineBowl { dimension: 1 }, x).unwrap().sqrt()
}

fn saved(gate: &Gate, walk: &dyn Walk) -> Vec<u8> {
    let mut saver = Saver::default();
    gate.save(&mut saver);
    walk.save(&mut saver);
    saver.to_bytes()
}

#[test]
fn with_true_constants_it_costs_about_twice_the_recipe() {
    let logs: Vec<f64> = (1..=20u64)
        .into_par_iter()
        .map(|seed| {
            let (both, one) = (finished(hedged(&TRUE), gate(seed)), alone(&TRUE, gate(seed)));
            assert_eq!((both.stop, one.stop), (Stop::Certified, Stop::Certified));
            (both.ledger.samples() as f64 / one.ledger.samples() as f64).ln()
        })
        .collect();
    // Twice, and a certificate with half of delta is a fifth dearer.
    let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    assert!(mean < 2.0 * 1.2, "{mean}");
}

#[test]
fn where_the_constants_are_absurd_the_other_method_saves_the_run() {
    // Steps that are far too long, and a plan that is far too long.
    let bold = Smooth { smoothness: 3e-6, ..TRUE };
    let timid = Smooth { gap: 1.6e9, ..TRUE };
    for seed in 1..=5 {
        let lost = alone(&bold, gate(seed).with_budget(1_000_000));
        assert!(lost.stop != Stop::Certified, "{:?}", lost.stop);
        for recipe in [bold, timid] {
            let end = finished(hedged(&recipe), gate(seed).with_budget(10_000_000));
            assert_eq!(end.stop, Stop::Certified, "seed {seed}");
            assert!(gradient(&end.point) <= 0.1);
            let certificate = end.certification.unwrap().last.unwrap();
            assert_eq!((certificate.delta, certificate.bound.unwrap() <= 0.1), (0.05, true));
        }
    }
}

#[test]
fn no_budget_is_overdrawn_and_each_has_half_of_it() {
    for budget in [10, 1_000, 20_001, 60_000] {
        for seed in 1..=5 {
            // A target that none of these budgets reaches.
            let rule = StopRule { target: 1e-4, ..RULE };
            let schedule = Smooth { target: 1e-4, ..TRUE }.plan().unwrap().schedule.endless();
            let end = finished(Engine::Hedged { schedule, rule }, gate(seed).with_budget(budget));
            assert!(end.ledger.samples() <= budget, "{} of {budget}", end.ledger.samples());
            assert!(end.stop != Stop::Certified);
        }
    }
}

#[test]
fn one_ledger_counts_both_and_what_was_drawn_before_belongs_to_neither() {
    let mut gate = gate(3).with_budget(200_000);
    let mut walk = hedged(&TRUE).start(&gate, &START).unwrap();
    // A check, say: the halves are those of what it leaves.
    let batch = gate.batch(Role::Check, 0, 1_000);
    gate.ask(Request::sums(batch, &[&START]), &mut Answer::new(&mut [0.0])).unwrap();
    let mut steps = 0;
    let stop = loop {
        match walk.advance(&mut gate).unwrap() {
            Advance::Step(_) => steps += 1,
            Advance::Stop(stop) => break stop,
            _ => {}
        }
        assert_eq!(walk.view().step, steps);
        assert!(gate.ledger().samples() <= 200_000);
    };
    assert_eq!(stop, Stop::Certified);
    assert_eq!(gate.ledger().of(Role::Check).samples, 1_000);
    assert!(gate.ledger().certificate_samples() > 0);
    // It keeps giving the same answer, and draws nothing for it.
    let drawn = gate.ledger().samples();
    assert_eq!((walk.advance(&mut gate).unwrap(), gate.ledger().samples()), (Advance::Stop(stop), drawn));
}

#[test]
fn at_the_end_of_the_budget_the_smaller_bound_wins() {
    let mut uncertified = 0;
    for seed in 1..=20 {
        let mut gate = gate(seed).with_budget(12_000);
        let mut walk = hedged(&TRUE).start(&gate, &START).unwrap();
        let mut tried = Vec::new();
        let stop = loop {
            match walk.advance(&mut gate).unwrap() {
                Advance::Tried(certificate) => tried.push(certificate.bound),
                Advance::Stop(stop) => break stop,
                _ => {}
            }
        };
        if stop == Stop::Certified {
            continue;
        }
        uncertified += 1;
        // Both have made their last attempts: the last bound of either, and no other, is on offer.
        let View { certification, .. } = walk.view();
        let log = certification.unwrap();
        assert_eq!(log.attempts as usize, tried.len());
        let bound = log.last.and_then(|certificate| certificate.bound);
        let last: Vec<f64> = tried.iter().rev().take(2).filter_map(|bound| *bound).collect();
        assert_eq!(bound, last.iter().copied().reduce(f64::min), "seed {seed}: {tried:?}");
    }
    assert!(uncertified >= 5, "{uncertified}");
}

#[test]
fn a_run_that_is_killed_anywhere_goes_on_bit_for_bit() {
    let oracle: Arc<Noisy> =
        Arc::new(Noisy::new(Box::new(SineBowl { dimension: 1 }), NOISE, START.to_vec()).unwrap());
    for budget in [None, Some(30_000)] {
        let mut gate = Gate::over(oracle.clone(), 7).with_budget(budget);
        let mut walk = hedged(&TRUE).start(&gate, &START).unwrap();
        let mut kept = Vec::new();
        loop {
            kept.push(saved(&gate, &*walk));
            if let Advance::Stop(_) = walk.advance(&mut gate).unwrap() {
                break;
            }
        }
        let last = saved(&gate, &*walk);
        let every = kept.len() / 23 + 1;
        for bytes in kept.iter().step_by(every).chain(kept.last()) {
            let mut checkpoint = Checkpoint::from_bytes(bytes).unwrap();
            let mut gate = Gate::resume(oracle.clone(), &mut checkpoint).unwrap().with_budget(budget);
            assert_eq!(Engine::of(&checkpoint).unwrap(), hedged(&TRUE));
            let mut walk = method::resume(&gate, &mut checkpoint).unwrap();
            while !matches!(walk.advance(&mut gate).unwrap(), Advance::Stop(_)) {}
            assert!(saved(&gate, &*walk) == last, "it ended otherwise");
        }
    }
}

#[test]
fn a_run_that_ran_out_goes_on_with_a_larger_budget() {
    let oracle: Arc<Noisy> =
        Arc::new(Noisy::new(Box::new(SineBowl { dimension: 1 }), NOISE, START.to_vec()).unwrap());
    let mut gate = Gate::over(oracle.clone(), 1).with_budget(2_000);
    let mut walk = hedged(&TRUE).start(&gate, &START).unwrap();
    while !matches!(walk.advance(&mut gate).unwrap(), Advance::Stop(_)) {}
    assert!(walk.view().ended.is_some_and(|stop| stop != Stop::Certified));
    let mut checkpoint = Checkpoint::from_bytes(&saved(&gate, &*walk)).unwrap();
    let mut gate = Gate::resume(oracle, &mut checkpoint).unwrap().with_budget(10_000_000);
    let walk = method::resume(&gate, &mut checkpoint).unwrap();
    assert_eq!(walk.finish(&mut gate).unwrap().stop, Stop::Certified);
}

#[test]
fn a_rule_that_is_no_rule_is_refused() {
    let schedule = TRUE.plan().unwrap().schedule;
    let rule = StopRule { delta: 0.0, ..RULE };
    let refused = Engine::Hedged { schedule, rule }.start(&gate(1), &START).err().unwrap();
    assert!(refused.to_string().contains("delta"), "{refused}");
}
