//! The peers, step by step, against the package that people use. `tests/peers/reference.py` made the values.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use pasta_opt::method::{Values, find};
use pasta_opt::prelude::*;
use pasta_opt::problems::SineBowl;
use serde_json::Value;

/// (x_0^2 + 10 x_1^2)/2 + sin x_0, without noise; its loss is shifted to be positive.
struct Bent;

impl Sampled for Bent {
    fn dim(&self) -> usize {
        2
    }
    fn identity(&self) -> String {
        "a bent bowl".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        _: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        out[0] += weight * (x[0] + x[0].cos());
        out[1] += weight * 10.0 * x[1];
        Ok(())
    }
    fn loss(&self, x: &[f64], _: &mut Stream) -> Result<f64, OracleError> {
        Ok(0.5 * (x[0] * x[0] + 10.0 * x[1] * x[1]) + x[0].sin() + 1.0)
    }
    fn gives_losses(&self) -> bool {
        true
    }
}

const START: [f64; 2] = [1.0, -2.0];

fn run(name: &str, values: &Values, steps: u64) -> Finished {
    let mut gate = Gate::new(Batched::new(Bent), 1);
    let engine = find(name).unwrap().engine(values, steps, 1).unwrap();
    engine.start(&gate, &START).unwrap().finish(&mut gate).unwrap()
}

#[test]
fn every_peer_takes_the_steps_of_the_published_implementation() {
    let reference: Value = serde_json::from_str(include_str!("../../../tests/data/peers.json")).unwrap();
    let settings = [
        ("momentum", Values::from([("eta", 0.05)])),
        ("adam", Values::from([("eta", 0.1)])),
        ("dog", Values::default()),
        ("prodigy", Values::default()),
        ("schedule-free-sgd", Values::from([("eta", 0.1)])),
        ("schedule-free-adamw", Values::from([("eta", 0.05)])),
    ];
    for (name, values) in settings {
        let points = reference[name].as_array().unwrap();
        assert_eq!(points.len(), 20);
        for (k, point) in points.iter().enumerate() {
            let end = run(name, &values, k as u64 + 1);
            let ours = if name == "dog" { end.last } else { end.point };
            for (ours, theirs) in ours.iter().zip(point.as_array().unwrap()) {
                let theirs = theirs.as_f64().unwrap();
                // The same arithmetic in another order: some units in the last place a step, of numbers of order 1.
                assert!((ours - theirs).abs() <= 1e-11, "{name}, step {}: {ours} and {theirs}", k + 1);
            }
        }
    }
}

#[test]
fn averages_have_weights_that_grow_like_the_eighth_power() {
    // (t + 8)!/t! grows like t^8: the weights of the recursion, written out.
    let weights: Vec<f64> = (1..=30).map(|t| (0..8).map(|i| f64::from(t + i)).product()).collect();
    let total: f64 = weights.iter().sum();
    // Averaged AdaGrad-Norm takes the steps of AdaGrad-Norm.
    for (name, steps, values) in [
        ("dog", "dog", Values::from([("radius", 0.1)])),
        ("adagrad-norm-averaged", "adagrad-norm", Values::from([("eta", 0.5)])),
    ] {
        let iterates: Vec<Vec<f64>> = (1..=30).map(|k| run(steps, &values, k).last).collect();
        let end = run(name, &values, 30);
        assert_eq!(end.last, iterates[29], "{name}");
        for i in 0..2 {
            let mean: f64 = iterates.iter().zip(&weights).map(|(x, w)| w * x[i]).sum::<f64>() / total;
            assert!((mean - end.point[i]).abs() < 1e-12, "{name}: {mean} {}", end.point[i]);
        }
    }
}

#[test]
fn polyak_steps_need_losses_and_follow_their_formula() {
    let one = run("sps", &Values::from([("most", 100.0)]), 1);
    let (g, loss) = ([1.0 + 1f64.cos(), -20.0], 0.5 * 41.0 + 1f64.sin() + 1.0);
    let eta = loss / (0.5 * (g[0] * g[0] + g[1] * g[1]));
    for i in 0..2 {
        assert!((one.point[i] - (START[i] - eta * g[i])).abs() < 1e-14);
    }
    let capped = run("sps", &Values::from([("most", 1e-3)]), 1);
    assert!((capped.point[1] - (-2.0 + 0.02)).abs() < 1e-14);
    let noise = Noise { growth: 0.0, floor: 1.0, tail: Tail::Gaussian };
    let silent = Noisy::new(Box::new(SineBowl { dimension: 1 }), noise, vec![1.0]).unwrap();
    let engine = find("sps").unwrap().engine(&Values::default(), 1, 1).unwrap();
    let refused = engine.start(&Gate::new(silent, 1), &[1.0]).err().unwrap();
    assert_eq!(refused.to_string(), "the method needs losses, and the oracle gives none");
}
