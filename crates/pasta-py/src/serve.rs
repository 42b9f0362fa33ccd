//! The thread that called: it answers the engine by calling Python, and looks for signals while it waits.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pasta_opt::oracle::{Batch, Form};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::asking::{cut, total};
use crate::oracle::{Message, Question, Snapshot, Told, is_set};

create_exception!(
    pasta_opt._engine,
    StreamEnded,
    PyException,
    "Raised by an oracle whose samples have come to an end."
);

/// How long Ctrl-C may have to wait while the engine computes.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);

/// The Python side of a run.
pub(crate) struct Server<'py> {
    py: Python<'py>,
    /// `pasta_opt._oracle.Leaves`: sums over the samples of a block.
    leaves: Bound<'py, PyAny>,
    callback: Option<Bound<'py, PyAny>>,
    block: u64,
    /// Whether leaves are answered by other processes, so that all that are wanted go there at once.
    pooled: bool,
    stop: Arc<AtomicBool>,
    /// Whether the function turned out to give losses.
    gives_losses: Arc<AtomicBool>,
    raised: Option<PyErr>,
}

impl<'py> Server<'py> {
    pub(crate) fn new(
        leaves: Bound<'py, PyAny>,
        callback: Option<Bound<'py, PyAny>>,
        stop: Arc<AtomicBool>,
        gives_losses: Arc<AtomicBool>,
    ) -> PyResult<Self> {
        let block = leaves.getattr("block")?.extract()?;
        let pooled = leaves.getattr("pooled")?.is_truthy()?;
        Ok(Self { py: leaves.py(), leaves, callback, block, pooled, stop, gives_losses, raised: None })
    }

    /// Answers until the engine is done. What the user's code raised, if it did.
    pub(crate) fn serve(mut self, mut messages: Receiver<Message>) -> Option<PyErr> {
        loop {
            let receiver = &mut messages;
            match self.py.detach(move || receiver.recv_timeout(PATIENCE)) {
                Ok(Message::Ask(question)) if self.pooled => self.answer_at_once(question, &messages),
                Ok(Message::Ask(question)) => {
                    let told = self.unless_raised(|server| server.told(&question));
                    // The engine may be gone.
                    let _ = question.reply.send(told);
                }
                Ok(Message::Show(snapshot, reply)) => {
                    let _ = reply.send(self.unless_raised(|server| server.show(&snapshot)));
                }
                Ok(Message::Warn(words)) => {
                    self.unless_raised(|server| warn(server.py, &words));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.unless_raised(|server| server.py.check_signals());
                }
                Err(RecvTimeoutError::Disconnected) => return self.raised,
            }
        }
    }

    /// Has other processes answer a question, and all that wait behind it.
    fn answer_at_once(&mut self, first: Question, messages: &Receiver<Message>) {
        let mut open = vec![first];
        while let Ok(message) = messages.try_recv() {
            match message {
                Message::Ask(question) => open.push(question),
                Message::Show(moment, reply) => {
                    let _ = reply.send(self.unless_raised(|server| server.show(&moment)));
                }
                Message::Warn(words) => {
                    self.unless_raised(|server| warn(server.py, &words));
                }
            }
        }
        let answers = self.unless_raised(|server| server.pooled_sums(&open));
        let mut answers = answers.map(Vec::into_iter);
        for question in open {
            // The engine may be gone.
            let _ = question.reply.send(answers.as_mut().and_then(Iterator::next).map(Told::Sums));
        }
    }

    /// The sums of some questions, all of whose leaves are asked for in one call.
    fn pooled_sums(&self, questions: &[Question]) -> PyResult<Vec<Vec<f64>>> {
        self.py.check_signals()?;
        let (mut asked, mut counts) = (Vec::new(), Vec::new());
        for question in questions {
            let points = PyList::new(self.py, question.points.iter().map(|x| read_only(self.py, x)))?;
            let mut batches = Vec::new();
            cut(&question.batch, self.block, &mut batches);
            counts.push(batches.len());
            for batch in &batches {
                asked.push(self.leaf_of(batch, &points, question)?);
            }
        }
        let mut answers = self.leaves.call_method1("all_sums", (asked,))?.try_iter()?;
        if self.leaves.getattr("losses")?.is_truthy()? {
            self.gives_losses.store(true, Ordering::Relaxed);
        }
        let short = || PyRuntimeError::new_err("a block was not answered");
        let sums = questions.iter().zip(counts).map(|(question, count)| {
            let told = (0..count).map(|_| numbers(&answers.next().ok_or_else(short)??, question));
            let told: Vec<Vec<f64>> = told.collect::<PyResult<_>>()?;
            Ok(total(&question.batch, self.block, &mut told.into_iter()))
        });
        sums.collect()
    }

    /// Keeps the first exception, and has the engine stop.
    fn unless_raised<T>(&mut self, work: impl FnOnce(&Self) -> PyResult<T>) -> Option<T> {
        if self.raised.is_some() {
            return None;
        }
        work(self)
            .map_err(|error| {
                self.stop.store(true, Ordering::Relaxed);
                self.raised = Some(error);
            })
            .ok()
    }

