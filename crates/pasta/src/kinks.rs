//! Fits by second-order steps of convex losses that have a kink: hinge, absolute, quantile.
//!
//! Such a loss is max(lo t, hi t) for a t that is linear in the score. Its smoothing, max over lo <= p <= hi of p t - width p^2/2, is a parabola near the kink; what
//! is minimised is f_w, the mean of the smoothed losses plus the penalty, by [`Newton`], for one width after another, each a tenth of the one before.
//!
//! The gradient of f need not be small where f is least, so the end is told otherwise. At a point x let p_i be the slope in t of each row's smoothed loss. Since
//! lo <= p_i <= hi, the mean of p_i t_i plus the penalty is nowhere above f, and it is convex with the gradient of f_w at x. So for every other point y
//!
//! f(y) >= f(x) - (f(x) - f_w(x)) - |grad f_w(x)| |y - x|,
//!
//! where all that stands before |y - x| is had by two passes over the rows. The gap that is printed is what this allows for all y within [`REACH`] times 1 + |x|.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::fit::{Fit, Verdict, Way};
//! use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
//!
//! // The median of 1, 2 and 10 is 2: the mean distance to it is 9/3.
//! let features = Dense { rows: 3, columns: 1, values: vec![0.0, 0.0, 0.0].into() };
//! let table = Table::new(Features::Dense(features), Arc::new(vec![1.0, 2.0, 10.0]), None, Vec::new())?;
//! let linear = Arc::new(Linear::new(Arc::new(table), Loss::Absolute, Design::default())?);
//! let fit = Fit { way: Way::SecondOrder, start: None, target: Some(1e-6), budget: None, seed: 1 };
//! let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_, _| ())?;
//! assert_eq!(fitted.verdict, Verdict::Certified);
//! assert!(fitted.end.objective - 3.0 < 1e-6 && fitted.gap.is_some_and(|gap| gap <= 1e-6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::estimator::Kind;
use crate::gate::{Gate, Halt};
use crate::kernels::{squared_distance, squared_norm};
use crate::newton::{self, Newton};
use crate::oracle::Oracle;
use crate::stop::Stop;
use crate::table::{Kink, Linear, Loss, TableError};
use crate::walk::{Advance, Record, View, Walk};

/// Within how many times 1 + |x| of x no point is lower by more than the gap.
pub const REACH: f64 = 100.0;

/// A run by second-order steps through kinks.
#[derive(Debug, Clone)]
pub struct Kinks {
    linear: Arc<Linear>,
    kink: Kink,
    target: f64,
    start: Vec<f64>,
    /// Widths of the present smoothing and of the last.
    width: f64,
    last: f64,
    newton: Newton,
    steps: u64,
    ended: Option<Stop>,
    /// f and |grad f| at the end, and the gap there.
    found: Option<((f64, f64), f64)>,
}

/// How much narrower the next smoothing is.
const NARROWER: f64 = 10.0;
/// |grad f_w| at which one that is not the last has done its part, in slopes of the loss.
const ROUGHLY: f64 = 1e-3;
/// Steps at one width after which rounding is in the way: some dozen do it otherwise.
const MOST_STEPS: u64 = 50;
/// Widths below so much of the first are lost in rounding.
const NARROWEST: f64 = 1e-12;

/// Whether that is the quickest way to fit a table: its loss has such a kink, and a matrix of second derivatives costs at most as much as some dozen passes.
pub fn is_quickest(linear: &Linear) -> bool {
    fits(linear) && newton::is_cheap(linear)
}

/// Whether the loss of a table has such a kink.
pub fn fits(linear: &Linear) -> bool {
    Kink::of(linear.loss()).is_some()
}

impl Kinks {
    /// A run from a point, where f is known, until f is at most `target` above its least value. Refuses losses without such a kink.
    pub(crate) fn from(
        linear: Arc<Linear>,
        start: Vec<f64>,
        target: f64,
        value: f64,
    ) -> Result<Self, TableError> {
        let row = linear.loss().row();
        let kink = Kink::of(linear.loss()).ok_or(TableError::NotSmoothConvex { loss: row.name })?;
        let width = (value / kink.steepest()).max(f64::MIN_POSITIVE.sqrt());
        // Half of the target for the smoothing, at most.
        let last = (target / kink.steepest().powi(2)).clamp(NARROWEST * width, width);
        let newton =
            Newton::from(smoothed(&linear, kink, width)?, start.clone(), ROUGHLY * kink.steepest(), None)?;
        Ok(Self { linear, kink, target, start, width, last, newton, steps: 0, ended: None, found: None })
    }

    /// |grad f_w| that is small enough at this width.
    fn enough(&self) -> f64 {
        if self.width > self.last {
            ROUGHLY * self.kink.steepest()
        } else {
            0.25 * self.target / reach(self.newton.point())
        }
    }

