//! One question to the pool, from the first request to the last reply.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pasta_opt::oracle::{Batch, OracleError};
use rand_core::Rng;
use rustix::event::{PollFd, PollFlags, poll};

use crate::fault::{Fault, short, short_bytes};
use crate::pipe::{Pipe, Who};
use crate::protocol::{Framing, Hello, Points, Wrong, read_hello};
use crate::tree::Tree;
use crate::worker::{Stream, Worker, timespec};
use crate::{OnStderr, Simulator};

/// How often the caller's flag is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How many vectors are kept for the next question.
const MOST_SPARE: usize = 4;

/// Which samples.
#[derive(Debug)]
pub(crate) enum What<'a> {
    /// Parts of a batch, in blocks.
    Parts(&'a [Batch]),
    /// Samples of one seed, in one request.
    Samples { seed: u64, samples: Range<u64> },
}

/// A request to a worker.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) what: What<'a>,
    /// Differences to the last point, not sums.
    pub(crate) differences: bool,
    pub(crate) points: &'a Points<'a>,
}

/// One leaf of the tree of additions: a block, or parts of two where the batch begins within a block.
#[derive(Debug)]
struct Job {
    part: usize,
    leaf: u64,
    /// Its samples that were not answered yet.
    left: Range<u64>,
    sum: Vec<f64>,
    id: u64,
    failures: u32,
}

/// A worker and what it is doing.
#[derive(Debug)]
struct Slot {
    index: usize,
    worker: Option<Box<Worker>>,
    job: Option<Job>,
}

