//! The runs of all methods.

use pasta_opt::prelude::*;
use pasta_opt::walk::CertificateLog;
use rayon::prelude::*;

use super::{RUNS, START, Setting, broken};
use pasta_report::console::{Bar, Failure};

/// One run of every method, all with the same seed.
pub(super) struct Round {
    pub(super) pasta: Course,
    /// N_t.
    pub(super) batches: Vec<u64>,
    /// eta = 1/L.
    pub(super) classical: Course,
    /// eta = eps^2/(2 L b^2), for as long as its theory says.
    pub(super) bounded: Course,
    /// The same for as many samples as PASTA had.
    pub(super) patient: Course,
    /// PASTA again, but it may stop on a certificate.
    pub(super) certified: Ending,
}

/// One run, as it is shown.
pub(super) struct Course {
    pub(super) steps: u64,
    pub(super) samples: u128,
    /// The mean of |grad f|^2 over the iterates.
    pub(super) measure: f64,
    /// The step at which it diverged, if it did.
    pub(super) diverged: Option<u64>,
    /// Samples so far and the measure so far.
    pub(super) trail: Vec<(f64, f64)>,
}

/// The end of a run that may stop on a certificate.
pub(super) struct Ending {
    /// Of the run, and of its certificates and the looks before them.
    pub(super) samples: u128,
    /// If it succeeded.
    pub(super) certificate: Option<Certificate>,
    /// |grad f| at the point that was handed out, by formula.
    pub(super) gradient: f64,
}

/// All runs. Each has a seed of its own, so the threads that share them out leave no trace.
pub(super) fn play(setting: &Setting, first_seed: u64) -> Result<Vec<Round>, Failure> {
    let progress = Bar::of(RUNS);
    let rounds: Result<Vec<Round>, _> = (0..RUNS)
        .into_par_iter()
        .map(|run| {
            let round = round(setting, first_seed.wrapping_add(run));
            progress.done(1);
            round.map_err(|cause| cause.to_string())
        })
        .collect();
    drop(progress);
    rounds.map_err(broken)
}

fn round(setting: &Setting, seed: u64) -> Result<Round, Box<dyn std::error::Error>> {
    let start = |gate: &Gate| Pasta::start(gate, setting.pasta.schedule.clone(), &[START]);
    let sgd = |eta, steps: u128| -> Result<Course, Box<dyn std::error::Error>> {
        let settings = Settings { rule: Rule::Sgd { eta }, steps: u64::try_from(steps)?, batch: 1 };
        let gate = setting.gate(seed);
        let walk = Baseline::start(&gate, settings, &[START])?;
        Ok(follow(setting, Run::of(gate, walk))?.0)
    };
    let gate = setting.gate(seed);
    let walk = start(&gate)?;
    let (pasta, batches) = follow(setting, Run::of(gate, walk))?;
    let eta = setting.bounded.schedule.eta;
    let mut gate = setting.gate(seed);
    let end = start(&gate)?.certified(&gate, Setting::stop_rule())?.finish(&mut gate)?;
    Ok(Round {
        classical: sgd(Sequence::Constant(1.0 / setting.recipe.smoothness), pasta.samples)?,
        bounded: sgd(eta, setting.bounded.schedule.total_steps())?,
        patient: sgd(eta, pasta.samples)?,
        pasta,
        batches,
        certified: Ending {
            samples: end.ledger.samples(),
            certificate: end.certification.filter(CertificateLog::is_certified).and_then(|log| log.last),
            gradient: setting.squared_gradient(&end.point).sqrt(),
        },
    })
}

/// Runs to the end. The mean of |grad f|^2 over x_0 .. x_{K-1}, which is what Theorem 3 bounds, and N_t.
fn follow(setting: &Setting, mut run: Run) -> Result<(Course, Vec<u64>), Halt> {
    let (mut sum, mut mark) = (0.0, 1);
    let (mut trail, mut batches) = (Vec::new(), Vec::new());
    loop {
        let here = setting.squared_gradient(run.view().x);
        let event = run.next()?;
        let (steps, samples) = (run.view().step, run.gate().ledger().samples());
        match event {
            Event::Step(record) => {
                sum += here;
                batches.push(record.n);
                if steps == mark {
                    trail.push((samples as f64, sum / steps as f64));
                    // Even on a logarithmic axis.
                    mark = (mark + 1).max((mark as f64 * 1.02) as u64);
                }
            }
            Event::End(stop) => {
                let measure = sum / steps as f64;
                trail.push((samples as f64, measure));
                let diverged = stop.lost_at();
                return Ok((Course { steps, samples, measure, diverged, trail }, batches));
            }
            _ => {}
        }
    }
}
