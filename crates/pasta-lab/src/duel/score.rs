//! What came of a duel, in numbers: all that is said anywhere is said from here.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::contender::{Contender, Setting};
use super::instance::Instance;
use super::run::{Bout, End, Limits};

/// Everything about a duel. (Not to be made a `Value`, which has no place for counts beyond 2^64.)
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    pub(super) instance: Instance,
    pub(super) seed: u64,
    pub(super) seeds: usize,
    pub(super) limits: Limits,
    pub(super) methods: Vec<Outcome>,
    /// Where the page is, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) page: Option<PathBuf>,
}

/// What a method came to.
#[derive(Debug, Default, Serialize)]
pub(super) struct Outcome {
    pub(super) method: &'static str,
    #[serde(serialize_with = "values")]
    pub(super) settings: Vec<Setting>,
    /// The steps that its theorem plans, for a recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) planned_steps: Option<u128>,
    pub(super) verdict: Verdict,
    /// Why it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    pub(super) reached: usize,
    pub(super) diverged: usize,
    /// How far a revealing sample throws a coordinate, in units of lambda, where that is known.
    #[serde(skip)]
    pub(super) leap: Option<f64>,
    #[serde(flatten)]
    pub(super) score: Option<Score>,
    pub(super) runs: Vec<Bout>,
}

/// The runs of a method in a few numbers. All runs count, with what they had spent where they ended.
#[derive(Debug, Serialize)]
pub(super) struct Score {
    pub(super) samples: Quartiles,
    pub(super) evaluations: Quartiles,
    pub(super) steps: Quartiles,
    /// prog_1 of the last point.
    pub(super) progress: Quartiles,
    /// Median samples over (T - 1)/(2p).
    pub(super) ratio_to_sharp: f64,
    /// Median samples over the closed form.
    pub(super) ratio_to_closed: f64,
    pub(super) zero_respecting: bool,
    pub(super) zero_respecting_verdict: &'static str,
    /// The fewest samples with which a run reached the target; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fastest: Option<f64>,
    /// Whether that is more than the safe number of samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit_kept: Option<bool>,
}

/// What the runs of a method say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// Every run got to |grad F| <= eps.
    Reached,
    /// Some did.
    ReachedInPart,
    NotReached,
    /// A run left every bound behind.
    Diverged,
    /// It could not have reached anything within the limits, or cannot be set up.
    #[default]
    NotRun,
}

/// Where a sample of numbers lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Quartiles {
    pub(super) least: f64,
    pub(super) lower: f64,
    pub(super) median: f64,
    pub(super) upper: f64,
    pub(super) greatest: f64,
}

impl Quartiles {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            least: *sorted.first()?,
            lower: quantile(&sorted, 0.25)?,
            median: quantile(&sorted, 0.5)?,
            upper: quantile(&sorted, 0.75)?,
            greatest: *sorted.last()?,
        })
    }
}

/// The quantile of sorted numbers, linear between two of them.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let place = part * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
    Some(below + (above - below) * place.fract())
}

impl Findings {
    /// sgd and smooth, if both got there in all their runs and the former with fewer samples.
    pub(super) fn one_sample_and_batches(&self) -> Option<(Scored<'_>, Scored<'_>)> {
        let done = |method| {
            let outcome = self.methods.iter().find(|outcome| outcome.method == method)?;
            let score = outcome.score.as_ref()?;
            (outcome.verdict == Verdict::Reached).then_some((outcome, score))
        };
        let (sgd, smooth) = (done("sgd")?, done("smooth")?);
        (sgd.1.samples.median < smooth.1.samples.median).then_some((sgd, smooth))
    }
}

/// A method that was run, with its score.
type Scored<'f> = (&'f Outcome, &'f Score);

impl Outcome {
    /// A method that was run.
    pub(super) fn of(contender: &Contender, runs: Vec<Bout>, instance: &Instance) -> Self {
        let number = |kind: fn(&End) -> bool| runs.iter().filter(|run| kind(&run.end)).count();
        let reached = number(|end| *end == End::Reached);
        let diverged = number(|end| matches!(end, End::Diverged { .. }));
        let verdict = match reached {
            _ if diverged > 0 => Verdict::Diverged,
            0 => Verdict::NotReached,
            _ if reached < runs.len() => Verdict::ReachedInPart,
            _ => Verdict::Reached,
        };
        let (leap, score) = (contender.leap(instance), Score::of(&runs, instance));
        Self { verdict, reached, diverged, leap, score, runs, ..Self::set_up(contender) }
    }

    /// A method that has not run.
    pub(super) fn set_up(contender: &Contender) -> Self {
        Self {
            method: contender.name,
            settings: contender.settings.clone(),
            planned_steps: contender.planned,
            ..Self::default()
        }
    }
}

impl Score {
    fn of(runs: &[Bout], instance: &Instance) -> Option<Self> {
        let over = |number: fn(&Bout) -> f64| Quartiles::of(runs.iter().map(number));
        let samples = over(|run| run.samples as f64)?;
        let reached = runs.iter().filter(|run| run.end == End::Reached).map(|run| run.samples as f64);
        let fastest = reached.min_by(f64::total_cmp);
        let zero_respecting = runs.iter().all(|run| run.zero_respecting);
        Some(Self {
            samples,
            evaluations: over(|run| run.evaluations as f64)?,
            steps: over(|run| run.steps as f64)?,
            progress: over(|run| run.progress as f64)?,
            ratio_to_sharp: samples.median / instance.sharp,
            ratio_to_closed: samples.median / instance.closed,
            zero_respecting,
            zero_respecting_verdict: if zero_respecting {
                "zero-respecting (checked)"
            } else {
                "not zero-respecting"
            },
            fastest,
            limit_kept: fastest.map(|fastest| fastest > instance.safe.samples),
        })
    }
}

fn values<S: Serializer>(settings: &[Setting], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(settings.iter().map(|setting| (setting.name, setting.value)))
}

#[cfg(test)]
mod tests {
    use super::Quartiles;

    #[test]
    fn the_quartiles_of_one_to_five_are_known() {
        let quartiles = Quartiles::of([5.0, 1.0, 4.0, 2.0, 3.0].into_iter()).unwrap();
        let expected = Quartiles { least: 1.0, lower: 2.0, median: 3.0, upper: 4.0, greatest: 5.0 };
        assert_eq!(quartiles, expected);
        assert_eq!(Quartiles::of([1.0, 2.0].into_iter()).unwrap().median, 1.5);
        assert!(Quartiles::of(std::iter::empty()).is_none());
    }
}
