//! Runs over seeds, and the same runs without noise.

use std::sync::Arc;

use pasta_opt::draws::Role;
use pasta_opt::oracle::{About, Answer, Charge, Draw, Request};
use pasta_opt::prelude::*;
use pasta_opt::recipe::{self, Constant, Constants};
use rayon::prelude::*;

use super::finding::Measured;
use super::fit::Estimate;

/// An objective behind normal noise.
pub(super) fn noisy(
    objective: impl Objective + 'static,
    growth: f64,
    floor: f64,
    start: &[f64],
) -> Measured<Arc<Noisy>> {
    let noise = Noise { growth, floor, tail: Tail::Gaussian };
    Ok(Arc::new(Noisy::new(Box::new(objective), noise, start.to_vec())?))
}

/// A gate to the oracle; without a seed also without noise.
pub(super) fn gate(oracle: &Arc<impl Oracle + 'static>, seed: Option<u64>) -> Gate {
    let oracle = Arc::clone(oracle);
    match seed {
        Some(seed) => Gate::over(oracle, seed),
        None => Gate::new(Noiseless(oracle), 0),
    }
}

/// The exact gradient in place of every sample's, at the same price.
struct Noiseless<O>(Arc<O>);

impl<O: Oracle> Oracle for Noiseless<O> {
    fn about(&self) -> &About {
        self.0.about()
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let Draw::Batch(batch) = &request.draw else { return self.0.answer(request, answer) };
        self.0.answer(&Request { draw: Draw::Everything(batch.role), ..request.clone() }, answer)?;
        let n = batch.count() as f64;
        answer.gradients.iter_mut().for_each(|g| *g *= n);
        Ok(request.usual_price(self.about()))
    }
}

/// The sum of n samples at a point of the line.
pub(super) fn draw(oracle: &Arc<Noisy>, seed: u64, x: f64, n: u64) -> Measured<f64> {
    let mut gate = Gate::over(Arc::<Noisy>::clone(oracle), seed);
    let mut sum = [0.0];
    let batch = gate.batch(Role::Large, 0, n);
    gate.ask(Request::sums(batch, &[&[x]]), &mut Answer::new(&mut sum))?;
    Ok(sum[0])
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

/// Runs and counts.
pub(super) fn samples(
    mut run: Run,
    objective: &dyn Objective,
    target: f64,
    until: Until,
) -> Measured<Samples> {
    let mut gradient = vec![0.0; objective.dim()];
    let mut to_hit = f64::NAN;
    loop {
        if to_hit.is_nan() {
            objective.gradient(run.view().x, &mut gradient);
            if gradient.iter().map(|g| g * g).sum::<f64>() <= target * target {
                to_hit = run.gate().ledger().samples() as f64;
            }
        }
        let done = until == Until::Hit && !to_hit.is_nan();
        if done || matches!(run.next()?, Event::End(_)) {
            return Ok(Samples { to_hit, in_all: run.gate().ledger().samples() as f64 });
        }
    }
}

/// A recipe on a problem that meets its hypotheses.
pub(super) struct Posed {
    pub(super) oracle: Arc<Noisy>,
    pub(super) plan: Plan,
}

/// What one run of a plan came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// The promised measure; infinite if the run diverged.
    pub(super) measure: f64,
    pub(super) samples: f64,
}

impl Posed {
    /// The recipe of that name, with the constants that are proved of the problem and those that are chosen.
    pub(super) fn new(
        recipe: &str,
        objective: impl Objective + 'static,
        [growth, floor]: [f64; 2],
        start: &[f64],
        chosen: &[(Constant, f64)],
    ) -> Measured<Self> {
        let row = recipe::find(recipe).ok_or("there is no such recipe")?;
        let oracle = noisy(objective, growth, floor, start)?;
        let mut constants = row.relevant(&Constants::of(oracle.objective(), &oracle.noise(), start));
        let mu = (row.mu)(&oracle.objective().facts()).map(|mu| (Constant::Mu, mu));
        mu.iter().chain(chosen).for_each(|&(constant, value)| constants.set(constant, value));
        Ok(Self { oracle, plan: row.plan(&constants)? })
    }

    pub(super) fn start(&self, seed: Option<u64>) -> Measured<Run> {
        let gate = gate(&self.oracle, seed);
        let walk = Pasta::start(&gate, self.plan.schedule.clone(), self.oracle.start())?;
        Ok(Run::of(gate, walk))
    }

    /// Samples of a whole run; without a seed also without noise.
    pub(super) fn samples(&self, target: f64, seed: Option<u64>) -> Measured<Samples> {
        samples(self.start(seed)?, self.oracle.objective(), target, Until::End)
    }

    /// What every seed's run came to.
    pub(super) fn runs(&self, seeds: &[u64]) -> Measured<Vec<Kept>> {
        over_seeds(seeds, |seed| self.run(seed))
    }

    /// Runs the plan and takes the measure that it promises: where the promised point is random, the mean over all
    /// the points that it is drawn from.
    pub(super) fn run(&self, seed: u64) -> Measured<Kept> {
        let Plan { guarantee, schedule, .. } = &self.plan;
        let at = |x: &[f64]| {
            let measure = guarantee.measure.at(self.oracle.objective(), x);
            measure.ok_or("the objective has no formula for what is promised")
        };
        let mut run = self.start(Some(seed))?;
        let (mut total, mut points) = (0.0, 0.0);
        let stop = loop {
            let view = run.view();
            let candidate = match schedule.output {
                Output::Uniform => true,
                Output::RandomAnchor => view.t == 0,
                Output::Last | Output::Average => false,
            };
            let here = if candidate { at(view.x)? } else { 0.0 };
            match run.next()? {
                Event::Step(_) if candidate => {
                    total += here;
                    points += 1.0;
                }
                Event::End(stop) => break stop,
                _ => {}
            }
        };
        let measure = match (stop, schedule.output) {
            (stop, _) if stop.is_lost() => f64::INFINITY,
            (_, Output::Uniform | Output::RandomAnchor) => total / points,
            (_, Output::Last | Output::Average) => at(run.view().point)?,
        };
        Ok(Kept { measure, samples: run.gate().ledger().samples() as f64 })
    }
}

/// One number of many runs.
pub(super) fn estimate(runs: &[Kept], what: fn(&Kept) -> f64) -> Estimate {
    Estimate::of(&runs.iter().map(what).collect::<Vec<_>>())
}
