//! Whom this crate talks to. It prints nothing itself: a program that wants to hear what is going on [listens](listen).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Watch;

/// Somebody who hears what is going on.
pub trait Listener: Send + Sync {
    /// A remark.
    fn say(&self, line: &str);

    /// A remark while a file is being read.
    fn say_meanwhile(&self, line: &str);

    /// A line of a simulator, which is no remark of ours.
    fn pass_on(&self, line: &str);

    /// True if somebody was asked and says yes.
    fn agrees(&self, question: &str) -> bool;

    /// Calls `read` with what follows how much of a file is read.
    fn follow(&self, read: &mut dyn FnMut(Watch<'_>));
}

static LISTENER: OnceLock<&'static dyn Listener> = OnceLock::new();

/// From here on this one is told what is going on. The first to call it stays.
pub fn listen(listener: &'static dyn Listener) {
    let _ = LISTENER.set(listener);
}

/// A remark.
pub(crate) fn say(line: &str) {
    if let Some(listener) = LISTENER.get() {
        listener.say(line);
    }
}

/// A remark while a file is being read.
pub(crate) fn say_meanwhile(line: &str) {
    if let Some(listener) = LISTENER.get() {
        listener.say_meanwhile(line);
    }
}

/// A line of a simulator.
pub(crate) fn pass_on(line: &str) {
    if let Some(listener) = LISTENER.get() {
        listener.pass_on(line);
    }
}

/// True if somebody was asked and says yes.
pub(crate) fn agrees(question: &str) -> bool {
    LISTENER.get().is_some_and(|listener| listener.agrees(question))
}

/// Calls `read` with what follows how much of a file is read.
pub(crate) fn follow<T>(read: impl FnOnce(Watch<'_>) -> T) -> T {
    let Some(listener) = LISTENER.get() else { return read(&|_, _| {}) };
    let (mut read, mut done) = (Some(read), None);
    listener.follow(&mut |watch| {
        if let Some(read) = read.take() {
            done = Some(read(watch));
        }
    });
    match (done, read) {
        (Some(done), _) => done,
        // Nobody called it.
        (None, Some(read)) => read(&|_, _| {}),
        (None, None) => unreachable!("what was read is done"),
    }
}

/// Whether another process talks and writes for this one.
static MUTED: AtomicBool = AtomicBool::new(false);

/// From here on this process neither talks nor writes files: another that runs the same command does.
pub fn mute() {
    MUTED.store(true, Ordering::Relaxed);
}

/// True if it was [muted](mute).
pub fn is_muted() -> bool {
    MUTED.load(Ordering::Relaxed)
}
