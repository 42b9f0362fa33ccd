//! An oracle of your own: least squares on a stream, to a certified gradient.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use pasta_opt::prelude::*;

/// E (<a, x> - y)^2/2 with a ~ N(0, I) and y = <a, truth> + 0.1 z: the minimiser is `truth`.
struct Regression {
    truth: [f64; 2],
}

impl Sampled for Regression {
    fn dim(&self) -> usize {
        2
    }
    fn identity(&self) -> String {
        format!("least squares on a stream around {:?}", self.truth)
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let a = [xi.normal(), xi.normal()];
        let residual = a[0] * (x[0] - self.truth[0]) + a[1] * (x[1] - self.truth[1]) - 0.1 * xi.normal();
        out[0] += weight * residual * a[0];
        out[1] += weight * residual * a[1];
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // grad f = x - truth, so L = 1. In d dimensions the variance is (d + 1) |x - truth|^2 + 0.01 d. If the minimiser is within
    // R of the start, |x - truth|^2 <= 2 |x - x0|^2 + 2 R^2: B^2 = 2 (d + 1) and b^2 = 2 (d + 1) R^2 + 0.01 d.
    let (d, radius): (f64, f64) = (2.0, 3.0);
    let growth = (2.0 * (d + 1.0)).sqrt();
    let floor = (2.0 * (d + 1.0) * radius * radius + 0.01 * d).sqrt();
    let gap = radius * radius / 2.0;
    let recipe = Smooth { smoothness: 1.0, gap, growth, floor, variance: None, target: 0.1 };
    let plan = recipe.plan()?;
    println!("worst case: {:.1e} samples for {}", plan.cost.samples, plan.guarantee.point.description());

    let mut gate = Gate::new(Batched::new(Regression { truth: [1.0, -2.0] }), 1).with_budget(10_000_000);
    let basis = Basis::Growth { growth, floor, distance: 0.0 };
    let rule = StopRule { target: 0.1, delta: 0.05, basis, share: 0.5 };
    let run = Pasta::start(&gate, plan.schedule, &[0.0, 0.0])?.certified(&gate, rule)?;
    let end = run.finish(&mut gate)?;
    println!("x = {:?} after {} samples: {}", end.point, end.ledger.samples(), end.stop.meaning());
    if let Some(certificate) = end.certification.and_then(|log| log.last) {
        println!("{}", certificate.statement());
    }
    Ok(())
}