    /// Goes on with a tenth of the width.
    fn narrow(&mut self) -> Result<(), TableError> {
        self.width = (self.width / NARROWER).max(self.last);
        let smooth = smoothed(&self.linear, self.kink, self.width)?;
        self.newton = Newton::from(smooth, self.newton.point().to_vec(), self.enough(), None)?;
        Ok(())
    }

    /// By how much f can be above its least value where the last smoothing ended.
    fn look(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let (value, gradient) = Newton::evaluate(gate, Role::Large, self.newton.point())?;
        if let Some((smooth, slope)) = self.newton.view().exact {
            let reach = reach(self.newton.point());
            let above = (value - smooth).max(0.0) + slope * reach;
            self.found = Some(((value, squared_norm(&gradient).sqrt()), above));
        }
        self.ended = Some(Stop::Settled);
        Ok(())
    }

    /// A step at this width; once these have ended, the next width, or the look at the end.
    fn step(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let has_ended = self.newton.view().step >= MOST_STEPS || self.steps_end(gate)?;
        if has_ended && self.width > self.last {
            self.narrow().expect("it was smoothed before, only less");
        } else if has_ended {
            self.look(gate)?;
        }
        Ok(())
    }

    /// Takes a second-order step, and says whether there are no more.
    fn steps_end(&mut self, gate: &mut Gate) -> Result<bool, Halt> {
        let mut inner = gate.wrap(|_| Arc::clone(self.newton.linear()) as Arc<dyn Oracle>);
        let advance = self.newton.advance(&mut inner);
        if !advance.as_ref().is_err_and(Halt::drops_work) {
            gate.merge(&inner);
        }
        Ok(matches!(advance?, Advance::Stop(_)))
    }

    /// The run that a checkpoint was taken of, from where it was taken, bit for bit.
    pub(crate) fn resume(
        linear: Arc<Linear>,
        target: f64,
        value: f64,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let damaged = || CheckpointError::damaged("the vectors of its run do not fit the problem");
        let (Saved { width, enough, steps, ended, found }, mut vectors): (Saved, Vec<Vec<f64>>) =
            checkpoint.take(Self::SECTION)?;
        let start = vectors.pop().filter(|start| start.len() == linear.dim()).ok_or_else(damaged)?;
        let mut run = Self::from(linear, start, target, value).map_err(|_| damaged())?;
        let is_width = (run.last..=run.width).contains(&width);
        let smooth = smoothed(&run.linear, run.kink, width).ok().filter(|_| is_width).ok_or_else(damaged)?;
        run.width = width;
        run.newton = Newton::resume(smooth, enough, checkpoint)?;
        Ok(Self { steps, ended, found, ..run })
    }

    /// The name of its section in a checkpoint.
    pub(crate) const SECTION: &'static str = "kinks";
}

/// The distance from x that is in reach.
fn reach(x: &[f64]) -> f64 {
    REACH * (1.0 + squared_norm(x).sqrt())
}

/// The same table and model with a smoothed loss.
fn smoothed(linear: &Linear, kink: Kink, width: f64) -> Result<Arc<Linear>, TableError> {
    let loss = Loss::Smoothed { kink, width };
    let scaling = linear.scaling().cloned();
    Linear::scaled(Arc::clone(linear.table()), loss, linear.design(), scaling).map(Arc::new)
}

/// What a checkpoint holds besides vectors and what the second-order steps save.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    width: f64,
    /// |grad f_w| that is small enough at this width.
    enough: f64,
    steps: u64,
    ended: Option<Stop>,
    found: Option<((f64, f64), f64)>,
}

impl Walk for Kinks {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        let before = gate.ledger().samples();
        self.step(gate)?;
        if let Some(stop) = self.ended {
            return Ok(Advance::Stop(stop));
        }
        self.steps += 1;
        let n = u64::try_from(gate.ledger().samples() - before).unwrap_or(u64::MAX);
        let distance2 = squared_distance(self.newton.point(), &self.start);
        Ok(Advance::Step(Record { epoch: self.steps, t: 0, kind: Kind::Fresh, n, distance2 }))
    }

    fn view(&self) -> View<'_> {
        let mut view = View::new(self.steps, &self.start, self.newton.point());
        view.ended = self.ended;
        view.exact = self.found.map(|(exact, _)| exact);
        view.gap = self.found.map(|(_, gap)| gap);
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { width, steps, ended, found, .. } = *self;
        let enough = self.newton.target();
        to.put(Self::SECTION, &Saved { width, enough, steps, ended, found }, [&self.start[..]]);
        self.newton.save(to);
    }
}
