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

use crate::oracle::{Line, Message, Question, Told};
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
    /// What was asked and not told yet.
    open: Vec<Open>,
    /// Leaves that were asked for so far: the number of the next.
    leaves: u64,
}

/// A question, its leaves in the order of additions, and what was told of them.
struct Open {
    question: Question,
    /// The number of the first leaf.
    first: u64,
    leaves: Vec<Batch>,
    told: Vec<Option<Vec<f64>>>,
    /// Leaves that were taken one by one, and not put back.
    out: Vec<bool>,
}

/// Points, key, counters, count, whether differences are wanted, whether losses are.
type Leaf<'py> = (Vec<Bound<'py, PyArray1<f64>>>, [u64; 2], Vec<[u64; 4]>, u64, bool, bool);
/// A leaf with its number in the run.
type NumberedLeaf<'py> = (u64, Leaf<'py>);

const ENDED: &str = "the run has ended: ask() returned None, and nothing more is wanted";

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
        let state = State { messages: Some(messages), engine: Some(engine), open: Vec::new(), leaves: 0 };
        Ok(Self { state: Mutex::new(state), block, batched, stop })
    }

    /// All that is wanted at the moment, in leaves; `None` at the end of the run.
    fn ask<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<NumberedLeaf<'py>>>> {
        let mut state = self.state(py);
        if !self.has_open(py, &mut state)? {
            return Ok(None);
        }
        let open = state.open.iter().flat_map(|open| open.untold().map(move |i| (open, i)));
        Ok(Some(open.map(|(open, i)| self.leaf(py, open, i)).collect()))
    }

    /// At most `most` leaves that nobody works on: none while others are out that the run waits for; `None` at its end.
    fn take<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Vec<NumberedLeaf<'py>>>> {
        let mut state = self.state(py);
        if !self.has_open(py, &mut state)? {
            return Ok(None);
        }
        self.receive(py, &mut state)?;
        let mut taken = Vec::new();
        for open in &mut state.open {
            let free: Vec<usize> = open.untold().filter(|&i| !open.out[i]).take(most - taken.len()).collect();
            for i in free {
                open.out[i] = true;
                taken.push(self.leaf(py, open, i));
            }
        }
        Ok(Some(taken))
    }

    /// Has a leaf that was taken be taken by somebody else.
    fn put_back(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        let mut state = self.state(py);
        let (open, i) = Self::find(&state, number)?;
        state.open[open].out[i] = false;
        Ok(())
    }

    /// Takes the sums of one leaf: rows, then losses.
    fn give(&self, py: Python<'_>, number: u64, sums: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let mut state = self.state(py);
        if state.open.is_empty() && self.stop.load(Ordering::Relaxed) && state.messages.is_some() {
            return Ok(());
        }
        let (open, i) = Self::find(&state, number)?;
        state.open[open].tell(i, sums.as_slice()?)?;
        self.reply(py, &mut state);
        Ok(())
    }

    /// Takes the sums of all leaves that were asked for, in their order: rows, then losses.
    fn tell(&self, py: Python<'_>, sums: Vec<PyReadonlyArray1<'_, f64>>) -> PyResult<()> {
        let mut state = self.state(py);
        if state.open.is_empty() {
            // Another thread may have stopped the run since it asked.
            let stopped = self.stop.load(Ordering::Relaxed);
            if state.messages.is_none() {
                return Err(PyRuntimeError::new_err(ENDED));
            }
            let refused = || PyRuntimeError::new_err("nothing was asked: call ask() first");
            return stopped.then_some(()).ok_or_else(refused);
        }
        let wanted: Vec<(usize, usize)> =
            state.open.iter().enumerate().flat_map(|(q, open)| open.untold().map(move |i| (q, i))).collect();
        if sums.len() != wanted.len() {
            let message = format!("{} blocks were asked for, but {} were told", wanted.len(), sums.len());
            return Err(PyValueError::new_err(message));
        }
        // All of them or none: a wrong one can be told again.
        for ((q, _), sums) in wanted.iter().zip(&sums) {
            state.open[*q].check(sums.as_slice()?)?;
        }
        for ((q, i), sums) in wanted.into_iter().zip(&sums) {
            state.open[q].tell(i, sums.as_slice()?)?;
        }
        self.reply(py, &mut state);
        Ok(())
    }

    /// Stops the run: the next `ask` finds its end.
    fn stop(&self, py: Python<'_>) {
        self.stop.store(true, Ordering::Relaxed);
        let mut state = self.state(py);
        state.open.drain(..).for_each(|open| {
            let _ = open.question.reply.send(None);
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

    /// True once something is wanted, which may take a while; false at the end of the run.
    fn has_open(&self, py: Python<'_>, state: &mut State) -> PyResult<bool> {
        if state.open.is_empty() {
            let Some(messages) = state.messages.take() else { return Ok(false) };
            let (messages, first) = self.wait(py, messages)?;
            let Some(question) = first else { return Ok(false) };
            state.messages = Some(messages);
            self.open(state, question);
            self.receive(py, state)?;
        }
        Ok(true)
    }

    /// Whatever else the engine wants already can be answered at the same time.
    fn receive(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        while let Some(Ok(message)) = state.messages.as_ref().map(Receiver::try_recv) {
            match message {
                Message::Ask(question) => self.open(state, question),
                Message::Warn(words) => warn(py, &words)?,
                // Nobody looks.
                Message::Show(_, reply) => {
                    let _ = reply.send(Some(false));
                }
            }
        }
        Ok(())
    }

    fn open(&self, state: &mut State, question: Question) {
        let (mut leaves, first) = (Vec::new(), state.leaves);
        cut(&question.batch, self.block, &mut leaves);
        let (told, out) = (vec![None; leaves.len()], vec![false; leaves.len()]);
        state.leaves += leaves.len() as u64;
        state.open.push(Open { question, first, leaves, told, out });
    }

    /// Where a leaf is that is not told yet.
    fn find(state: &State, number: u64) -> PyResult<(usize, usize)> {
        let found = state.open.iter().enumerate().find_map(|(q, open)| {
            let i = usize::try_from(number.checked_sub(open.first)?).ok()?;
            open.told.get(i)?.is_none().then_some((q, i))
        });
        found.ok_or_else(|| {
            let ended = state.messages.is_none().then(|| ENDED.into());
            PyRuntimeError::new_err(ended.unwrap_or_else(|| {
                format!("block {number} is not wanted: it was told before, or never asked for")
            }))
        })
    }

    fn leaf<'py>(&self, py: Python<'py>, open: &Open, i: usize) -> NumberedLeaf<'py> {
        let (question, batch) = (&open.question, &open.leaves[i]);
        let streams: Vec<_> = if self.batched {
            vec![batch.whole().position()]
        } else {
            batch.samples.clone().map(|number| batch.sample(number).position()).collect()
        };
        let key = streams.first().map_or([0; 2], |(key, _)| *key);
        let counters = streams.into_iter().map(|(_, counter)| before(counter)).collect();
        let points = question.points.iter().map(|x| read_only(py, x)).collect();
        let differences = question.form == Form::Differences;
        (open.first + i as u64, (points, key, counters, batch.count(), differences, question.losses))
    }

    /// Answers the questions all of whose leaves are told.
    fn reply(&self, py: Python<'_>, state: &mut State) {
        let (done, open) = std::mem::take(&mut state.open).into_iter().partition(Open::is_told);
        state.open = open;
        let done: Vec<Open> = done;
        py.detach(|| {
            for Open { question, told, .. } in done {
                let sum = total(&question.batch, self.block, &mut told.into_iter().flatten());
                // The engine may be gone.
                let _ = question.reply.send(Some(Told::Sums(sum)));
            }
        });
    }
}

impl Open {
    /// The places of the leaves that are not told yet.
    fn untold(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.told.len()).filter(|&i| self.told[i].is_none())
    }

    fn is_told(&self) -> bool {
        self.told.iter().all(Option::is_some)
    }

    fn check(&self, sums: &[f64]) -> PyResult<()> {
        let question = &self.question;
        let differences = usize::from(question.form == Form::Differences);
        let losses = if question.losses { question.points.len() } else { 0 };
        let needed = (question.points.len() - differences) * question.points[0].len() + losses;
        if sums.len() == needed {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("expected {needed} numbers for a block, got {}", sums.len())))
    }

    fn tell(&mut self, i: usize, sums: &[f64]) -> PyResult<()> {
        self.check(sums)?;
        self.told[i] = Some(sums.to_vec());
        Ok(())
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
