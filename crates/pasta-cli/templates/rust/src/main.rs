//! A newsvendor with three products: how much to order of each, before the demand is known?

use pasta_opt::prelude::*;

/// What one unit costs, and what it sells for.
const COST: f64 = 1.0;
const PRICE: f64 = 2.0;

struct Newsvendor;

impl Sampled for Newsvendor {
    fn dim(&self) -> usize {
        3
    }

    fn identity(&self) -> String {
        "newsvendor, 3 products".into()
    }

    /// Adds the gradient of one random day, times `weight`. Draw everything that is random from `xi`.
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        for (i, (order, out)) in x.iter().zip(out).enumerate() {
            let demand = -(5.0 + i as f64) * (1.0 - xi.uniform()).ln();
            *out += weight * (COST - if *order < demand { PRICE } else { 0.0 });
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = [5.0; 3];
    let mut gate = Gate::new(Batched::new(Newsvendor), 1).with_budget(1_000_000);
    // Stop when |grad f| <= 0.05 is certified, assuming that the kurtosis of the noise is at most 100.
    let rule = StopRule { target: 0.05, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
    let end = Auto::start(&gate, &start, Some(rule.target))?.certified(&gate, rule)?.finish(&mut gate)?;
    println!("x = {:.3?} after {} samples: {}", end.point, end.ledger.samples(), end.stop.meaning());
    if let Some(certificate) = end.certification.and_then(|log| log.last) {
        println!("{}", certificate.statement());
    }
    Ok(())
}
