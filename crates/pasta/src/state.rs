//! The state of a run: everything that changes from step to step, and nothing else. A checkpoint holds it.

use serde::{Deserialize, Serialize};

use crate::certificate::ClaimError;
use crate::checkpoint::CheckpointError;
use crate::draws::{Address, Role};
use crate::exact::MAX_COUNT;
use crate::gate::Gate;
use crate::kernels::{squared_distance, update_mean};
use crate::oracle::About;
use crate::schedule::{Output, ScheduleError};
use crate::stop::{Divergence, Stop};
use crate::table::TableError;
use crate::term::Steps;
use crate::walk::View;

/// An iterate this far from the start (squared) is a runaway: no problem in doubles is that large.
const RUNAWAY_SQUARED: f64 = 1e100;

/// The point, the estimate and the counters of a run of Algorithm 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// s: the epoch, from 1.
    pub epoch: u64,
    /// t: the step of the epoch, from 0.
    pub t: u64,
    /// The step of the run, from 0: the address of its draws.
    pub step: u64,
    /// |x_t - x0|^2.
    pub distance2: f64,
    /// How the run ended by itself, if it did.
    pub ended: Option<Stop>,
    /// Candidates for the output seen so far.
    pub(crate) seen: u64,
    /// The candidate that will be picked next, counted from 1.
    pub(crate) next_pick: u64,
    /// The step before which the picked candidate was x.
    #[serde(default)]
    pub(crate) picked: u64,
    /// Coordinates from here on are zero in x, x_prev, anchor and g.
    #[serde(skip)]
    pub(crate) active: usize,
    /// x_t.
    #[serde(skip)]
    pub x: Vec<f64>,
    /// x_{t-1}.
    #[serde(skip)]
    pub x_prev: Vec<f64>,
    /// x_{s-1}: where the epoch started.
    #[serde(skip)]
    pub anchor: Vec<f64>,
    /// x0: where the run started.
    #[serde(skip)]
    pub start: Vec<f64>,
    /// g_{t-1}: the estimate of the last step. Never a measure of the true gradient.
    #[serde(skip)]
    pub g: Vec<f64>,
    /// What the output rule carries: the point picked so far, or the running mean. Empty where it is x itself.
    #[serde(skip)]
    pub carried: Vec<f64>,
    /// What a baseline remembers besides: moments, accumulated squares. Empty for Algorithm 1.
    #[serde(skip)]
    pub(crate) memory: Vec<f64>,
}

