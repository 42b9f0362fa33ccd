//! One worker: a process, what was written to it, and what it has said.
//!
//! All three pipes are non-blocking on this side. Whoever waits for a worker also listens to its stderr, so that there are no
//! threads here, and nothing blocks for ever.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::protocol::{Hello, Wrong};
use crate::{OnStderr, Simulator};

/// How many of its last lines on stderr a message can show.
const LAST_LINES: usize = 4;
/// As much as Linux lets anyone ask for: fewer turns with a long vector.
const PIPE_SIZE: usize = 1 << 18;
/// A line of stderr that is longer is shown in pieces.
const LONGEST_LINE: usize = 4096;
/// What is read of its stderr at a time, and how often in one go: others have their turn even if one never stops talking.
const TALK: usize = 4096;
const TURNS: usize = 64;
/// How long the last words of a dead worker are waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A process that answers.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) number: usize,
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    /// `None` until it has answered the greeting.
    pub(crate) hello: Option<Hello>,
    /// The beginning of what is being written to it, and how much of all that is written.
    pub(crate) header: Vec<u8>,
    written: usize,
    /// What it has said since it was last asked: the first `filled` bytes.
    buffer: Vec<u8>,
    filled: usize,
    /// By when it has to answer.
    pub(crate) deadline: Option<Instant>,
    line: Vec<u8>,
    pub(crate) last_lines: VecDeque<String>,
    /// Whether it was waited for.
    is_gone: bool,
}

/// What there is to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdin,
    Stdout,
    Stderr,
}

