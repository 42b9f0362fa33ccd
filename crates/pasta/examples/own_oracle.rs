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
    let start = [0.0, 0.0];
    let mut gate = Gate::new(Batched::new(Regression { truth: [1.0, -2.0] }), 1).with_budget(1_000_000);
    // Stop when |grad f| <= 0.1 is certified, if the kurtosis of the noise is at most 100.
    let rule = StopRule { target: 0.1, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
    let end = Auto::start(&gate, &start, Some(rule.target))?.certified(&gate, rule)?.finish(&mut gate)?;
    println!("x = {:.3?} after {} samples: {}", end.point, end.ledger.samples(), end.stop.meaning());
    if let Some(certificate) = end.certification.and_then(|log| log.last) {
        println!("{}", certificate.statement());
    }
    Ok(())
}
