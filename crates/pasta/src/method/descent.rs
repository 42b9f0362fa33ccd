//! A fit as a walk: a look at the start that says what is small enough, the steps of a method, and an exact end.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Engine;
use crate::certificate::{self, Basis, Certificate, Certifier, Claim, Made, Quantity, delta_of_attempt};
use crate::checkpoint::{Checkpoint, CheckpointError, Saver};
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::squared_norm;
use crate::kinks::{self, Kinks};
use crate::newton::{self, Newton, Until};
use crate::oracle::{Oracle, OracleError};
use crate::proximal::Proximal;
use crate::state::StartError;
use crate::stop::Stop;
use crate::table::{Class, Kink, Linear, TableError};
use crate::target::Target;
use crate::term::Separable;
use crate::walk::{Advance, CertificateLog, Ending, Exactly, FitLog, FitVerdict, StopRule, View, Walk};

/// How much smaller than at the start the gradient shall be, unless a target is given.
pub const RELATIVE: f64 = 1e-6;
/// What rounding makes of the gradient of labels, at most.
const ROUNDING: f64 = 1e-8;
/// A rise of f below this share of it is rounding.
const RISE: f64 = 1e-9;

/// Passes over the table, unless a budget is given; more over a small one, as long as they read no more values than this.
const PASSES: u128 = 2000;
const VALUES: u128 = 200_000_000;

/// Rows that a fit without a budget may read: 2000 passes, or more over a small table.
pub fn usual_budget(linear: &Linear) -> u128 {
    let rows = linear.table().rows() as u128;
    let entries = linear.table().features.entries() as u128 * linear.loss().outputs() as u128;
    PASSES.max(VALUES / entries.max(1)).min(50 * PASSES) * rows
}

/// A fit to a table: what is fitted, by what, and when it is enough.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The table with its loss.
    pub linear: Arc<Linear>,
    /// What makes the steps.
    pub by: By,
    /// The gradient that is small enough, or its share of that at the start; if nothing is said, [`RELATIVE`] of that at the start, and then second-order steps go on until they promise f
    /// no more. Where f is told by a gap, the gap that is small enough.
    pub target: Option<Target>,
    /// The gradient of which the target is a share, where that is not the one at the start.
    pub(crate) scale: Option<f64>,
    /// The certificate that is asked for, if one is.
    pub(crate) rule: Option<StopRule>,
}

/// What makes the steps of a fit.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// Second-order steps: see [`crate::newton`], and [`crate::kinks`] for convex losses with kinks.
    SecondOrder,
    /// Second-order steps with a term for the coordinates: see [`crate::proximal`].
    Proximal(Arc<Separable>),
    /// A method of samples; `auto` aims at the target of the fit.
    Method(Box<Engine>),
}

impl PartialEq for Plan {
    /// The same fit to a table of the same values.
    fn eq(&self, other: &Self) -> bool {
        let identity = |plan: &Self| plan.linear.about().identity.clone();
        let same = (&self.by, self.target, self.rule) == (&other.by, other.target, other.rule);
        same && (Arc::ptr_eq(&self.linear, &other.linear) || identity(self) == identity(other))
    }
}

impl Plan {
    /// Second-order steps to the usual end. Refuses losses that these do not fit.
    pub fn exact(linear: Arc<Linear>) -> Result<Self, TableError> {
        if !kinks::applies(&linear) {
            newton::applies(&linear)?;
        }
        Ok(Self { linear, by: By::SecondOrder, target: None, scale: None, rule: None })
    }

    /// Whether that is the quickest way that is known to fit the table: the loss is smooth and convex, or convex with kinks where a matrix of second derivatives costs little.
    pub fn is_quickest(linear: &Linear) -> bool {
        newton::applies(linear).is_ok() || kinks::is_quickest(linear)
    }

    /// The kink of the loss, where f is told by a gap because of it.
    fn kink(&self) -> Option<Kink> {
        Kink::of(self.linear.loss()).filter(|_| self.by == By::SecondOrder)
    }

    fn rows(&self) -> u128 {
        self.linear.table().rows() as u128
    }

    /// What is kept back of a budget for the end: a pass, or two for a duality gap.
    fn held(&self) -> u128 {
        if let By::Proximal(_) = self.by { 2 * self.rows() } else { self.rows() }
    }

    /// The steps of second order from where the log says.
    fn until(&self, target: f64) -> Until {
        self.target.map_or(Until::Flat(target), |_| Until::Gradient(target))
    }