impl Worker {
    /// Starts a process and greets it.
    pub(crate) fn start(number: usize, simulator: &Simulator, greeting: &[u8]) -> Result<Self, Wrong> {
        let failed = |error: io::Error| Wrong::Start(error.to_string());
        let mut command = Command::new(&simulator.command[0]);
        command.args(&simulator.command[1..]).envs(simulator.environment.iter().cloned());
        if let Some(directory) = &simulator.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C is for pasta, which then tells its workers; and what a worker starts ends with it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| Wrong::Start(start_failure(&error, simulator)))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Wrong::Start("it has no pipes".into()));
        };
        unblock(&stdin).and_then(|()| unblock(&stdout)).and_then(|()| unblock(&stderr)).map_err(failed)?;
        #[cfg(target_os = "linux")]
        for pipe in [stdin.as_fd(), stdout.as_fd()] {
            // Smaller pipes are slower, not wrong.
            let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
        }
        let mut worker = Self {
            number,
            child,
            stdin,
            stdout,
            stderr: Some(stderr),
            hello: None,
            header: greeting.to_vec(),
            written: 0,
            buffer: vec![0; 4096],
            filled: 0,
            deadline: Instant::now().checked_add(simulator.start_timeout),
            line: Vec::new(),
            last_lines: VecDeque::new(),
            is_gone: false,
        };
        // What goes wrong here shows again when its greeting is heard, beside what it said before it ended.
        let _ = worker.write(&[]);
        Ok(worker)
    }

    /// Makes ready for a new question; the caller fills the header.
    pub(crate) fn begin(&mut self, deadline: Option<Instant>) {
        self.header.clear();
        (self.written, self.filled, self.deadline) = (0, 0, deadline);
    }

    /// Writes what it takes of the header and of what follows it.
    pub(crate) fn write(&mut self, rest: &[u8]) -> Result<(), Wrong> {
        while self.written < self.header.len() + rest.len() {
            let head = self.header.get(self.written..).unwrap_or_default();
            let tail = &rest[self.written.saturating_sub(self.header.len())..];
            match self.stdin.write_vectored(&[IoSlice::new(head), IoSlice::new(tail)]) {
                Ok(n) => self.written += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It closed its input; what it says last is what counts.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(self.ended()),
                Err(error) => return Err(Wrong::Ended(error.to_string())),
            }
        }
        Ok(())
    }

    /// Whether something is still to be written.
    pub(crate) fn has_to_write(&self, rest: usize) -> bool {
        self.written < self.header.len() + rest
    }

    /// Reads what there is. `whole` says how long what it has to say is, as far as its beginning tells; true when it has said
    /// all of it.
    pub(crate) fn read(
        &mut self,
        whole: impl Fn(&[u8]) -> Result<Option<usize>, Wrong>,
    ) -> Result<bool, Wrong> {
        loop {
            let length = whole(&self.buffer[..self.filled])?;
            match length {
                Some(length) if length == self.filled => return Ok(true),
                Some(length) if length < self.filled => {
                    return Err(Wrong::Garbage(format!("{} bytes too many", self.filled - length)));
                }
                // Room for one byte too many, which would be noticed.
                Some(length) => self.grow(length + 1),
                None => self.grow(2 * self.filled),
            }
            match self.stdout.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Err(self.ended()),
                Ok(n) => self.filled += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Wrong::Ended(error.to_string())),
            }
        }
    }

    fn grow(&mut self, length: usize) {
        if self.buffer.len() < length.max(self.filled + 1) {
            self.buffer.resize(length.max(self.filled + 4096), 0);
        }
    }

    /// What it has said.
    pub(crate) fn said(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Hands on whole lines of its stderr, as far as it has written them: 256 kB of them at most.
    pub(crate) fn listen(&mut self, on_stderr: &OnStderr) {
        let mut bytes = [0; TALK];
        for _ in 0..TURNS {
            let Some(stderr) = &mut self.stderr else { return };
            match stderr.read(&mut bytes) {
                Ok(0) => {
                    self.stderr = None;
                    if !self.line.is_empty() {
                        self.end_line(on_stderr);
                    }
                    return;
                }
                Ok(n) => {
                    for &byte in &bytes[..n] {
                        if byte == b'\n' || self.line.len() >= LONGEST_LINE {
                            self.end_line(on_stderr);
                        }
                        if byte != b'\n' {
                            self.line.push(byte);
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn end_line(&mut self, on_stderr: &OnStderr) {
        let line = String::from_utf8_lossy(&self.line).trim_end_matches('\r').to_owned();
        self.line.clear();
        on_stderr(self.number, &line);
        if self.last_lines.len() == LAST_LINES {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line);
    }

    /// What there is to wait for: an answer, room to write, lines on stderr.
    pub(crate) fn add_to<'w>(&'w self, rest: usize, fds: &mut Vec<PollFd<'w>>, what: &mut Vec<Stream>) {
        let mut add = |fd, stream, flags| {
            fds.push(PollFd::from_borrowed_fd(fd, flags));
            what.push(stream);
        };
        add(self.stdout.as_fd(), Stream::Stdout, PollFlags::IN);
        if self.has_to_write(rest) {
            add(self.stdin.as_fd(), Stream::Stdin, PollFlags::OUT);
        }
        if let Some(stderr) = &self.stderr {
            add(stderr.as_fd(), Stream::Stderr, PollFlags::IN);
        }
    }

    /// How it ended.
    fn ended(&mut self) -> Wrong {
        // A process closes its pipes a moment before it can be waited for.
        for _ in 0..50 {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.is_gone = true;
                    self.kill_group();
                    return Wrong::Ended(status.to_string());
                }
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                Err(error) => return Wrong::Ended(error.to_string()),
            }
        }
        Wrong::Ended("it closed its output and is still alive".into())
    }

    /// Ends the process, and hands on what is left on its stderr.
    pub(crate) fn end(mut self, on_stderr: &OnStderr) -> VecDeque<String> {
        self.kill();
        let until = Instant::now() + LAST_WORDS;
        loop {
            self.listen(on_stderr);
            let Some(stderr) = &self.stderr else { break };
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(stderr, PollFlags::IN)];
            if left.is_zero() || !matches!(poll(&mut fds, Some(&timespec(left))), Ok(1..)) {
                break;
            }
        }
        std::mem::take(&mut self.last_lines)
    }

    fn kill(&mut self) {
        // Who was waited for has a number that may be another's by now.
        if !self.is_gone {
            self.kill_group();
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.is_gone = true;
        }
    }

    /// Ends what it has started, too.
    fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().min(1 << 30) as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

fn unblock(fd: &impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(fd)?;
    Ok(fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

fn start_failure(error: &io::Error, simulator: &Simulator) -> String {
    match (&simulator.directory, error.kind()) {
        (Some(directory), ErrorKind::NotFound) if !directory.is_dir() => {
            format!("there is no directory {}", directory.display())
        }
        (_, ErrorKind::NotFound) => format!("there is no program {:?}", simulator.command[0]),
        _ => error.to_string(),
    }
}
