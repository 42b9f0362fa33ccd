//! A run that is answered from outside: it says which samples it wants where, and is told their sums.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use numpy::{PyArray1, PyReadonlyArray1};
use pasta_opt::oracle::{Batch, Form};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::oracle::{Line, Message, Question};
use crate::run::{self, Job, Outcome, Shows, Trouble};
use crate::serve::{PATIENCE, before, read_only, warn};
use crate::{Beginning, Ended, ended, pool, source::OracleSource, trouble};

/// A run that asks and is told.
#[pyclass(frozen, module = "pasta_opt._engine")]
pub(crate) struct Asking {
    state: Mutex<State>,
    /// Samples of a leaf.
    block: u64,
    /// Whether a leaf has one generator, or each of its samples.
    batched: bool,
    stop: Arc<AtomicBool>,
}

struct State {
    messages: Option<Receiver<Message>>,
    engine: Option<JoinHandle<Result<Outcome, Trouble>>>,
    /// What was asked and not told yet: a question, and its leaves in the order of additions.
    open: Vec<(Question, Vec<Batch>)>,
}

/// Points, key, counters, count, whether differences are wanted, whether losses are.
type Leaf<'py> = (Vec<Bound<'py, PyArray1<f64>>>, [u64; 2], Vec<[u64; 4]>, u64, bool, bool);

#[pymethods]
impl Asking {
    #[new]
    fn new(
        identity: String,
        losses: bool,
        block: u64,
        batched: bool,
        pathwise: bool,
        beginning: Beginning<'_>,
    ) -> PyResult<Self> {
        let Beginning { budget, threads, no_limit, .. } = beginning;
        let dim = beginning.x0.as_slice()?.len();
        let asked = OracleSource::Python { identity, dim, batched, losses: Some(losses), pathwise };
        let (begin, shows) = (beginning.read()?, Shows::Never);
        let job = Job { begin, asked, budget, no_limit, shows, checkpoint: None };
        let pool = pool(threads)?;
        let stop = Arc::<AtomicBool>::default();
        let (line, messages) = channel();
        let line = Line { messages: line, stop: Arc::clone(&stop), gives_losses: Arc::default() };
        let work = move || pool.install(|| run::run(job, line));
        let engine = thread::Builder::new().name("pasta".into()).spawn(work)?;
        let state = State { messages: Some(messages), engine: Some(engine), open: Vec::new() };
        Ok(Self { state: Mutex::new(state), block, batched, stop })
    }

