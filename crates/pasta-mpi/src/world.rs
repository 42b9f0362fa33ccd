//! Members that run the same walk in lock step.
//!
//! All talk is in exchanges, in which every member takes part: reports go up a binomial tree to rank 0, which is its root, and
//! a verdict comes down. A member's n-th exchange is everyone's n-th exchange, whatever each is doing: one that sums, one
//! whose oracle failed and one that has ended still hear each other, and nobody waits for a message that never comes.

use std::error::Error;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{fmt, slice};

use pasta_opt::oracle::{Batch, Draw, ErrorKind, OracleError, PartOfRows, PartsOfSum, Request, Team};

use crate::message::{
    Body, Call, Manners, Position, Report, Trouble, Verdict, put_bytes, take_all_bytes, take_bytes,
};
use crate::tree::{Piece, leaves, nodes, part, share};
use crate::wire::{Gone, Wire};

/// All members of a run, seen from one of them.
#[derive(Clone)]
pub struct World {
    here: Arc<Here>,
    /// Whether no sample is drawn by two members.
    divides_all: bool,
}

struct Here {
    rank: usize,
    size: usize,
    line: Mutex<Line>,
    /// Set when this process is told to stop.
    told: Mutex<Arc<AtomicBool>>,
    /// Set when all members have agreed to stop.
    agreed: Arc<AtomicBool>,
    /// Work below which every member does all of it; what rank 0 said last.
    least: [AtomicU64; 2],
}

/// When members share the work of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// When that saves time, as rank 0 measures it.
    Measured,
    /// Whenever it can be shared; and they hear from each other at every other question at least.
    Always,
}

/// What this member has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Exchanges that it took part in.
    pub exchanges: u64,
    /// Messages.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
}

const SUMS: usize = 0;
const ROWS: usize = 1;

/// A sum that is divided for its own sake takes so many times what an exchange saves.
const WORTHWHILE: u64 = 8;

/// How often a part is computed again if the oracle says that this may help.
const RETRIES: u32 = 3;

/// Seconds between exchanges if there is nothing to exchange, so that a signal is soon heard by all.
const BEAT: f64 = 0.02;
/// Questions between exchanges at most: they may become slow all at once.
const QUIET: u64 = 4096;

struct Line {
    wire: Box<dyn Wire>,
    sharing: Sharing,
    place: Position,
    /// Questions since the last exchange.
    silent: u64,
    quiet: u64,
    /// How the run ended, where it has.
    over: Option<Over>,
    tally: Tally,
    clock: Clock,
}

/// What every question is answered with from then on.
#[derive(Clone)]
enum Over {
    Stopped,
    Failed(Trouble),
}

impl Over {
    fn error(&self) -> OracleError {
        match self {
            Self::Stopped => OracleError::interrupted(),
            Self::Failed(Trouble { kind, text }) => OracleError::of_kind(*kind, text.clone()),
        }
    }
}

impl World {
    /// The members at the other ends of a wire.
    pub fn new(wire: impl Wire + 'static, sharing: Sharing) -> Self {
        let (rank, size) = (wire.rank(), wire.size());
        let line = Line {
            wire: Box::new(wire),
            sharing,
            place: Position { questions: 0, role: 0, step: 0, checksum: 0 },
            silent: 0,
            quiet: 1,
            over: None,
            tally: Tally::default(),
            clock: Clock::start(),
        };
        let here = Here {
            rank,
            size,
            line: Mutex::new(line),
            told: Mutex::default(),
            agreed: Arc::default(),
            least: [AtomicU64::new(0), AtomicU64::new(0)],
        };
        Self { here: Arc::new(here), divides_all: false }
    }

    /// The same members, every sample drawn by one of them, however little work it is.
    pub(crate) fn dividing_all(&self) -> Self {
        Self { divides_all: true, ..self.clone() }
    }

    /// The number of this member. Rank 0 is the one that talks and writes.
    pub fn rank(&self) -> usize {
        self.here.rank
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.here.size
    }

    /// Stops all members, at an exchange, when this flag is set in one of them. Gives the flag for the
    /// [gate](pasta_opt::gate::Gate::with_stop), which is set when all have heard of it.
    pub fn watch(&self, told: Arc<AtomicBool>) -> Arc<AtomicBool> {
        *self.here.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
        Arc::clone(&self.here.agreed)
    }