/// Why a walk cannot start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The start has the wrong number of coordinates.
    #[error("the start has {start} coordinates, but the oracle has {oracle}")]
    Dimension {
        /// Coordinates of the start.
        start: usize,
        /// Coordinates of the oracle.
        oracle: usize,
    },
    /// The start is not a point.
    #[error("coordinate {coordinate} of the start is {value}")]
    NotFinite {
        /// Which coordinate, from 0.
        coordinate: usize,
        /// Its value.
        value: f64,
    },
    /// The method needs the losses of samples.
    #[error("the method needs losses, and the oracle gives none")]
    Losses,
    /// The method evaluates one sample at two points.
    #[error("the method evaluates each sample at two points, and the oracle cannot")]
    Differences,
    /// The schedule cannot be run.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The term cannot be, or not for this problem.
    #[error("{what}")]
    Term {
        /// Why not.
        what: String,
    },
    /// The start is outside of the domain of the term.
    #[error(
        "the start is outside of the domain: {words}; give another start, or ask for its projection (project_start)"
    )]
    Outside {
        /// Which coordinate, and what it breaks.
        words: String,
    },
    /// The method stops on a certificate, and none is asked for.
    #[error("the method stops on a certificate, and none is asked for: give a target")]
    NoRule,
    /// The rule by which it stops was refused.
    #[error(transparent)]
    Rule(#[from] ClaimError),
    /// The method does not fit the loss of a table, or its size.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// How many vectors a state has, and how many of them always have the dimension of the problem.
const VECTORS: usize = 7;
const FULL: usize = 5;

impl State {
    /// The state of a run that has not moved yet; refuses a start that is no point of the problem.
    pub(crate) fn start(gate: &Gate, start: &[f64], output: Output) -> Result<Self, StartError> {
        let about: &About = gate.about();
        if start.len() != about.dim {
            return Err(StartError::Dimension { start: start.len(), oracle: about.dim });
        }
        if let Some(coordinate) = start.iter().position(|x| !x.is_finite()) {
            return Err(StartError::NotFinite { coordinate, value: start[coordinate] });
        }
        if let Some(outside) = gate.term().and_then(|term| term.outside(start)) {
            return Err(StartError::Outside { words: outside.words });
        }
        Ok(Self {
            epoch: 1,
            t: 0,
            step: 0,
            distance2: 0.0,
            ended: None,
            seen: 0,
            next_pick: 1,
            picked: 0,
            active: support(start),
            x: start.to_vec(),
            x_prev: start.to_vec(),
            anchor: start.to_vec(),
            start: start.to_vec(),
            g: vec![0.0; start.len()],
            carried: if output == Output::Last { Vec::new() } else { start.to_vec() },
            memory: Vec::new(),
        })
    }

    /// The vectors, in the order in which a checkpoint stores them.
    pub(crate) fn vectors(&self) -> impl Iterator<Item = &[f64]> {
        let Self { x, x_prev, anchor, start, g, carried, memory, .. } = self;
        [x, x_prev, anchor, start, g, carried, memory].into_iter().map(Vec::as_slice)
    }

    /// Takes back the vectors of a checkpoint; refuses those that do not fit a problem of this dimension.
    pub(crate) fn restore(&mut self, vectors: Vec<Vec<f64>>, dim: usize) -> Result<(), CheckpointError> {
        let lengths: Vec<usize> = vectors.iter().map(Vec::len).collect();
        let vectors: [Vec<f64>; VECTORS] = vectors
            .try_into()
            .map_err(|_| CheckpointError::damaged("the run has too many vectors, or too few"))?;
        if lengths[..FULL].iter().any(|&n| n != dim) || ![0, dim].contains(&lengths[FULL]) {
            let what = format!("its vectors have {lengths:?} coordinates, the problem has {dim}");
            return Err(CheckpointError::damaged(what));
        }
        if [self.epoch, self.t, self.step, self.seen, self.next_pick].iter().any(|&n| n > MAX_COUNT) {
            return Err(CheckpointError::damaged("a counter of its run is beyond 2^63"));
        }
        [self.x, self.x_prev, self.anchor, self.start, self.g, self.carried, self.memory] = vectors;
        let Self { x, x_prev, anchor, g, .. } = &*self;
        self.active = [x, x_prev, anchor, g].into_iter().map(|v| support(v)).max().unwrap_or(0);
        Ok(())
    }

    /// What a walk with this state shows.
    pub(crate) fn view(&self, planned_steps: u128) -> View<'_> {
        let mut view = View::new(self.step, &self.start, &self.x);
        (view.epoch, view.t, view.distance2) = (self.epoch, self.t, self.distance2);
        (view.planned_steps, view.ended, view.point) = (Some(planned_steps), self.ended, self.output());
        view
    }

    /// The point that carries the guarantee, had the run ended here.
    pub fn output(&self) -> &[f64] {
        if self.carried.is_empty() { &self.x } else { &self.carried }
    }

    /// Takes the prox of x_{t+1}, which stands in `x_prev`, where there is a term: |x_{t+1} - x0|^2 and its support afterwards.
    #[inline]
    pub(crate) fn prox(
        &mut self,
        gate: &Gate,
        steps: Steps<'_>,
        distance2: f64,
        support: usize,
    ) -> (f64, usize) {
        match gate.term() {
            // What is not finite is refused as it is.
            Some(term) if self.x_prev.iter().all(|x| x.is_finite()) => {
                term.prox(steps, &mut self.x_prev);
                (squared_distance(&self.x_prev, &self.start), self.x_prev.len())
            }
            _ => (distance2, support),
        }
    }

    /// Lets the output rule look at x_t before the step.
    #[inline]
    pub(crate) fn update_output(&mut self, output: Output, gate: &Gate) {
        let seed = gate.seed();
        match output {
            Output::Average => {
                update_mean(&mut self.carried[..self.active], &self.x[..self.active], self.t + 1);
                gate.keep_inside(&mut self.carried);
            }
            Output::Uniform => self.maybe_pick(seed),
            Output::RandomAnchor if self.t == 0 => self.maybe_pick(seed),
            Output::RandomAnchor | Output::Last => {}
        }
    }

    /// Reservoir sampling of one candidate: the c-th is picked with probability 1/c, so that whenever the run
    /// stops, each candidate seen is the picked one with the same probability. From a pick at c the next is
    /// beyond k with probability c/k, so it is floor(c/u) + 1: a draw per pick, not per candidate.
    fn maybe_pick(&mut self, seed: u64) {
        self.seen += 1;
        if self.seen == self.next_pick {
            self.carried.copy_from_slice(&self.x);
            self.picked = self.step;
            let u = Address { seed, role: Role::Output, step: self.seen, sample: 0 }.stream().open_uniform();
            self.next_pick = ((self.seen as f64 / u) as u64).saturating_add(1);
        }
    }

    /// Accepts x_{t+1}, whose first `support` coordinates stand in `x_prev`, and counts the step; refuses it if it is
    /// no point to go on from.
    #[inline]
    pub(crate) fn accept(&mut self, distance2: f64, support: usize) -> Result<(), Divergence> {
        if distance2.is_nan() || distance2 > RUNAWAY_SQUARED {
            return Err(self.divergence());
        }
        std::mem::swap(&mut self.x, &mut self.x_prev);
        self.distance2 = distance2;
        self.t += 1;
        self.step += 1;
        let Self { x, x_prev, anchor, g, active, .. } = self;
        *active = support;
        while *active > 0 && [&*x, x_prev, anchor, g].iter().all(|v| v[*active - 1] == 0.0) {
            *active -= 1;
        }
        Ok(())
    }

    /// Says what went wrong and keeps x_t as the state.
    #[cold]
    fn divergence(&mut self) -> Divergence {
        let cause = if !self.g.iter().all(|g| g.is_finite()) {
            Divergence::Gradient { step: self.step }
        } else if !self.x_prev.iter().all(|x| x.is_finite()) {
            Divergence::NotFinite { step: self.step }
        } else {
            Divergence::Runaway { step: self.step }
        };
        self.x_prev.copy_from_slice(&self.x);
        self.g.fill(0.0);
        cause
    }
}

/// The number of coordinates up to the last that is not zero.
fn support(x: &[f64]) -> usize {
    x.iter().rposition(|x| *x != 0.0).map_or(0, |i| i + 1)
}
