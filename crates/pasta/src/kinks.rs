//! Fits by second-order steps of convex losses that have a kink: hinge, absolute, quantile.
//!
//! Such a loss is max(lo t, hi t) for a t that is linear in the score. Its smoothing, max over lo <= p <= hi of p t - width p^2/2, is a parabola near the kink; what
//! is minimised is f_w, the mean of the smoothed losses plus the penalty, by [`Newton`], for one width after another, each a tenth of the one before.
//!
//! The gradient of f need not be small where f is least, so the end is told otherwise. At a point x let p_i be the slope in t of each row's smoothed loss. Since
//! lo <= p_i <= hi, the mean of p_i t_i plus the penalty is nowhere above f, and it is convex. With g its gradient at x, and `left` by how much it is below f there,
//!
//! f(y) >= f(x) - left + <g, y - x>
//!
//! for every other point y. The last term has no bound as long as g is not zero, however small it is: columns that agree to 14 digits may have a y at a distance of
//! 10^14. So other slopes are looked for, near these, that have no gradient at all; the gap is what they leave, and what rounding may hide is part of it. Where
//! there are none, or a column was left out that depends on others up to rounding but not exactly, the gap is f(x) itself, for f is nowhere below 0.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pasta_opt::fit::{Fit, Verdict, Way};
//! use pasta_opt::run::Target;
//! use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table};
//!
//! // The median of 1, 2 and 10 is 2: the mean distance to it is 9/3.
//! let features = Dense { rows: 3, columns: 1, values: vec![0.0, 0.0, 0.0].into() };
//! let table = Table::new(Features::Dense(features), Arc::new(vec![1.0, 2.0, 10.0]), None, Vec::new())?;
//! let linear = Arc::new(Linear::new(Arc::new(table), Loss::Absolute, Design::default())?);
//! let fit = Fit { way: Way::SecondOrder, start: None, target: Some(Target::Norm(1e-6)), budget: None, seed: 1 };
//! let fitted = fit.run(&linear, linear.clone(), Arc::default(), &mut |_| ())?;
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
use crate::newton::{self, Newton, Until};
use crate::oracle::Oracle;
use crate::stop::Stop;
use crate::table::{Kink, Linear, Loss, Slopes, TableError};
use crate::walk::{Advance, Record, View, Walk};

/// A run by second-order steps through kinks.
#[derive(Debug, Clone)]
pub struct Kinks {
    linear: Arc<Linear>,
    kink: Kink,
    start: Vec<f64>,
    /// Widths of the present smoothing and of the last.
    width: f64,
    last: f64,
    newton: Newton,
    /// The width before the present one, and where that ended.
    before: Option<(f64, Vec<f64>)>,
    steps: u64,
    ended: Option<Stop>,
    /// f and |grad f| at the end, and the gap there.
    found: Option<((f64, f64), f64)>,
    /// f at the start.
    value: f64,
    /// Whether the run ends there: nothing that it found is lower.
    is_back: bool,
}

/// How much narrower the next smoothing is.
const NARROWER: f64 = 10.0;
/// |grad f_w| at which one that is not the last has done its part, and at the last, in slopes of the loss.
const ROUGHLY: f64 = 1e-5;
const FINELY: f64 = 1e-8;
/// Steps at one width after which rounding is in the way: some dozen do it otherwise.
const MOST_STEPS: u64 = 50;
/// Passes in which slopes are corrected, where the first do not do: the second corrects what rounding and rows at their ends left of the first, and so on.
const CORRECTIONS: u32 = 6;
/// Of the gap that is allowed, what making slopes smaller may take.
const SMALLER: f64 = 0.1;
/// Widths below so much of the first are lost in rounding.
const NARROWEST: f64 = 1e-12;

/// Whether that is the quickest way to fit a table: its loss has such a kink, and a matrix of second derivatives costs at most as much as some dozen passes.
pub fn is_quickest(linear: &Linear) -> bool {
    applies(linear) && newton::is_cheap(linear)
}

/// Whether the loss of a table has such a kink.
pub fn applies(linear: &Linear) -> bool {
    Kink::of(linear.loss()).is_some()
}

impl Kinks {
    /// A run from a point, where f and the loss of a typical row are known, until f is at most `target` above its least value. Refuses losses without such a kink.
    pub(crate) fn from(
        linear: Arc<Linear>,
        start: Vec<f64>,
        target: f64,
        value: f64,
        typical: f64,
    ) -> Result<Self, TableError> {
        let row = linear.loss().row();
        let kink = Kink::of(linear.loss()).ok_or(TableError::NotSmoothConvex { loss: row.name })?;
        let width = (typical / kink.steepest()).max(f64::MIN_POSITIVE.sqrt());
        // Half of the target for the smoothing, at most.
        let last = (target / kink.steepest().powi(2)).clamp(NARROWEST * width, width);
        let newton = Newton::from(
            smoothed(&linear, kink, width)?,
            start.clone(),
            Until::Gradient(ROUGHLY * kink.steepest()),
            None,
        )?;
        Ok(Self {
            linear,
            kink,
            start,
            width,
            last,
            newton,
            before: None,
            steps: 0,
            ended: None,
            found: None,
            value,
            is_back: false,
        })
    }

    /// |grad f_w| that is small enough at this width.
    fn enough(&self) -> f64 {
        if self.width > self.last { ROUGHLY * self.kink.steepest() } else { FINELY * self.kink.steepest() }
    }