    /// Gives all members what rank 0 finds, say, in a file.
    pub fn tell(&self, find: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, OracleError> {
        let mut words = Vec::new();
        if self.rank() == 0 {
            put_bytes(&mut words, &find());
        }
        let words = self.exchange(Call::Tell, Ok(Body::Words(words)))?;
        take_bytes(&words).ok_or_else(|| OracleError::new("rank 0 told something that cannot be read"))
    }

    /// Gives all members what each of them has to say, by rank. Can be called after an end that all have heard of.
    pub fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, OracleError> {
        let mut words = Vec::new();
        put_bytes(&mut words, bytes);
        let mut line = self.line();
        // Whoever was told to stop has been heard, or will be.
        let report = Report { call: Call::Gather, stop: false, ..self.report(&line, Body::Words(words)) };
        let lost = || OracleError::new("what a member has to say was lost");
        match line.exchange(report, &self.here) {
            Ok(Verdict::Go(words)) => {
                take_all_bytes(&words).filter(|all| all.len() == self.size()).ok_or_else(lost)
            }
            Ok(_) => Err(line.over.as_ref().map_or_else(lost, Over::error)),
            Err(gone) => Err(OracleError::new(gone)),
        }
    }

    /// Waits until all members have ended, and gives the exit code of rank 0. `words` is what a failure has to say: rank 0
    /// hears it if this member ends alone.
    pub fn finish(&self, code: u8, words: &str) -> Result<u8, Gone> {
        loop {
            let mut line = self.line();
            let report = Report {
                call: Call::Finish,
                code: code.into(),
                words: words.to_owned(),
                ..self.report(&line, Body::Nothing)
            };
            if let Verdict::Finished(code) = line.exchange(report, &self.here)? {
                return Ok(code as u8);
            }
        }
    }

    /// What this member has sent so far.
    pub fn tally(&self) -> Tally {
        self.line().tally
    }

    /// The flag that is set when this process is told to stop.
    pub(crate) fn told(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.here.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What all members answer when one of them cannot. An error that they have already heard of stays as it is.
    pub(crate) fn failed(&self, error: OracleError) -> OracleError {
        if let Some(over) = &self.line().over {
            return over.error();
        }
        match self.exchange(Call::Failed, Err(error)) {
            Err(error) => error,
            Ok(_) => OracleError::new("a failure was not heard"),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.here.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, line: &Line, body: Body) -> Report {
        Report {
            rank: self.here.rank as u64,
            call: Call::Beat,
            place: line.place,
            stop: self.told().load(Ordering::Relaxed),
            code: 0,
            words: String::new(),
            trouble: None,
            discord: None,
            body,
        }
    }

    /// One exchange, with this member's part of the work or its failure.
    fn exchange(&self, call: Call, done: Result<Body, OracleError>) -> Result<Vec<u64>, OracleError> {
        let mut line = self.line();
        if let Some(over) = &line.over {
            return Err(over.error());
        }
        let mut report = Report { call, ..self.report(&line, Body::Nothing) };
        match done {
            Ok(body) => report.body = body,
            Err(error) if error.kind() == ErrorKind::Interrupted => report.stop = true,
            Err(error) => {
                let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                let text = format!("{cause} (on rank {})", self.here.rank);
                report.trouble = Some(Trouble { kind: error.kind(), text });
            }
        }
        match line.exchange(report, &self.here) {
            Ok(Verdict::Go(words)) => Ok(words),
            Ok(Verdict::Finished(_)) => Err(OracleError::new("the run is over")),
            Ok(Verdict::Stop | Verdict::Failed(_)) => {
                Err(line.over.as_ref().map_or_else(OracleError::interrupted, Over::error))
            }
            Err(gone) => {
                let over = Over::Failed(Trouble { kind: ErrorKind::Fatal, text: gone.to_string() });
                let error = over.error();
                line.over = Some(over);
                Err(error)
            }
        }
    }

    /// Whether every member does all of it: so many parts of the work, which is so large.
    fn is_for_each(&self, kind: usize, parts: u64, work: u64) -> bool {
        let is_small = || parts < 2 || work < self.here.least[kind].load(Ordering::Relaxed);
        self.here.size == 1 || !self.divides_all && is_small()
    }

    /// Works, and has rank 0 remember how long it took.
    fn timed<T>(
        &self,
        kind: usize,
        work: u64,
        mut compute: impl FnMut() -> Result<T, OracleError>,
    ) -> Result<T, OracleError> {
        let started = Instant::now();
        let mut done = compute();
        for _ in 0..RETRIES {
            match &done {
                Err(error) if error.kind() == ErrorKind::Retry => done = compute(),
                _ => break,
            }
        }
        if self.here.rank == 0 && done.is_ok() && work > 0 {
            self.line().clock.note(kind, started.elapsed().as_secs_f64() / work as f64);
        }
        done
    }
}

impl Team for World {
    fn hear(&self, question: &Request<'_>) -> Result<(), OracleError> {
        let mut line = self.line();
        if let Some(over) = &line.over {
            return Err(over.error());
        }
        let (role, step) = match &question.draw {
            Draw::Batch(batch) => (batch.role, batch.step),
            Draw::Everything(role) => (*role, 0),
        };
        line.place = Position {
            questions: line.place.questions + 1,
            role: role as u64,
            step,
            checksum: line.place.checksum.rotate_left(17) ^ question.fingerprint(),
        };
        line.silent += 1;
        let due = line.silent > line.quiet;
        drop(line);
        if due { self.exchange(Call::Beat, Ok(Body::Nothing)).map(drop) } else { Ok(()) }
    }

    fn sum(
        &self,
        work: u64,
        batch: &Batch,
        block: u64,
        out: &mut [f64],
        of_parts: PartsOfSum<'_>,
    ) -> Result<(), OracleError> {
        let width = out.len().max(1);
        let work = work.saturating_mul(width as u64);
        let leaves = leaves(batch, block);
        if self.is_for_each(SUMS, leaves, work) {
            return self.timed(SUMS, work, || of_parts(slice::from_ref(batch), out));
        }
        let mine = share(leaves, self.here.rank, self.here.size);
        let my_work = (u128::from(work) * u128::from(mine.end - mine.start) / u128::from(leaves)) as u64;
        let spans = nodes(leaves, &mine);
        let parts: Vec<Batch> = spans.iter().map(|span| part(batch, block, span)).collect();
        let pieces = self.timed(SUMS, my_work, || {
            let mut sums = vec![0.0; width * parts.len()];
            of_parts(&parts, &mut sums)?;
            let piece = |(span, sum): (&Range<u64>, &[f64])| Piece { span: span.clone(), sum: sum.to_vec() };
            Ok(spans.iter().zip(sums.chunks(width)).map(piece).collect())
        });
        let words = self.exchange(Call::Sum, pieces.map(|pieces| Body::Pieces(leaves, pieces)))?;
        out.iter_mut().zip(words).for_each(|(number, word)| *number = f64::from_bits(word));
        Ok(())
    }

    fn divides(&self, samples: u64, width: usize) -> bool {
        let least = self.here.least[SUMS].load(Ordering::Relaxed);
        self.here.size > 1 && samples.saturating_mul(width as u64) >= WORTHWHILE.saturating_mul(least)
    }

    fn share(
        &self,
        work: u128,
        width: usize,
        rows: &mut [u64],
        part: PartOfRows<'_>,
    ) -> Result<(), OracleError> {
        let count = rows.len() / width.max(1);
        let work = u64::try_from(work.saturating_mul(width as u128)).unwrap_or(u64::MAX);
        if self.is_for_each(ROWS, count as u64, work) {
            let done = self.timed(ROWS, work, || part(0..count, rows));
            return done.map_err(|error| self.failed(error));
        }
        let cut = |rank: usize| count * rank / self.here.size;
        let mine = cut(self.here.rank)..cut(self.here.rank + 1);
        let my_work = (u128::from(work) * mine.len() as u128 / count as u128) as u64;
        let my_rows = &mut rows[mine.start * width..mine.end * width];
        let done = self.timed(ROWS, my_work, || part(mine.clone(), my_rows));
        let body = done.map(|()| Body::Words(my_rows.to_vec()));
        let all = self.exchange(Call::Share, body)?;
        if all.len() != rows.len() {
            return Err(OracleError::new("rows of an answer are missing"));
        }
        rows.copy_from_slice(&all);
        Ok(())
    }
}

impl Line {
    /// Reports up the tree, verdict down. Member r has those below it whose numbers are r + 1, r + 2, r + 4, .. as far as
    /// the lowest bit of r goes; so what is below it follows it without a gap.
    fn exchange(&mut self, mut report: Report, here: &Here) -> Result<Verdict, Gone> {
        let started = Instant::now();
        let (rank, size) = (here.rank, here.size);
        let span = if rank == 0 { size.next_power_of_two() } else { 1 << rank.trailing_zeros() };
        let below = || {
            (0..)
                .map(|k| 1 << k)
                .take_while(|step| *step < span)
                .map(|step| rank + step)
                .filter(|r| *r < size)
        };
        for child in below() {
            let words = self.wire.receive(child)?;
            if let Some(next) = Report::decode(&words) {
                report.merge(next);
            } else {
                let text = format!("rank {child} reported something that cannot be read");
                report.trouble.get_or_insert(Trouble { kind: ErrorKind::Fatal, text });
            }
        }
        let words = if rank == 0 {
            let quiet = self.clock.quiet(self.silent);
            let manners = match self.sharing {
                Sharing::Measured => Manners { quiet, least: self.clock.least(size) },
                Sharing::Always => Manners { quiet: 1, least: [0; 2] },
            };
            report.verdict().encode(manners)
        } else {
            self.send(rank - span, &report.encode())?;
            self.wire.receive(rank - span)?
        };
        for child in below().collect::<Vec<_>>().into_iter().rev() {
            self.send(child, &words)?;
        }
        let unreadable = || {
            let text = "a verdict cannot be read".to_owned();
            (Verdict::Failed(Trouble { kind: ErrorKind::Fatal, text }), Manners { quiet: 1, least: [0; 2] })
        };
        let (verdict, manners) = Verdict::decode(&words).unwrap_or_else(unreadable);
        self.take(&verdict, manners, here);
        if rank == 0 {
            self.clock.waited(started.elapsed().as_secs_f64());
        }
        Ok(verdict)
    }

    fn take(&mut self, verdict: &Verdict, manners: Manners, here: &Here) {
        self.tally.exchanges += 1;
        (self.silent, self.quiet) = (0, manners.quiet);
        here.least.iter().zip(manners.least).for_each(|(here, least)| here.store(least, Ordering::Relaxed));
        match verdict {
            Verdict::Go(_) | Verdict::Finished(_) => {}
            Verdict::Stop => {
                here.agreed.store(true, Ordering::Relaxed);
                self.over.get_or_insert(Over::Stopped);
            }
            Verdict::Failed(trouble) => {
                self.over.get_or_insert(Over::Failed(trouble.clone()));
            }
        }
    }

    fn send(&mut self, to: usize, words: &[u64]) -> Result<(), Gone> {
        self.tally.messages += 1;
        self.tally.bytes += 8 * words.len() as u64;
        self.wire.send(to, words)
    }
}

/// What rank 0 measures: which work is worth an exchange, and how many questions pass in a while.
struct Clock {
    /// Seconds of an exchange without the time that members wait for each other.
    exchange: f64,
    /// Seconds for one unit of work.
    rate: [f64; 2],
    last: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { exchange: f64::INFINITY, rate: [0.0; 2], last: Instant::now() }
    }

    fn note(&mut self, kind: usize, rate: f64) {
        let known = &mut self.rate[kind];
        *known = if *known == 0.0 { rate } else { 0.8 * *known + 0.2 * rate };
    }

    /// Waiting can only lengthen it, so that the shortest counts; but the machine may have become slower.
    fn waited(&mut self, seconds: f64) {
        self.exchange = seconds.min(1.02 * self.exchange);
    }

    /// The work whose savings are those of an exchange.
    fn least(&self, size: usize) -> [u64; 2] {
        let saved = 1.0 - 1.0 / size as f64;
        self.rate.map(|rate| {
            let known = rate > 0.0 && self.exchange.is_finite();
            if known { (self.exchange / (saved * rate)) as u64 } else { 0 }
        })
    }

    /// How many questions may pass without an exchange, if they go on as they did.
    fn quiet(&mut self, passed: u64) -> u64 {
        let seconds = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        ((BEAT * passed.max(1) as f64 / seconds.max(1e-9)) as u64).clamp(1, QUIET)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}