    /// The target, given what it is a share of.
    fn target_at(&self, scale: f64) -> f64 {
        match self.target {
            Some(Target::Norm(norm)) => norm,
            Some(Target::OfStart(share)) => share * scale,
            None => RELATIVE * scale,
        }
    }
}

/// A fit under way.
pub struct Descent {
    plan: Plan,
    start: Vec<f64>,
    /// Its start and its end, once they are known.
    log: Option<FitLog>,
    steps: Option<Steps>,
    /// How the method ended, if it did.
    stopped: Option<Stop>,
    certification: Option<CertificateLog>,
    /// The budget with which it ended.
    budget: Option<u128>,
}

/// The method.
#[expect(clippy::large_enum_variant, reason = "there is one of them in a fit")]
enum Steps {
    Newton(Newton),
    Kinks(Kinks),
    Proximal(Proximal),
    Other(Box<dyn Walk>),
}

impl Steps {
    fn walk(&self) -> &dyn Walk {
        match self {
            Self::Newton(walk) => walk,
            Self::Kinks(walk) => walk,
            Self::Proximal(walk) => walk,
            Self::Other(walk) => walk,
        }
    }

    fn walk_mut(&mut self) -> &mut dyn Walk {
        match self {
            Self::Newton(walk) => walk,
            Self::Kinks(walk) => walk,
            Self::Proximal(walk) => walk,
            Self::Other(walk) => walk,
        }
    }
}

impl fmt::Debug for Descent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Descent").field("plan", &self.plan).field("log", &self.log).finish_non_exhaustive()
    }
}

/// What a checkpoint holds besides the start.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    log: Option<FitLog>,
    stopped: Option<Stop>,
    certification: Option<CertificateLog>,
    /// The budget with which it ended.
    budget: Option<u128>,
}

fn failed(error: impl fmt::Display) -> Halt {
    Halt::Oracle(OracleError::new(error.to_string()))
}

impl Descent {
    /// A fit at its start. Refuses what could not be begun there.
    pub fn start(gate: &Gate, plan: Plan, start: &[f64]) -> Result<Self, StartError> {
        let dim = plan.linear.dim();
        if start.len() != dim || gate.about().dim != dim {
            return Err(StartError::Dimension { start: start.len(), oracle: dim });
        }
        if let Some(coordinate) = start.iter().position(|x| !x.is_finite()) {
            return Err(StartError::NotFinite { coordinate, value: start[coordinate] });
        }
        if gate.term().is_some() {
            let what = "second-order steps know l1 and bounds by `pasta fit` alone, and no other term".into();
            return Err(StartError::Term { what });
        }
        let mut start = start.to_vec();
        match &plan.by {
            By::SecondOrder if plan.kink().is_some() => {}
            By::SecondOrder => newton::applies(&plan.linear)?,
            By::Proximal(term) => {
                let walk = Proximal::start(Arc::clone(&plan.linear), Arc::clone(term), start)?;
                // It is moved to where the term is finite.
                start = walk.view().point.to_vec();
            }
            By::Method(engine) => drop(engine.clone().start(gate, &start)?),
        }
        Ok(Self { plan, start, log: None, steps: None, stopped: None, certification: None, budget: None })
    }

    /// Looks at the start, and so finds out what is small enough.
    fn begin(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        let (plan, x0) = (&self.plan, self.start.clone());
        let linear = &plan.linear;
        if let By::Proximal(term) = &plan.by {
            let walk = Proximal::start(Arc::clone(linear), Arc::clone(term), x0.clone());
            let mut walk = walk.map_err(failed)?;
            let start = walk.exactly(gate)?;
            let gap = walk.look(gate, &x0)?;
            // A start that is the minimum leaves rounding alone.
            let of_gap = |gap: f64| gap.max(RELATIVE * start.0.abs());
            let scale = gap.map_or_else(|| start.1.max(ROUNDING * linear.slope_of_labels()), of_gap);
            let (target, has_gap) = (plan.target_at(scale), gap.is_some());
            self.log = Some(FitLog { start: start.into(), target, typical: None, has_gap, end: None });
            self.steps = Some(Steps::Proximal(walk));
            return Ok(());
        }
        let here = Newton::evaluate(gate, Role::Look, &x0)?;
        let start = Exactly::from((here.0, squared_norm(&here.1).sqrt()));
        // Where the loss has kinks, f is told by its gap.
        let typical = plan.kink().map(|kink| linear.typical_loss(kink, &x0));
        // A gradient that is rounding of the labels alone is no measure.
        let of_start = || start.gradient.max(ROUNDING * linear.slope_of_labels());
        let target = plan.target_at(typical.or(plan.scale).unwrap_or_else(of_start));
        let steps = match (&plan.by, typical) {
            (By::Method(engine), _) => {
                let engine = match &**engine {
                    Engine::Auto { .. } => Engine::Auto { target: Some(target) },
                    other => other.clone(),
                };
                Steps::Other(engine.start(gate, &x0).map_err(failed)?)
            }
            (_, Some(typical)) => {
                let kinks = Kinks::from(Arc::clone(linear), x0, target, start.objective, typical);
                Steps::Kinks(kinks.map_err(failed)?)
            }
            (_, None) => {
                let newton = Newton::from(Arc::clone(linear), x0, plan.until(target), Some(here));
                Steps::Newton(newton.map_err(failed)?)
            }
        };
        self.log = Some(FitLog { start, target, typical, has_gap: typical.is_some(), end: None });
        self.steps = Some(steps);
        Ok(())
    }