    fn show(&self, snapshot: &Snapshot) -> PyResult<bool> {
        let Some(callback) = &self.callback else { return Ok(false) };
        let Snapshot { step, samples, evaluations, distance, x } = snapshot;
        callback.call1((*step, *samples, *evaluations, *distance, read_only(self.py, x)))?.is_truthy()
    }

    /// The sums, or that the samples have come to an end.
    fn told(&self, question: &Question) -> PyResult<Told> {
        match self.sums(question) {
            Ok(sums) => Ok(Told::Sums(sums)),
            Err(error) if error.is_instance_of::<StreamEnded>(self.py) => {
                let (left,) = error.value(self.py).getattr("args")?.extract()?;
                Ok(Told::Ended(left))
            }
            Err(error) => Err(error),
        }
    }

    fn sums(&self, question: &Question) -> PyResult<Vec<f64>> {
        let points = PyList::new(self.py, question.points.iter().map(|x| read_only(self.py, x)))?;
        let sums = self.sum(&question.batch, &points, question)?;
        if self.leaves.getattr("losses")?.is_truthy()? {
            self.gives_losses.store(true, Ordering::Relaxed);
        }
        Ok(sums)
    }

    /// Down the tree of halves, whose order of additions belongs to the batch.
    fn sum(&self, batch: &Batch, points: &Bound<'py, PyList>, question: &Question) -> PyResult<Vec<f64>> {
        let Some([left, right]) = batch.halves(self.block) else { return self.leaf(batch, points, question) };
        let mut sum = self.sum(&left, points, question)?;
        if is_set(&self.stop) {
            return Err(PyRuntimeError::new_err("the run is being stopped"));
        }
        let other = self.sum(&right, points, question)?;
        sum.iter_mut().zip(&other).for_each(|(total, term)| *total += term);
        Ok(sum)
    }

    /// The samples of one block, in Python.
    fn leaf(&self, batch: &Batch, points: &Bound<'py, PyList>, question: &Question) -> PyResult<Vec<f64>> {
        self.py.check_signals()?;
        let leaf = self.leaf_of(batch, points, question)?;
        numbers(&self.leaves.call_method1("sums", leaf)?, question)
    }

    /// What Python is asked for a block. Generators are set by position: one for each sample, and one for the block as a whole.
    fn leaf_of(
        &self,
        batch: &Batch,
        points: &Bound<'py, PyList>,
        question: &Question,
    ) -> PyResult<Leaf<'py>> {
        let batched: bool = self.leaves.getattr("batched")?.extract()?;
        let streams: Vec<_> = if batched {
            vec![batch.whole().position()]
        } else {
            batch.samples.clone().map(|number| batch.sample(number).position()).collect()
        };
        let key = streams.first().map_or([0; 2], |(key, _)| *key);
        let counters: Vec<[u64; 4]> = streams.into_iter().map(|(_, counter)| before(counter)).collect();
        let differences = question.form == Form::Differences;
        Ok((points.clone(), key, counters, batch.count(), differences, question.losses))
    }
}

/// Says something as a warning, which a filter may turn into an exception.
pub(crate) fn warn(py: Python<'_>, words: &str) -> PyResult<()> {
    let category = py.get_type::<PyUserWarning>();
    PyErr::warn(py, &category, &CString::new(words)?, 2)
}

/// Points, key, counters, count, whether differences are wanted, whether losses are.
type Leaf<'py> = (Bound<'py, PyList>, [u64; 2], Vec<[u64; 4]>, u64, bool, bool);

/// The answer for a block of a question.
fn numbers(sums: &Bound<'_, PyAny>, question: &Question) -> PyResult<Vec<f64>> {
    let sums: PyReadonlyArray1<'_, f64> = sums.extract()?;
    let rows = question.points.len() - usize::from(question.form == Form::Differences);
    let losses = if question.losses { question.points.len() } else { 0 };
    let needed = rows * question.points[0].len() + losses;
    match sums.as_slice() {
        Ok(sums) if sums.len() == needed => Ok(sums.to_vec()),
        _ => Err(PyValueError::new_err(format!("expected {needed} numbers in a row, got {}", sums.len()?))),
    }
}

/// numpy's Philox counts before it draws a block, this library afterwards.
pub(crate) fn before(counter: [u64; 4]) -> [u64; 4] {
    let mut words = counter;
    for word in &mut words {
        let (less, borrowed) = word.overflowing_sub(1);
        *word = less;
        if !borrowed {
            break;
        }
    }
    words
}

/// An array that user code cannot write to, with numbers of its own: it may be kept.
pub(crate) fn read_only<'py>(py: Python<'py>, x: &[f64]) -> Bound<'py, PyArray1<f64>> {
    let array = PyArray1::from_slice(py, x);
    array.readwrite().make_nonwriteable();
    array
}