    /// Goes on with a tenth of the width, from where the ends at the last two widths point to: as long as the same rows are near their kinks, the minimiser of f_w
    /// is linear in w.
    fn narrow(&mut self) -> Result<(), TableError> {
        let (width, end) = (self.width, self.newton.point().to_vec());
        let next = width / NARROWER;
        // Not once more for what rounding has left.
        self.width = if next > 1.001 * self.last { next } else { self.last };
        let mut from = end.clone();
        if let Some((wider, before)) = &self.before {
            let times = (width - self.width) / (wider - width);
            from.iter_mut().zip(before).for_each(|(x, before)| *x += times * (*x - before));
        }
        self.before = Some((width, end));
        let smooth = smoothed(&self.linear, self.kink, self.width)?;
        let columns = self.newton.columns().cloned();
        self.newton = Newton::from(smooth, from, Until::Gradient(self.enough()), None)?.knowing(columns);
        Ok(())
    }

    /// By how much f can be above its least value where the last smoothing ended, or at the start if f is lower there.
    fn look(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let (mut value, mut gradient) = Newton::evaluate(gate, Role::Large, self.newton.point())?;
        let mut gap = self.gap(gate, value)?.min(value);
        self.is_back = value > self.value;
        if self.is_back {
            gap = (gap - (value - self.value)).max(0.0);
            (value, gradient) = Newton::evaluate(gate, Role::Large, &self.start)?;
        }
        self.found = Some(((value, squared_norm(&gradient).sqrt()), gap));
        self.ended = Some(Stop::Settled);
        Ok(())
    }

    /// The gap by slopes of the rows at the end, for the target that it is compared with; infinite if it cannot be told.
    fn gap(&self, gate: &mut Gate, value: f64) -> Result<f64, Halt> {
        let left_out = match self.newton.columns().cloned() {
            None => Vec::new(),
            Some(columns) => {
                if !self.depend_exactly(gate, &columns.left_out)? {
                    // Far out there may be a model that uses what rounding left of such a column.
                    return Ok(f64::INFINITY);
                }
                columns.left_out.clone()
            }
        };
        let point = self.newton.point();
        let Some(mut slopes) = Slopes::new(&self.linear, self.kink, self.width, point, &left_out) else {
            return Ok(f64::INFINITY);
        };
        let target = self.last * self.kink.steepest().powi(2);
        let pass = |gate: &mut Gate| newton::count_pass(&self.linear, gate);
        pass(gate)?;
        let mut gap = slopes.gap();
        if gap > target && slopes.correct() {
            for _ in 1..CORRECTIONS {
                pass(gate)?;
                slopes.look();
                slopes.correct();
            }
            pass(gate)?;
            gap = gap.min(slopes.gap());
        }
        if gap > target && slopes.shrink(SMALLER * (target / value).min(1.0)) {
            pass(gate)?;
            gap = gap.min(slopes.gap());
        }
        Ok(gap)
    }

    /// True if columns that are left out are combinations of others to the last digit.
    fn depend_exactly(&self, gate: &mut Gate, left_out: &[usize]) -> Result<bool, Halt> {
        let constant = self.linear.constant_features();
        let mut others = left_out.iter().filter(|j| !constant.contains(j)).peekable();
        if others.peek().is_none() {
            return Ok(true);
        }
        newton::count_pass(&self.linear, gate)?;
        let Some(factor) = self.linear.factor_of_columns() else { return Ok(false) };
        for j in others {
            // One to find the combination, one to refine it, one to see that nothing is left.
            (0..3).try_for_each(|_| newton::count_pass(&self.linear, gate))?;
            if !self.linear.depends_exactly(*j, &factor) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A step at this width; once these have ended, the next width, or the look at the end.
    fn step(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        if self.value == 0.0 {
            // Nothing is lower.
            return self.look(gate);
        }
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
        typical: f64,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let damaged = || CheckpointError::damaged("the vectors of its run do not fit the problem");
        let (Saved { width, enough, steps, ended, found, is_back, wider }, vectors): (Saved, Vec<Vec<f64>>) =
            checkpoint.take(Self::SECTION)?;
        let fit = vectors.iter().all(|vector| vector.len() == linear.dim());
        let mut vectors = vectors.into_iter().filter(|_| fit);
        let start = vectors.next().ok_or_else(damaged)?;
        let before = wider.zip(vectors.next());
        let mut run = Self::from(linear, start, target, value, typical).map_err(|_| damaged())?;
        let is_width = (run.last..=run.width).contains(&width);
        let smooth = smoothed(&run.linear, run.kink, width).ok().filter(|_| is_width).ok_or_else(damaged)?;
        run.width = width;
        run.newton = Newton::resume(smooth, Until::Gradient(enough), checkpoint)?;
        Ok(Self { before, steps, ended, found, is_back, ..run })
    }

    /// The name of its section in a checkpoint.
    pub(crate) const SECTION: &'static str = "kinks";
}

/// The same table and model with a smoothed loss.
fn smoothed(linear: &Linear, kink: Kink, width: f64) -> Result<Arc<Linear>, TableError> {
    linear.with_loss(Loss::Smoothed { kink, width }).map(Arc::new)
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
    #[serde(default)]
    is_back: bool,
    /// The width before the present one.
    #[serde(default)]
    wider: Option<f64>,
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
        let point = if self.is_back { &self.start } else { self.newton.point() };
        let mut view = View::new(self.steps, &self.start, point);
        view.ended = self.ended;
        view.exact = self.found.map(|(exact, _)| exact);
        view.gap = self.found.map(|(_, gap)| gap);
        view.left_out = self.newton.columns().map(|columns| &columns.left_out[..]);
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { width, steps, ended, found, is_back, .. } = *self;
        let (enough, wider) = (self.newton.target(), self.before.as_ref().map(|(width, _)| *width));
        let vectors = [&self.start[..]].into_iter().chain(self.before.iter().map(|(_, end)| &end[..]));
        to.put(Self::SECTION, &Saved { width, enough, steps, ended, found, is_back, wider }, vectors);
        self.newton.save(to);
    }
}