/// The work on one question.
pub(crate) struct Exchange<'a> {
    pipe: &'a Pipe,
    ask: &'a Ask<'a>,
    /// The workers who are to answer.
    who: Who,
    slots: Vec<Slot>,
    /// One for each part.
    trees: Vec<Tree>,
    sums: Vec<Option<Vec<f64>>>,
    /// The part and the leaf that come next, and how many leaves are to come.
    next: (usize, u64),
    to_come: u64,
    again: Vec<Job>,
    numbers: Vec<f64>,
    spare: Vec<Vec<f64>>,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(pipe: &'a Pipe, ask: &'a Ask<'a>, who: Who, spare: Vec<Vec<f64>>) -> Self {
        let leaves = |part: &Batch| part.count().div_ceil(pipe.simulator.block);
        let trees: Vec<Tree> = match &ask.what {
            What::Parts(parts) => parts.iter().map(|part| Tree::new(leaves(part))).collect(),
            What::Samples { .. } => vec![Tree::new(1)],
        };
        Self {
            pipe,
            ask,
            who,
            slots: Vec::new(),
            sums: vec![None; trees.len()],
            next: (0, 0),
            to_come: trees.iter().map(Tree::leaves).sum(),
            trees,
            again: Vec::new(),
            numbers: Vec::new(),
            spare,
        }
    }

    /// Asks until all is answered, something fails for good, or the answer is no longer wanted. Gives the sum of each part.
    pub(crate) fn run(&mut self, stop: &AtomicBool) -> Result<Vec<Vec<f64>>, OracleError> {
        self.numbers = self.room();
        let mut open = self.sums.len();
        while open > 0 {
            if stop.load(Ordering::Relaxed) {
                return Err(OracleError::interrupted());
            }
            self.staff();
            let mut k = 0;
            while k < self.slots.len() {
                if self.slots[k].job.is_none() && !self.begin(k)? {
                    // Nothing is left for it: others may want it.
                    self.slots.swap_remove(k).leave(self.pipe);
                } else {
                    k += 1;
                }
            }
            for (k, stream) in self.wait()? {
                if let Some((part, sum)) = self.attend(k, stream)? {
                    self.sums[part] = Some(sum);
                    open -= 1;
                }
            }
            self.expire()?;
        }
        Ok(self.sums.iter_mut().filter_map(Option::take).collect())
    }

    /// An empty vector, used before if there is one.
    fn room(&mut self) -> Vec<f64> {
        let mut room = self.spare.pop().unwrap_or_default();
        room.clear();
        room
    }

    /// The vectors that can be used again.
    pub(crate) fn take_spare(&mut self) -> Vec<Vec<f64>> {
        let mut spare = std::mem::take(&mut self.spare);
        spare.push(std::mem::take(&mut self.numbers));
        spare.truncate(MOST_SPARE);
        spare
    }

    /// Takes as many workers as there is work for.
    fn staff(&mut self) {
        let open = self.to_come.saturating_add(self.again.len() as u64);
        let most = usize::try_from(open).unwrap_or(usize::MAX).min(self.pipe.simulator.workers);
        let most = if matches!(self.who, Who::Number(_)) { 1 } else { most };
        if open > 0 && self.slots.len() < most {
            let taken = self.pipe.take(most - self.slots.len(), self.who, self.slots.is_empty());
            self.slots.extend(taken.into_iter().map(|(index, worker)| Slot { index, worker, job: None }));
        }
    }

    /// Gives a slot its next leaf; false if there is none.
    fn begin(&mut self, k: usize) -> Result<bool, OracleError> {
        let job = match self.again.pop() {
            Some(job) => job,
            None if self.to_come > 0 => self.next_job(),
            None => return Ok(false),
        };
        let slot = &mut self.slots[k];
        slot.job = Some(job);
        if slot.worker.is_none() {
            self.pipe.tally.workers_started.fetch_add(1, Ordering::Relaxed);
            match Worker::start(slot.index + 1, &self.pipe.simulator, &self.pipe.greeting) {
                Ok(worker) => slot.worker = Some(Box::new(worker)),
                Err(wrong) => return self.fail(k, wrong).map(|()| true),
            }
        } else {
            self.send(k)?;
        }
        Ok(true)
    }

    /// The next leaf, of which there must be one.
    fn next_job(&mut self) -> Job {
        while self.next.1 >= self.trees[self.next.0].leaves() {
            self.next = (self.next.0 + 1, 0);
        }
        let (part, leaf) = self.next;
        self.next.1 += 1;
        self.to_come -= 1;
        Job { part, leaf, left: self.samples(part, leaf), sum: self.room(), id: 0, failures: 0 }
    }

    fn samples(&self, part: usize, leaf: u64) -> Range<u64> {
        match &self.ask.what {
            What::Parts(parts) => {
                let (all, block) = (&parts[part].samples, self.pipe.simulator.block);
                let start = all.start + leaf * block;
                start..all.end.min(start.saturating_add(block))
            }
            What::Samples { samples, .. } => samples.clone(),
        }
    }

    /// The next request of a job: its seed, and its samples by their numbers under that seed.
    fn piece(&self, job: &Job) -> (u64, Range<u64>) {
        match &self.ask.what {
            What::Parts(parts) => {
                let block = self.pipe.simulator.block;
                let begin = job.left.start - job.left.start % block;
                // The seed of a block is the first word of the stream of its first sample.
                let seed = parts[job.part].sample(begin).next_u64();
                (seed, job.left.start - begin..job.left.end.min(begin.saturating_add(block)) - begin)
            }
            What::Samples { seed, samples } => (*seed, samples.clone()),
        }
    }

    /// Writes the next request of a slot's job.
    fn send(&mut self, k: usize) -> Result<(), OracleError> {
        let Some(job) = &self.slots[k].job else { return Ok(()) };
        let (seed, samples) = self.piece(job);
        let id = self.pipe.next_id.fetch_add(1, Ordering::Relaxed) & ((1 << 53) - 1);
        let deadline = Instant::now().checked_add(self.pipe.simulator.timeout);
        let Slot { worker: Some(worker), job: Some(job), .. } = &mut self.slots[k] else { return Ok(()) };
        job.id = id;
        worker.begin(deadline);
        self.ask.points.write_header(id, seed, &samples, &mut worker.header);
        match worker.write(&self.ask.points.bytes) {
            Ok(()) => Ok(()),
            Err(wrong) => self.fail(k, wrong),
        }
    }

    /// Waits until a worker has something to say, or it is time to look at the clock.
    fn wait(&self) -> Result<Vec<(usize, Stream)>, OracleError> {
        let (mut fds, mut what, mut whose): (Vec<PollFd<'_>>, _, Vec<usize>) =
            (Vec::new(), Vec::new(), Vec::new());
        let mut wake = LOOK;
        for (k, slot) in self.slots.iter().enumerate() {
            let Some(worker) = &slot.worker else { continue };
            let rest = if worker.hello.is_some() { self.ask.points.bytes.len() } else { 0 };
            worker.add_to(rest, &mut fds, &mut what);
            whose.resize(fds.len(), k);
            if let Some(deadline) = worker.deadline {
                wake = wake.min(deadline.saturating_duration_since(Instant::now()));
            }
        }
        if fds.is_empty() {
            return Ok(Vec::new());
        }
        match poll(&mut fds, Some(&timespec(wake))) {
            Ok(_) => {}
            Err(error) if error == rustix::io::Errno::INTR => return Ok(Vec::new()),
            Err(error) => return Err(OracleError::new(std::io::Error::from(error))),
        }
        let is_ready = |fd: &PollFd<'_>| fd.revents() != PollFlags::empty();
        let ready = fds.iter().zip(whose).zip(what).filter(|((fd, _), _)| is_ready(fd));
        Ok(ready.map(|((_, k), stream)| (k, stream)).collect())
    }

    /// Does what a worker is ready for; the sum of a part, if that was its last leaf.
    fn attend(&mut self, k: usize, stream: Stream) -> Result<Option<(usize, Vec<f64>)>, OracleError> {
        let Slot { worker: Some(worker), job, .. } = &mut self.slots[k] else { return Ok(None) };
        if stream == Stream::Stderr {
            worker.listen(&self.pipe.on_stderr);
            return Ok(None);
        }
        let Some(job) = job else { return Ok(None) };
        if worker.hello.is_none() {
            return match greeted(worker, stream, self.pipe) {
                Ok(true) => self.send(k),
                Ok(false) => Ok(()),
                Err(wrong) => self.fail(k, wrong),
            }
            .map(|()| None);
        }
        let points = self.ask.points;
        let answered = match stream {
            Stream::Stdin => worker.write(&points.bytes).map(|()| false),
            _ => worker.read(|begun| points.reply_length(begun)),
        };
        let read = answered.and_then(|answered| {
            if answered {
                points.read_reply(job.id, worker.said(), &mut self.numbers)?;
            }
            Ok(answered)
        });
        match read {
            Ok(false) => Ok(None),
            Ok(true) => self.accept(k),
            // What is not finite every time is the simulator's answer; the gate knows what to do about it.
            Err(Wrong::NotFinite) if job.failures >= self.pipe.simulator.retries => {
                self.pipe.tally.not_finite.fetch_add(1, Ordering::Relaxed);
                let fault = self.fault(k, Wrong::NotFinite);
                self.remember(fault);
                self.accept(k)
            }
            Err(wrong) => self.fail(k, wrong).map(|()| None),
        }
    }

    /// Adds the numbers of a reply to the sum of a job.
    fn accept(&mut self, k: usize) -> Result<Option<(usize, Vec<f64>)>, OracleError> {
        self.pipe.tally.requests.fetch_add(1, Ordering::Relaxed);
        let Some(job) = &self.slots[k].job else { return Ok(None) };
        let (_, samples) = self.piece(job);
        let Some(job) = &mut self.slots[k].job else { return Ok(None) };
        let Points { count, dim, .. } = *self.ask.points;
        if job.sum.is_empty() && !self.ask.differences {
            std::mem::swap(&mut job.sum, &mut self.numbers);
        } else if self.ask.differences {
            job.sum.resize(self.numbers.len() - dim, 0.0);
            let (rows, losses) = self.numbers.split_at(count * dim);
            let (rows, base) = rows.split_at((count - 1) * dim);
            let (sums, beside) = job.sum.split_at_mut(rows.len());
            for (sums, row) in sums.chunks_exact_mut(dim).zip(rows.chunks_exact(dim)) {
                sums.iter_mut().zip(row.iter().zip(base)).for_each(|(sum, (x, y))| *sum += x - y);
            }
            beside.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        } else {
            job.sum.iter_mut().zip(&self.numbers).for_each(|(sum, number)| *sum += number);
        }
        job.left.start += samples.end - samples.start;
        if !job.left.is_empty() {
            job.failures = 0;
            return self.send(k).map(|()| None);
        }
        let Some(Job { part, leaf, sum, .. }) = self.slots[k].job.take() else { return Ok(None) };
        Ok(self.trees[part].add(leaf, sum, &mut self.spare).map(|sum| (part, sum)))
    }

    /// Fails those who took too long.
    fn expire(&mut self) -> Result<(), OracleError> {
        let now = Instant::now();
        for k in 0..self.slots.len() {
            let Slot { worker: Some(worker), job: Some(_), .. } = &self.slots[k] else { continue };
            if worker.deadline.is_some_and(|deadline| deadline <= now) {
                let Simulator { timeout, start_timeout, .. } = &self.pipe.simulator;
                let allowed = if worker.hello.is_some() { timeout } else { start_timeout };
                self.fail(k, Wrong::TimedOut(allowed.as_secs_f64().to_string()))?;
            }
        }
        Ok(())
    }

    /// Ends a worker; its job is done again by another process, or fails for good.
    fn fail(&mut self, k: usize, wrong: Wrong) -> Result<(), OracleError> {
        if wrong == Wrong::Exhausted {
            return Err(self.pipe.ended());
        }
        let retry = wrong.is_worth_a_retry();
        let fault = self.fault(k, wrong);
        self.remember(fault.clone());
        let Some(mut job) = self.slots[k].job.take() else { return Ok(()) };
        job.failures += 1;
        if !retry || job.failures > self.pipe.simulator.retries {
            return Err(fault.into());
        }
        let (_, samples) = self.piece(&job);
        self.pipe.tally.repeated_requests.fetch_add(1, Ordering::Relaxed);
        self.pipe.tally.repeated_samples.fetch_add(samples.end - samples.start, Ordering::Relaxed);
        self.again.push(job);
        Ok(())
    }

    /// What is to be told of a worker. One that is not to be asked again has ended after this.
    fn fault(&mut self, k: usize, wrong: Wrong) -> Fault {
        let keeps = wrong == Wrong::NotFinite
            && self.slots[k].job.as_ref().is_some_and(|job| job.failures >= self.pipe.simulator.retries);
        let slot = &mut self.slots[k];
        let worker = if keeps { None } else { slot.worker.take() };
        let seen = worker.as_deref().or(slot.worker.as_deref());
        let greeted = seen.is_some_and(|worker| worker.hello.is_some());
        let is_text = !greeted || self.ask.points.framing == Framing::Json;
        let reply = seen.map_or(String::new(), |worker| short_bytes(worker.said(), is_text));
        let mut stderr: Vec<String> =
            seen.map(|worker| worker.last_lines.iter().cloned().collect()).unwrap_or_default();
        if let Some(worker) = worker {
            stderr = worker.end(&self.pipe.on_stderr).into();
        }
        let request = match &self.slots[k].job {
            Some(job) if greeted => self.request_in_words(job),
            _ => String::new(),
        };
        Fault {
            worker: self.slots[k].index + 1,
            command: self.pipe.simulator.words(),
            wrong,
            times: self.slots[k].job.as_ref().map_or(0, |job| job.failures) + 1,
            request,
            reply,
            stderr,
        }
    }

    /// A request as JSON has it, whatever the framing, shortened.
    fn request_in_words(&self, job: &Job) -> String {
        let (seed, samples) = self.piece(job);
        let Points { wanted, count, dim, framing, bytes } = self.ask.points;
        let mut text = Vec::new();
        let header = Points {
            count: *count,
            dim: *dim,
            wanted: *wanted,
            framing: Framing::Json,
            bytes: Cow::default(),
        };
        header.write_header(job.id, seed, &samples, &mut text);
        match framing {
            Framing::Json => text.extend_from_slice(&bytes[..bytes.len().min(200)]),
            Framing::Binary => {
                let numbers = bytes.chunks_exact(8).take(8).filter_map(|bytes| bytes.try_into().ok());
                let numbers: Vec<f64> = numbers.map(f64::from_le_bytes).collect();
                text.extend_from_slice(format!("{numbers:?}").as_bytes());
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        // What says nothing about this request is left out.
        short(&text.replace("\"losses\": false, ", "").replace("\"squares\": false, ", ""))
    }

    fn remember(&self, fault: Fault) {
        *self.pipe.tally.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.leave(self.pipe));
    }
}

impl Slot {
    /// Gives the place back. A worker that is still at work on what nobody wants ends.
    fn leave(&mut self, pipe: &Pipe) {
        let worker = self.worker.take();
        let idle = self.job.is_none() && worker.as_ref().is_some_and(|worker| worker.hello.is_some());
        match worker {
            Some(mut worker) if idle => {
                worker.listen(&pipe.on_stderr);
                pipe.give_back(self.index, Some(worker));
            }
            Some(worker) => {
                worker.end(&pipe.on_stderr);
                pipe.give_back(self.index, None);
            }
            None => pipe.give_back(self.index, None),
        }
    }
}

fn line_length(begun: &[u8]) -> Result<Option<usize>, Wrong> {
    match begun.iter().position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some(end + 1)),
        None if begun.len() > 1 << 16 => Err(Wrong::Greeting("its line does not end".into())),
        None => Ok(None),
    }
}

