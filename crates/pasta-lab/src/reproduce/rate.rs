//! A rate: samples against the target eps, and the exponent that the theory gives them.

use super::finding::{Check, Measured, Point, Predicted};
use super::fit::{Estimate, slope, slope_over_seeds};
use super::runs::over_seeds;
use pasta_report::{Series, Shape, Tone, significant};

/// How far a measured slope may be from that of the noiseless run on the same targets. The noise moves the
/// iterates, and so the batch sizes, by an amount that the noiseless run does not know.
pub(super) const SLACK: f64 = 0.05;

/// How close to the theory's exponent the noiseless slope must come at smaller targets.
pub(super) const LIMIT: f64 = 0.05;

/// Samples over a grid of targets.
#[derive(Debug)]
pub(super) struct Rate {
    pub(super) name: &'static str,
    pub(super) setting: String,
    /// What the theory says.
    pub(super) exponent: f64,
    pub(super) targets: Vec<f64>,
    /// Targets above this are drawn, not fitted.
    pub(super) fitted_from: f64,
    pub(super) seeds: Vec<u64>,
    /// Of each target and seed.
    pub(super) samples: Vec<Vec<f64>>,
    /// Of each target, without noise.
    pub(super) noiseless: Vec<f64>,
    /// Of smaller targets, without noise.
    pub(super) beyond: Vec<(f64, f64)>,
}

/// What was counted over a grid of targets, which fall.
pub(super) struct Counted<T> {
    pub(super) targets: Vec<f64>,
    pub(super) seeds: Vec<u64>,
    /// Of each target and seed.
    pub(super) runs: Vec<Vec<T>>,
    noiseless: Vec<T>,
    /// At smaller targets, without noise.
    beyond: Vec<(f64, T)>,
}

impl<T: Send> Counted<T> {
    /// Counts at every target, over the seeds and without noise; at the targets beyond, which are smaller, only without
    /// noise.
    pub(super) fn new(
        targets: Vec<f64>,
        beyond: [f64; 2],
        seeds: Vec<u64>,
        count: impl Fn(f64, Option<u64>) -> Measured<T> + Sync,
    ) -> Measured<Self> {
        let runs = targets.iter().map(|&target| over_seeds(&seeds, |seed| count(target, Some(seed))));
        let runs = runs.collect::<Measured<_>>()?;
        let noiseless = targets.iter().map(|&target| count(target, None)).collect::<Measured<_>>()?;
        let beyond = beyond.into_iter().map(|target| Ok((target, count(target, None)?)));
        let beyond = beyond.collect::<Measured<_>>()?;
        Ok(Self { targets, seeds, runs, noiseless, beyond })
    }

    /// The same, with half and a quarter of the smallest target beyond.
    pub(super) fn and_beyond(
        targets: Vec<f64>,
        seeds: Vec<u64>,
        count: impl Fn(f64, Option<u64>) -> Measured<T> + Sync,
    ) -> Measured<Self> {
        let smallest = targets[targets.len() - 1];
        Self::new(targets, [smallest / 2.0, smallest / 4.0], seeds, count)
    }

    /// Where it was counted, from this target on.
    pub(super) fn range(&self, from: f64) -> String {
        let Self { targets, seeds, .. } = self;
        format!("eps {} to {}, {} seeds", from.min(targets[0]), targets[targets.len() - 1], seeds.len())
    }

    /// The rate of one of the counts, fitted from this target on.
    pub(super) fn rate(
        &self,
        (name, setting): (&'static str, String),
        exponent: f64,
        fitted_from: f64,
        what: fn(&T) -> f64,
    ) -> Rate {
        Rate {
            name,
            setting,
            exponent,
            targets: self.targets.clone(),
            fitted_from,
            seeds: self.seeds.clone(),
            samples: self.runs.iter().map(|row| row.iter().map(what).collect()).collect(),
            noiseless: self.noiseless.iter().map(what).collect(),
            beyond: self.beyond.iter().map(|(target, count)| (*target, what(count))).collect(),
        }
    }
}

impl Rate {
    /// Where the targets begin that are fitted; they fall.
    fn first(&self) -> usize {
        self.targets.iter().position(|&target| target <= self.fitted_from).unwrap_or(0)
    }

    fn noiseless_line(&self) -> Vec<(f64, f64)> {
        self.targets.iter().copied().zip(self.noiseless.iter().copied()).collect()
    }

    /// The mean over the seeds, of each target.
    pub(super) fn means(&self) -> Vec<(f64, f64)> {
        let mean = |row: &Vec<f64>| Estimate::of(row).value;
        self.targets.iter().copied().zip(self.samples.iter().map(mean)).collect()
    }

    /// The exponent is in the interval; or the interval has the noiseless slope on this grid, and that tends to the
    /// exponent.
    pub(super) fn check(&self) -> Check {
        let fitted = self.first()..;
        let measured = slope_over_seeds(&self.targets[fitted.clone()], &self.samples[fitted.clone()]);
        let on_this_grid = slope(&self.noiseless_line()[fitted]);
        let beyond = slope(&self.beyond);
        let exponent = self.exponent;
        let close = measured.admits(on_this_grid, SLACK) && (beyond - exponent).abs() <= LIMIT;
        let [here, further] = [on_this_grid, beyond].map(|slope| significant(slope, 4));
        let contains = measured.admits(exponent, 0.0);
        let reason = if contains {
            format!("the interval contains the exponent; without noise the slope is {here}")
        } else if close {
            format!(
                "finite eps: the noiseless run has slope {here} on these targets and {further} at smaller ones"
            )
        } else {
            format!("neither {exponent} nor the noiseless slope {here} (at smaller targets {further}) agrees")
        };
        Check {
            name: format!("{}: slope of samples", self.name),
            setting: self.setting.clone(),
            measured: measured.value,
            interval: measured.interval,
            predicted: Predicted::Is(exponent),
            on_this_grid: Some(on_this_grid),
            reason,
            holds: contains || close,
        }
    }

    /// Local slopes in a sentence.
    pub(super) fn sentence(&self) -> String {
        let (name, means) = (self.name, self.means());
        let slopes: Vec<String> = means.windows(2).map(|pair| format!("{:.2}", slope(pair))).collect();
        let slopes = slopes.join(", ");
        format!("{name}: slopes between neighbours, from the largest target to the smallest: {slopes}.")
    }

    /// The measured means as points, the noiseless run as a line.
    pub(super) fn series(&self, tone: Tone) -> Vec<Series> {
        let line = Shape::Line(self.noiseless_line());
        vec![
            Series::new(format!("{}, without noise", self.name), tone, line),
            Series::new(self.name, tone, Shape::Points(self.means())),
        ]
    }

    /// A line of exactly this slope, a little above the points.
    pub(super) fn guide(&self, exponent: f64) -> Series {
        let anchor = self.means().last().copied().unwrap_or((1.0, 1.0));
        let line = |&x: &f64| (x, 2.5 * anchor.1 * (x / anchor.0).powf(exponent));
        let line = Shape::Line(self.targets.iter().map(line).collect());
        Series::new(format!("slope {exponent}"), Tone::Grey, line)
    }

    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for ((&at, row), &noiseless) in self.targets.iter().zip(&self.samples).zip(&self.noiseless) {
            let at = ("eps", at);
            points.extend(Point::of_runs(self.name, at, &self.seeds, row, &[("samples", |&value| value)]));
            points.push(Point::new(self.name, at, None, ("samples without noise", noiseless)));
        }
        points
    }
}
