//! A pool of workers that is an oracle.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, slice};

use pasta_opt::oracle::{About, Answer, Batch, Charge, Draw, Form, Oracle, OracleError, Request, Source};
use serde::{Deserialize, Serialize};

#[cfg(not(unix))]
use crate::elsewhere::{Ask, Exchange, What, Worker, meet};
#[cfg(unix)]
use crate::exchange::{Ask, Exchange, What, meet};
use crate::fault::Fault;
use crate::protocol::{Hello, Points, Wanted, greeting};
#[cfg(unix)]
use crate::worker::Worker;
use crate::{OnStderr, Simulator, StartError};

/// Workers that answer: a simulator as an oracle. Dropping it ends them.
pub struct Pipe {
    pub(crate) simulator: Simulator,
    pub(crate) hello: Hello,
    about: About,
    pub(crate) greeting: Vec<u8>,
    pub(crate) on_stderr: OnStderr,
    slots: Mutex<Vec<Slot>>,
    freed: Condvar,
    pub(crate) next_id: AtomicU64,
    pub(crate) tally: Tally,
    spare: Mutex<Vec<Spare>>,
}

/// Memory of earlier questions: fresh pages would cost a long vector as much as the pipe does.
#[derive(Debug, Default)]
struct Spare {
    bytes: Vec<u8>,
    vectors: Vec<Vec<f64>>,
}

/// A place for a worker.
#[derive(Debug)]
enum Slot {
    /// No process has been started for it, or it has ended.
    Vacant,
    /// A process that waits for a question.
    Idle(Box<Worker>),
    /// Someone is asking it.
    Taken,
}

/// Which workers a question is put to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Those with a process first.
    Any,
    /// Others than the first question of the pool: new ones first.
    Others,
    /// The one with this number, from 0 on.
    Number(usize),
}

/// Counters that many threads add to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Questions to the pool, each of one request or more.
    questions: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) repeated_requests: AtomicU64,
    pub(crate) repeated_samples: AtomicU64,
    pub(crate) workers_started: AtomicU64,
    pub(crate) not_finite: AtomicU64,
    pub(crate) last: Mutex<Option<Fault>>,
    /// Whether a worker said that there are no more samples.
    has_ended: AtomicBool,
}

/// What the pool has done. Samples that were asked for again are in no ledger: they are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that failed and were asked again.
    pub repeated_requests: u64,
    /// Their samples.
    pub repeated_samples: u64,
    /// Processes that were started.
    pub workers_started: u64,
    /// Requests whose answer was not finite however often they were asked.
    pub not_finite: u64,
}

impl Counts {
    /// What two pools have done.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            repeated_requests: self.repeated_requests + other.repeated_requests,
            repeated_samples: self.repeated_samples + other.repeated_samples,
            workers_started: self.workers_started + other.workers_started,
            not_finite: self.not_finite + other.not_finite,
        }
    }
}

/// A question to one worker, for whoever examines the simulator itself.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The seed of the samples.
    pub seed: u64,
    /// Their numbers.
    pub samples: Range<u64>,
    /// Where.
    pub points: &'a [&'a [f64]],
    /// Whether losses are wanted.
    pub losses: bool,
    /// Whether sums of squared norms are wanted.
    pub squares: bool,
}

/// A worker's reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// Gradients, point after point.
    pub gradients: Vec<f64>,
    /// A loss for each point, if wanted.
    pub losses: Vec<f64>,
    /// A sum of squared norms for each point, if wanted.
    pub squares: Vec<f64>,
}

impl Pipe {
    /// Starts the first worker and hears what it says of itself; the others are started when there is work for them. Lines of
    /// stderr are handed to `on_stderr` with the worker's number.
    pub fn start(
        simulator: Simulator,
        on_stderr: impl Fn(usize, &str) + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        check(&simulator)?;
        let (greeting, on_stderr): (_, OnStderr) = (greeting(simulator.dimension), Arc::new(on_stderr));
        let (worker, hello) = meet(&simulator, &greeting, &on_stderr).map_err(StartError::Worker)?;
        let about = About {
            dim: simulator.dimension,
            identity: simulator.identity(&hello),
            source: Source::Stream,
            losses: hello.losses,
            shared: hello.reproducible,
            pathwise: simulator.pathwise.unwrap_or(hello.pathwise),
            additive: hello.additive,
            trusted: false,
        };
        let mut slots: Vec<Slot> = (0..simulator.workers).map(|_| Slot::Vacant).collect();
        slots[0] = Slot::Idle(Box::new(worker));
        let tally = Tally { workers_started: AtomicU64::new(1), ..Tally::default() };
        let (slots, next_id) = (Mutex::new(slots), AtomicU64::new(1));
        Ok(Self {
            simulator,
            hello,
            about,
            greeting,
            on_stderr,
            slots,
            freed: Condvar::new(),
            next_id,
            tally,
            spare: Mutex::default(),
        })
    }

