//! A Python function as an oracle.
//!
//! The engine runs on threads of its own. Whatever it wants of Python goes as a [`Message`] to the thread that called: user code runs
//! where the user called, one call at a time, with that thread's context, and Ctrl-C reaches it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};

use pasta_opt::oracle::{About, Answer, Batch, Charge, Draw, Form, Oracle, OracleError, Request};

/// What the engine wants of the thread that called.
pub(crate) enum Message {
    /// Sums over samples.
    Ask(Question),
    /// To be shown to the callback, which says whether to stop.
    Show(Snapshot, SyncSender<Option<bool>>),
    /// To be said as a warning.
    Warn(String),
}

/// The engine's end of the line to Python.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) messages: Sender<Message>,
    /// Whether the run is to be stopped.
    pub(crate) stop: Arc<AtomicBool>,
    /// Whether the function turned out to give losses.
    pub(crate) gives_losses: Arc<AtomicBool>,
}

/// A request, with its own copy of the points.
pub(crate) struct Question {
    pub(crate) batch: Batch,
    pub(crate) points: Vec<Vec<f64>>,
    pub(crate) form: Form,
    pub(crate) losses: bool,
    /// `None` if the function raised, or the run is being stopped.
    pub(crate) reply: SyncSender<Option<Told>>,
}

/// What Python says to a question.
pub(crate) enum Told {
    /// The rows and then the losses.
    Sums(Vec<f64>),
    /// There are no more samples, but so many that are left for a last look.
    Ended(u64),
}

/// Where a run stands, for the callback.
pub(crate) struct Snapshot {
    pub(crate) step: u64,
    pub(crate) samples: u128,
    pub(crate) evaluations: u128,
    pub(crate) distance: f64,
    pub(crate) x: Vec<f64>,
}

/// Asks the thread that called.
pub(crate) struct Remote {
    pub(crate) about: About,
    pub(crate) line: Line,
}

impl Oracle for Remote {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let Draw::Batch(batch) = &request.draw else {
            return Err(OracleError::new("it does not know its gradient, only samples of it"));
        };
        let (reply, replied) = sync_channel(1);
        let question = Question {
            batch: batch.clone(),
            points: request.points.iter().map(|x| x.to_vec()).collect(),
            form: request.form,
            losses: request.losses,
            reply,
        };
        let numbers = match sent(&self.line, Message::Ask(question), &replied) {
            Some(Told::Sums(numbers)) => numbers,
            Some(Told::Ended(left)) => return Err(OracleError::exhausted(left)),
            None => return Err(OracleError::interrupted()),
        };
        let (gradients, losses) = numbers.split_at(answer.gradients.len());
        answer.gradients.copy_from_slice(gradients);
        if request.losses {
            answer.losses.copy_from_slice(losses);
        }
        Ok(request.usual_price(&self.about))
    }
}

/// Sends a message and waits for the reply; `None` also if nobody is there any more.
pub(crate) fn sent<T>(line: &Line, message: Message, reply: &Receiver<Option<T>>) -> Option<T> {
    line.messages.send(message).ok()?;
    reply.recv().ok().flatten()
}

/// Whether the run is being stopped.
pub(crate) fn is_set(flag: &Arc<AtomicBool>) -> bool {
    flag.load(Ordering::Relaxed)
}