/// Goes on greeting a further worker, which must answer as the first did; true when it has.
fn greeted(worker: &mut Worker, stream: Stream, pipe: &Pipe) -> Result<bool, Wrong> {
    if stream == Stream::Stdin {
        return worker.write(&[]).map(|()| false);
    }
    if !worker.read(line_length)? {
        return Ok(false);
    }
    let hello = read_hello(worker.said(), pipe.simulator.dimension)?;
    if hello != pipe.hello {
        return Err(Wrong::Greeting("it says something else of itself than the first worker did".into()));
    }
    worker.hello = Some(hello);
    Ok(true)
}

/// Starts a first worker and hears its greeting.
pub(crate) fn meet(
    simulator: &Simulator,
    greeting: &[u8],
    on_stderr: &OnStderr,
) -> Result<(Worker, Hello), Box<Fault>> {
    let fault = |wrong: Wrong, reply: String, stderr: Vec<String>| {
        let (worker, command) = (1, simulator.words());
        Box::new(Fault { worker, command, wrong, times: 1, request: String::new(), reply, stderr })
    };
    let mut worker =
        Worker::start(1, simulator, greeting).map_err(|wrong| fault(wrong, String::new(), Vec::new()))?;
    match hear(&mut worker, simulator, on_stderr) {
        Ok(hello) => {
            worker.hello = Some(hello.clone());
            Ok((worker, hello))
        }
        Err(wrong) => {
            let reply = short_bytes(worker.said(), true);
            Err(fault(wrong, reply, worker.end(on_stderr).into()))
        }
    }
}

fn hear(worker: &mut Worker, simulator: &Simulator, on_stderr: &OnStderr) -> Result<Hello, Wrong> {
    loop {
        // One that has ended already may have said something before.
        let written = worker.write(&[]);
        if worker.read(line_length)? {
            return read_hello(worker.said(), simulator.dimension);
        }
        written?;
        worker.listen(on_stderr);
        let left = worker.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Wrong::TimedOut(simulator.start_timeout.as_secs_f64().to_string()));
        }
        let (mut fds, mut what) = (Vec::new(), Vec::new());
        worker.add_to(0, &mut fds, &mut what);
        match poll(&mut fds, left.map(timespec).as_ref()) {
            Ok(_) => {}
            Err(error) if error == rustix::io::Errno::INTR => {}
            Err(error) => return Err(Wrong::Start(error.to_string())),
        }
    }
}