    /// The end, by a pass over all rows unless the method made one there.
    fn judge(&mut self, gate: &mut Gate, stop: Stop) -> Result<(), Halt> {
        let (Some(log), Some(steps)) = (self.log, &mut self.steps) else { return Ok(()) };
        let point = steps.walk().view().point.to_vec();
        let mut gap = steps.walk().view().gap;
        let at = match steps {
            Steps::Proximal(walk) => {
                let at = walk.exactly(gate)?;
                gap = if log.has_gap { walk.look(gate, &point)? } else { None };
                at
            }
            // The walk's own last pass was over all rows at this point: another would have the same bits.
            _ => {
                if let Some(exact) = steps.walk().view().exact {
                    exact
                } else {
                    let (objective, gradient) = Newton::evaluate(gate, Role::Certificate, &point)?;
                    (objective, squared_norm(&gradient).sqrt())
                }
            }
        };
        let at = Exactly::from(at);
        let class = self.plan.linear.loss().row().class;
        let kinks = matches!(class, Class::LipschitzConvex | Class::WeaklyConvex);
        let rounding = RISE * (1.0 + log.start.objective.abs());
        // Where f is told by its gap, a gradient that is small says nothing more.
        let verdict = match gap.unwrap_or(at.gradient) <= log.target {
            _ if at.objective > log.start.objective + rounding => FitVerdict::Worse,
            small if small && (gap.is_some() || log.typical.is_none()) => FitVerdict::Certified,
            _ if kinks => FitVerdict::Kinks,
            _ => FitVerdict::NotCertified,
        };
        let end = Ending { at, gap, verdict };
        self.log = Some(FitLog { end: Some(end), ..log });
        (self.stopped, self.budget) = (Some(stop), gate.budget());
        self.certify(gate, &log, &end, &point);
        Ok(())
    }

    /// The certificate that was asked for.
    fn certify(&mut self, gate: &mut Gate, log: &FitLog, end: &Ending, point: &[f64]) {
        let Some(rule) = self.plan.rule else { return };
        let rows = self.plan.rows();
        let of = match (&self.plan.by, end.gap) {
            (_, Some(_)) => Quantity::Gap,
            (By::Proximal(_), None) => Quantity::GradientMapping { gamma: 1.0 },
            (_, None) => Quantity::Gradient,
        };
        let bound = Some(end.measure()).filter(|bound| bound.is_finite());
        let is_small = bound.is_some_and(|bound| bound <= log.target);
        let verdict = match end.verdict {
            FitVerdict::Certified => certificate::Verdict::Certified,
            // What is small at a point that is worse than the start is no end.
            _ if is_small => certificate::Verdict::NotReached,
            _ => certificate::Verdict::Above,
        };
        let certificate = Certificate {
            verdict,
            of,
            bound,
            target: log.target,
            delta: rule.delta,
            basis: Basis::Exact,
            samples: rows,
            rows: u64::try_from(rows).ok(),
            agreement: None,
        };
        // What a pass says is made again by a pass; a gap is not.
        let made = if of == Quantity::Gradient
            && rule.basis == Basis::Exact
            && verdict != certificate::Verdict::NotReached
        {
            made(gate, log.target, rule, point)
        } else {
            None
        };
        let ended = self.ended();
        self.certification = Some(CertificateLog::of_attempts(1, Some(certificate), made.as_ref(), ended));
    }

    /// How it ended, if it did.
    fn ended(&self) -> Option<Stop> {
        let stop = self.stopped?;
        let verdict = self.log.and_then(|log| log.end).map(|end| end.verdict);
        let is_certified = verdict == Some(FitVerdict::Certified) && !stop.is_lost();
        Some(if is_certified { Stop::Certified } else { stop })
    }