    /// The command and how it is used.
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// What its workers say of themselves.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// What the pool has done so far.
    pub fn counts(&self) -> Counts {
        let Tally { requests, repeated_requests, repeated_samples, workers_started, not_finite, .. } =
            &self.tally;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: read(requests),
            repeated_requests: read(repeated_requests),
            repeated_samples: read(repeated_samples),
            workers_started: read(workers_started),
            not_finite: read(not_finite),
        }
    }

    /// The last failure of a worker, whether or not the request was answered in the end.
    pub fn last_fault(&self) -> Option<Fault> {
        self.tally.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks one worker by its number, from 0 on. It is not counted in any ledger: for those who examine the simulator.
    pub fn ask_worker(&self, number: usize, question: &Question<'_>) -> Result<Sums, OracleError> {
        let Question { seed, samples, points, losses, squares } = question.clone();
        let wrong = |sentence: &str| Err(OracleError::new(sentence.to_owned()));
        if number >= self.simulator.workers {
            return wrong("there is no such worker");
        }
        if samples.is_empty() || points.is_empty() || points.iter().any(|x| x.len() != self.about.dim) {
            return wrong("it was asked for no samples, at no point, or at points of another dimension");
        }
        let wanted = Wanted { losses, squares };
        if losses && !self.hello.losses || squares && !self.hello.squares {
            return wrong("it does not give what is wanted beside the gradients");
        }
        let points = Points::new(points, wanted, self.hello.framing, Vec::new());
        let ask = Ask { what: What::Samples { seed, samples }, differences: false, points: &points };
        let mut exchange = Exchange::new(self, &ask, Who::Number(number), Vec::new());
        let mut gradients = exchange.run(&AtomicBool::new(false))?.pop().unwrap_or_default();
        let mut rest = gradients.split_off(points.count * points.dim);
        let squares = if squares { rest.split_off(rest.len() - points.count) } else { Vec::new() };
        Ok(Sums { gradients, losses: rest, squares })
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        // A thread that panicked did not leave a slot half written.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `most` places, by their numbers and with their processes, if they have any. Waits for the first of them if it may.
    pub(crate) fn take(&self, most: usize, who: Who, may_wait: bool) -> Vec<(usize, Option<Box<Worker>>)> {
        let mut slots = self.slots();
        let (idle, vacant) = ((0..slots.len()).map(|i| (i, true)), (0..slots.len()).map(|i| (i, false)));
        let order: Vec<(usize, bool)> = match who {
            Who::Any => idle.chain(vacant).collect(),
            Who::Others => vacant.chain(idle.rev()).collect(),
            Who::Number(number) => vec![(number, true), (number, false)],
        };
        loop {
            let mut taken = Vec::new();
            for &(i, with_process) in &order {
                let slot = &mut slots[i];
                match slot {
                    _ if taken.len() >= most => break,
                    Slot::Idle(_) if with_process => {
                        if let Slot::Idle(worker) = std::mem::replace(slot, Slot::Taken) {
                            taken.push((i, Some(worker)));
                        }
                    }
                    Slot::Vacant if !with_process => {
                        *slot = Slot::Taken;
                        taken.push((i, None));
                    }
                    _ => {}
                }
            }
            if !taken.is_empty() || !may_wait {
                return taken;
            }
            let waited = self.freed.wait_timeout(slots, Duration::from_millis(20));
            slots = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !matches!(who, Who::Number(_)) && slots.iter().all(|slot| matches!(slot, Slot::Taken)) {
                // The caller looks at its flag.
                return taken;
            }
        }
    }

    /// Gives a place back, with its process if that waits for a question.
    pub(crate) fn give_back(&self, index: usize, worker: Option<Box<Worker>>) {
        self.slots()[index] = worker.map_or(Slot::Vacant, Slot::Idle);
        self.freed.notify_one();
    }
}

fn check(simulator: &Simulator) -> Result<(), StartError> {
    let Simulator { command, dimension, workers, block, .. } = simulator;
    let needs =
        |holds: bool, name, needs| if holds { Ok(()) } else { Err(StartError::Setting { name, needs }) };
    needs(command.first().is_some_and(|word| !word.is_empty()), "command", "a program and its arguments")?;
    needs(*dimension >= 1, "dimension", "at least one coordinate")?;
    needs(*workers >= 1, "workers", "at least one")?;
    needs((1..=MOST).contains(block), "block", "a number of samples from 1 to 2^32")
}

/// Numbers of samples in a block stay exact in any language.
const MOST: u64 = 1 << 32;

impl Oracle for Pipe {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let Draw::Batch(batch) = &request.draw else {
            return Err(OracleError::new("it does not know its gradient, only samples of it"));
        };
        // Nobody is asked again: a worker that is started anew might read the same rows from their beginning.
        if self.tally.has_ended.load(Ordering::Relaxed) {
            return Err(self.ended());
        }
        let wanted = Wanted { losses: request.losses, squares: false };
        let Spare { bytes, vectors } = self.spare().pop().unwrap_or_default();
        let points = Points::new(request.points, wanted, self.hello.framing, bytes);
        let vectors = match request.team {
            None => {
                let (mut sums, mut vectors) = self.sums(slice::from_ref(batch), request, &points, vectors)?;
                vectors.extend(sums.pop().inspect(|sum| put(sum, answer)));
                vectors
            }
            Some(team) => {
                let width = answer.gradients.len() + if request.losses { answer.losses.len() } else { 0 };
                let (spare, mut whole) = (Mutex::new(vectors), vec![0.0; width]);
                team.sum(batch.count(), batch, self.simulator.block, &mut whole, &|parts, out| {
                    let vectors = std::mem::take(&mut *spare.lock().unwrap_or_else(PoisonError::into_inner));
                    let (sums, vectors) = self.sums(parts, request, &points, vectors)?;
                    out.chunks_mut(width).zip(&sums).for_each(|(out, sum)| out.copy_from_slice(sum));
                    *spare.lock().unwrap_or_else(PoisonError::into_inner) = vectors;
                    Ok(())
                })?;
                put(&whole, answer);
                spare.into_inner().unwrap_or_else(PoisonError::into_inner)
            }
        };
        let bytes = match points.bytes {
            Cow::Owned(bytes) => bytes,
            Cow::Borrowed(_) => Vec::new(),
        };
        let mut spare = self.spare();
        if spare.len() < self.simulator.workers {
            spare.push(Spare { bytes, vectors });
        }
        Ok(request.usual_price(&self.about))
    }

    fn leaf(&self) -> Option<u64> {
        Some(self.simulator.block)
    }
}

