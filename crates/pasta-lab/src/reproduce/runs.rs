//! Runs over seeds, and the same runs without noise.

use pasta_opt::oracle::Batch;
use pasta_opt::prelude::*;
use rayon::prelude::*;

use super::finding::Measured;

/// Gaussian noise of variance B^2 |x - x0|^2 + b^2 around an objective.
pub(super) fn noisy(
    objective: impl Objective + 'static,
    growth: f64,
    floor: f64,
    start: &[f64],
) -> Measured<Noisy> {
    let noise = Noise { growth, floor, tail: Tail::Gaussian };
    Ok(Noisy::new(Box::new(objective), noise, start.to_vec())?)
}

/// An oracle that answers with the exact gradient and still counts every sample it is asked for.
pub(super) struct Noiseless<'o> {
    pub(super) objective: &'o dyn Objective,
    /// The noisy one that it stands for.
    pub(super) oracle: &'o dyn Oracle,
}

impl Oracle for Noiseless<'_> {
    fn dim(&self) -> usize {
        self.oracle.dim()
    }

    fn sum(&self, x: &[f64], batch: &Batch, out: &mut [f64]) -> Result<(), OracleError> {
        self.objective.gradient(x, out);
        out.iter_mut().for_each(|g| *g *= batch.n as f64);
        Ok(())
    }

    fn sum_difference(
        &self,
        x: &[f64],
        y: &[f64],
        batch: &Batch,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let mut at_y = vec![0.0; y.len()];
        self.objective.gradient(x, out);
        self.objective.gradient(y, &mut at_y);
        out.iter_mut().zip(&at_y).for_each(|(g, y)| *g = batch.n as f64 * (*g - y));
        Ok(())
    }

    fn reach(&self, active: usize) -> usize {
        self.oracle.reach(active)
    }
}

/// The results of all seeds in their order, whichever thread had them.
pub(super) fn over_seeds<T: Send>(
    seeds: &[u64],
    run: impl Fn(u64) -> Measured<T> + Sync,
) -> Measured<Vec<T>> {
    seeds.par_iter().map(|&seed| run(seed)).collect()
}

/// Samples of a run: until it first stood on a point with |grad f| <= eps, and in all. NaN for never.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samples {
    pub(super) to_hit: f64,
    pub(super) in_all: f64,
}

/// When a run goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    Hit,
    End,
}

/// Walks and counts.
pub(super) fn samples(
    mut walk: impl Walk,
    objective: &dyn Objective,
    target: f64,
    until: Until,
) -> Measured<Samples> {
    let mut gradient = vec![0.0; objective.dim()];
    let mut to_hit = f64::NAN;
    loop {
        if to_hit.is_nan() {
            objective.gradient(&walk.state().x, &mut gradient);
            if gradient.iter().map(|g| g * g).sum::<f64>() <= target * target {
                to_hit = walk.state().ledger.samples as f64;
            }
        }
        let done = until == Until::Hit && !to_hit.is_nan();
        if done || matches!(walk.advance()?, Advance::Stop(_)) {
            return Ok(Samples { to_hit, in_all: walk.state().ledger.samples as f64 });
        }
    }
}

/// What one run of a plan came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// The promised measure; infinite if the run diverged.
    pub(super) measure: f64,
    pub(super) samples: f64,
}

/// Runs a plan and takes the measure that it promises: where the promised point is random, the mean over all
/// the points that it is drawn from.
pub(super) fn promise(oracle: &Noisy, plan: &Plan, seed: u64) -> Measured<Kept> {
    let measure = plan.guarantee.measure;
    let at = |x: &[f64]| {
        measure.at(oracle.objective(), x).ok_or("the objective has no formula for what is promised")
    };
    let mut walk = Pasta::start(oracle, plan.schedule.clone(), oracle.start(), seed)?;
    let (mut total, mut points) = (0.0, 0.0);
    let stop = loop {
        let state = walk.state();
        let candidate = match plan.schedule.output {
            Output::Uniform => true,
            Output::RandomAnchor => state.t == 0,
            Output::Last | Output::Average => false,
        };
        let here = if candidate { at(&state.x)? } else { 0.0 };
        match walk.advance()? {
            Advance::Step(_) if candidate => {
                total += here;
                points += 1.0;
            }
            Advance::Step(_) | Advance::Check => {}
            Advance::Stop(stop) => break stop,
        }
    };
    let state = walk.state();
    let measure = match (stop, plan.schedule.output) {
        (Stop::Diverged(_), _) => f64::INFINITY,
        (_, Output::Uniform | Output::RandomAnchor) => total / points,
        (_, Output::Last | Output::Average) => at(state.output())?,
    };
    Ok(Kept { measure, samples: state.ledger.samples as f64 })
}