    fn next(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        let Some(steps) = &mut self.steps else {
            self.begin(gate)?;
            return Ok(Advance::Checked);
        };
        // The last pass is the certificate's.
        gate.hold(self.plan.held());
        let stop = match steps.walk_mut().advance(gate) {
            Ok(Advance::Stop(stop)) => stop,
            Ok(advance) => return Ok(advance),
            Err(halt) if halt.drops_work() => return Err(halt),
            Err(halt) => halt.stop().ok_or(halt)?,
        };
        gate.hold(0);
        self.judge(gate, stop)?;
        Ok(Advance::Stop(self.ended().unwrap_or(stop)))
    }

    /// The fit of a checkpoint, from where it was taken, bit for bit. It must be a fit of this plan.
    pub(crate) fn resume(
        gate: &Gate,
        plan: Plan,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, CheckpointError> {
        let damaged = || CheckpointError::damaged("the vectors of its run do not fit the problem");
        let (saved, mut vectors): (Saved, Vec<Vec<f64>>) = checkpoint.take(Self::SECTION)?;
        let Saved { mut log, mut stopped, mut certification, budget } = saved;
        // A run that ran out of budget goes on with another.
        if stopped == Some(Stop::OutOfBudget) && budget != gate.budget() {
            (stopped, certification) = (None, None);
            log = log.map(|log| FitLog { end: None, ..log });
        }
        let start: Vec<f64> = vectors.pop().filter(|_| vectors.is_empty()).ok_or_else(damaged)?;
        if start.len() != plan.linear.dim() {
            return Err(damaged());
        }
        let other = || CheckpointError::Settings { what: "the checkpoint is of another method".into() };
        let linear = Arc::clone(&plan.linear);
        let steps = match (log, &plan.by) {
            (None, _) => None,
            (Some(log), By::SecondOrder) => Some(match log.typical {
                Some(typical) if checkpoint.has(Kinks::SECTION) => {
                    let value = log.start.objective;
                    Steps::Kinks(Kinks::resume(linear, log.target, value, typical, checkpoint)?)
                }
                None if checkpoint.has(Newton::SECTION) => {
                    Steps::Newton(Newton::resume(linear, plan.until(log.target), checkpoint)?)
                }
                _ => return Err(other()),
            }),
            (Some(_), By::Proximal(_)) if !checkpoint.has(Proximal::SECTION) => return Err(other()),
            (Some(_), By::Proximal(term)) => {
                Some(Steps::Proximal(Proximal::resume(linear, Arc::clone(term), checkpoint)?))
            }
            (Some(_), By::Method(_)) => Some(Steps::Other(super::resume(gate, checkpoint)?)),
        };
        Ok(Self { plan, start, log, steps, stopped, certification, budget })
    }

    /// The name of its section in a checkpoint.
    pub(crate) const SECTION: &'static str = "descent";
}

/// How a pass over all rows is made again.
fn made(gate: &mut Gate, target: f64, rule: StopRule, point: &[f64]) -> Option<Made> {
    let delta = delta_of_attempt(rule.delta, 1);
    let claim = Claim { target, delta, basis: Basis::Exact, budget: None, guess: None };
    // It draws nothing before its pass.
    Certifier::start(gate, point, claim, 1).ok()?.made()
}

impl Walk for Descent {
    fn advance(&mut self, gate: &mut Gate) -> Result<Advance, Halt> {
        if let Some(stop) = self.ended() {
            return Ok(Advance::Stop(stop));
        }
        let before = gate.ledger().clone();
        let advance = self.next(gate);
        gate.hold(0);
        if advance.as_ref().is_err_and(Halt::drops_work) {
            gate.rewind(before);
        }
        advance
    }

    fn view(&self) -> View<'_> {
        let mut view = match &self.steps {
            Some(steps) => steps.walk().view(),
            None => View::new(0, &self.start, &self.start),
        };
        view.start = &self.start;
        view.ended = self.ended();
        view.promised = false;
        view.certification = self.certification.as_ref();
        view.fit = self.log.as_ref();
        view
    }

    fn save<'a>(&'a self, to: &mut Saver<'a>) {
        let Self { log, stopped, certification, budget, start, .. } = self;
        let (log, stopped, certification, budget) = (*log, *stopped, certification.clone(), *budget);
        let saved = Saved { log, stopped, certification, budget };
        to.put(Self::SECTION, &saved, [&start[..]]);
        if let Some(steps) = &self.steps {
            steps.walk().save(to);
        }
    }
}