/// Writes a sum, gradients first, to the answer.
fn put(sum: &[f64], answer: &mut Answer<'_>) {
    let (gradients, losses) = sum.split_at(answer.gradients.len());
    answer.gradients.copy_from_slice(gradients);
    answer.losses.iter_mut().zip(losses).for_each(|(answer, loss)| *answer = *loss);
}

impl Pipe {
    /// There are no more samples.
    pub(crate) fn ended(&self) -> OracleError {
        self.tally.has_ended.store(true, Ordering::Relaxed);
        OracleError::exhausted(0)
    }

    /// The sums of parts of a batch, and vectors that can be used again.
    fn sums(
        &self,
        parts: &[Batch],
        request: &Request<'_>,
        points: &Points<'_>,
        spare: Vec<Vec<f64>>,
    ) -> Result<(Vec<Vec<f64>>, Vec<Vec<f64>>), OracleError> {
        let differences = request.form == Form::Differences;
        let ask = Ask { what: What::Parts(parts), differences, points };
        let never = AtomicBool::new(false);
        // A check begins with the same question twice: two workers have to give the same answer.
        let is_second = self.tally.questions.fetch_add(1, Ordering::Relaxed) == 1;
        let who = if is_second { Who::Others } else { Who::Any };
        let mut exchange = Exchange::new(self, &ask, who, spare);
        let sums = exchange.run(request.stop.unwrap_or(&never))?;
        Ok((sums, exchange.take_spare()))
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe")
            .field("simulator", &self.simulator)
            .field("hello", &self.hello)
            .finish_non_exhaustive()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let slots = self.slots.get_mut().unwrap_or_else(PoisonError::into_inner);
        for slot in slots.drain(..) {
            if let Slot::Idle(worker) = slot {
                worker.end(&self.on_stderr);
            }
        }
    }
}
