//! An oracle of your own: the mean of an exponential law, as a least-squares problem.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use pasta_opt::prelude::*;

struct Mean; // E (x - xi)^2/2, xi exponential with mean 1: the minimiser is 1

impl Sampled for Mean {
    fn dim(&self) -> usize {
        1
    }
    fn identity(&self) -> String {
        "mean of an exponential law".into()
    }
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        out[0] += weight * (x[0] + xi.open_uniform().ln());
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recipe = SmoothConvex {
        smoothness: 1.0,
        distance: 1.0,
        growth: 0.0,
        floor: 1.0,
        variance: None,
        target: 0.01,
    };
    let plan = recipe.plan()?;
    println!("at most {} samples for {}", plan.cost.samples, plan.guarantee.point.description());
    let mut gate = Gate::new(Batched::new(Mean), 1);
    let end = Pasta::start(&gate, plan.schedule, &[0.0])?.finish(&mut gate)?;
    println!("x = {} after {} samples", end.point[0], end.ledger.samples());
    Ok(())
}