    /// All that is wanted at the moment, in leaves; `None` at the end of the run.
    fn ask<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Leaf<'py>>>> {
        let mut state = self.state(py);
        if state.open.is_empty() {
            let Some(messages) = state.messages.take() else { return Ok(None) };
            let (messages, first) = self.wait(py, messages)?;
            state.messages = Some(messages);
            match first {
                None => {
                    state.messages = None;
                    return Ok(None);
                }
                Some(question) => state.open.push(self.cut(question)),
            }
            // Whatever else the engine wants already can be answered at the same time.
            while let Some(Ok(Message::Ask(question))) = state.messages.as_ref().map(Receiver::try_recv) {
                let cut = self.cut(question);
                state.open.push(cut);
            }
        }
        let leaf = |question: &Question, batch: &Batch| {
            let streams: Vec<_> = if self.batched {
                vec![batch.whole().position()]
            } else {
                batch.samples.clone().map(|number| batch.sample(number).position()).collect()
            };
            let key = streams.first().map_or([0; 2], |(key, _)| *key);
            let counters = streams.into_iter().map(|(_, counter)| before(counter)).collect();
            let points = question.points.iter().map(|x| read_only(py, x)).collect();
            let differences = question.form == Form::Differences;
            (points, key, counters, batch.count(), differences, question.losses)
        };
        let leaves = state.open.iter().flat_map(|(question, batches)| {
            batches.iter().map(|batch| leaf(question, batch)).collect::<Vec<_>>()
        });
        Ok(Some(leaves.collect()))
    }

    /// Takes the sums of all leaves that were asked for, in their order: rows, then losses.
    fn tell(&self, py: Python<'_>, sums: Vec<PyReadonlyArray1<'_, f64>>) -> PyResult<()> {
        let mut state = self.state(py);
        if state.open.is_empty() {
            // Another thread may have stopped the run since it asked.
            let stopped = self.stop.load(Ordering::Relaxed);
            if state.messages.is_none() {
                return Err(PyRuntimeError::new_err(
                    "the run has ended: ask() returned None, and nothing more is wanted",
                ));
            }
            let refused = || PyRuntimeError::new_err("nothing was asked: call ask() first");
            return stopped.then_some(()).ok_or_else(refused);
        }
        let wanted: usize = state.open.iter().map(|(_, batches)| batches.len()).sum();
        if sums.len() != wanted {
            let message = format!("{wanted} blocks were asked for, but {} were told", sums.len());
            return Err(PyValueError::new_err(message));
        }
        let mut told = sums.iter();
        let mut totals = Vec::with_capacity(state.open.len());
        for (question, batches) in &state.open {
            let differences = usize::from(question.form == Form::Differences);
            let losses = if question.losses { question.points.len() } else { 0 };
            let needed = (question.points.len() - differences) * question.points[0].len() + losses;
            let mut leaves = Vec::with_capacity(batches.len());
            for sums in told.by_ref().take(batches.len()) {
                let sums = sums.as_slice()?;
                if sums.len() != needed {
                    let message = format!("expected {needed} numbers for a block, got {}", sums.len());
                    return Err(PyValueError::new_err(message));
                }
                leaves.push(sums.to_vec());
            }
            totals.push(total(&question.batch, self.block, &mut leaves.into_iter()));
        }
        let open = std::mem::take(&mut state.open);
        py.detach(|| {
            for ((question, _), total) in open.into_iter().zip(totals) {
                // The engine may be gone.
                let _ = question.reply.send(Some(total));
            }
        });
        Ok(())
    }

    /// Stops the run: the next `ask` finds its end.
    fn stop(&self, py: Python<'_>) {
        self.stop.store(true, Ordering::Relaxed);
        let mut state = self.state(py);
        state.open.drain(..).for_each(|(question, _)| {
            let _ = question.reply.send(None);
        });
    }

    /// What the run came to, once.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Ended<'py>> {
        let mut state = self.state(py);
        if state.messages.is_some() {
            return Err(PyRuntimeError::new_err("the run goes on: ask() returns None at its end"));
        }
        let engine = state.engine.take();
        drop(state);
        let engine = engine.ok_or_else(|| PyRuntimeError::new_err("the result was taken already"))?;
        let outcome = py.detach(|| engine.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended(py, outcome.map_err(trouble)?)
    }
}

impl Asking {
    /// Waits for a call of another thread without holding up the interpreter, which that one may need to go on.
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next question; `None` when the engine is done.
    fn wait(
        &self,
        py: Python<'_>,
        messages: Receiver<Message>,
    ) -> PyResult<(Receiver<Message>, Option<Question>)> {
        let mut messages = messages;
        loop {
            let (back, received) = py.detach(move || {
                let received = messages.recv_timeout(PATIENCE);
                (messages, received)
            });
            messages = back;
            match received {
                Ok(Message::Ask(question)) => return Ok((messages, Some(question))),
                Ok(Message::Warn(words)) => warn(py, &words)?,
                // Nobody looks.
                Ok(Message::Show(_, reply)) => {
                    let _ = reply.send(Some(false));
                }
                Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| {
                    self.stop.store(true, Ordering::Relaxed);
                })?,
                Err(RecvTimeoutError::Disconnected) => return Ok((messages, None)),
            }
        }
    }

    fn cut(&self, question: Question) -> (Question, Vec<Batch>) {
        let mut leaves = Vec::new();
        cut(&question.batch, self.block, &mut leaves);
        (question, leaves)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // The engine finds nobody there, and ends.
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The leaves of a batch, in the order of additions.
pub(crate) fn cut(batch: &Batch, block: u64, leaves: &mut Vec<Batch>) {
    match batch.halves(block) {
        None => leaves.push(batch.clone()),
        Some([left, right]) => {
            cut(&left, block, leaves);
            cut(&right, block, leaves);
        }
    }
}

/// Adds up leaves in the order that belongs to the batch.
pub(crate) fn total(batch: &Batch, block: u64, leaves: &mut impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    match batch.halves(block) {
        None => leaves.next().expect("a leaf for each leaf"),
        Some([left, right]) => {
            let mut sum = total(&left, block, leaves);
            let other = total(&right, block, leaves);
            sum.iter_mut().zip(&other).for_each(|(sum, term)| *sum += term);
            sum
        }
    }
}
