//! Many questions at once.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::blame::Suspect;
use super::kept::{Kept, Question};
use super::put::{Paid, Skipped, afford, asked, check_finite, finite, inside, put, skip};
use super::{Gate, Halt, OnNan};
use crate::draws::Role;
use crate::oracle::{About, Answer, Batch, Charge, Draw, Oracle, OracleError, Request, Source, Team};
use crate::term::Term;

/// Where many threads ask at once. See [`Gate::window`].
#[derive(Debug)]
pub struct Window<'g> {
    oracle: &'g dyn Oracle,
    about: &'g About,
    seed: u64,
    role: Role,
    stop: &'g AtomicBool,
    pause: Option<&'g AtomicBool>,
    kept: Option<Mutex<&'g mut Kept>>,
    on_nan: OnNan,
    term: Option<&'g dyn Term>,
    spent: Mutex<Spent>,
    most: u128,
}

/// A long question is asked in 2^5 parts at most, of at least 16 leaves of the tree of additions.
const PARTS: u32 = 5;
const LEAVES: u64 = 16;

/// What was asked at a window.
#[derive(Debug, Default)]
struct Spent {
    charge: Charge,
    not_finite: u128,
    rounds: u128,
    /// The last question whose answer was not finite.
    suspect: Option<Suspect>,
    /// What the oracle has left, if it has come to an end.
    end: Option<u128>,
}

impl Gate {
    /// Opens a window at which many threads can ask at once, for at most `most` samples in all.
    pub fn window<T>(
        &mut self,
        role: Role,
        most: u128,
        work: impl FnOnce(&Window<'_>) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        let left = self.left();
        if self.budget.is_some() {
            afford(most, left)?;
        }
        let window = Window {
            oracle: &*self.oracle,
            about: &self.about,
            seed: self.seed,
            role,
            stop: &self.stop,
            pause: self.pause.as_deref(),
            on_nan: self.on_nan,
            term: self.term.as_deref(),
            kept: self.is_keeping.then(|| Mutex::new(&mut self.kept)),
            spent: Mutex::default(),
            most,
        };
        let done = work(&window);
        if !done.as_ref().is_err_and(Halt::drops_work) {
            let spent = window.spent.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.ledger.charge(role, spent.charge);
            self.ledger.count_not_finite(spent.not_finite);
            self.ledger.count_rounds(spent.rounds);
            self.suspect = spent.suspect.or(self.suspect.take());
            if let Some(left) = spent.end {
                self.end(left);
            }
        }
        done
    }
}

impl Window<'_> {
    /// The first `n` samples of a step, under the window's role.
    pub fn batch(&self, step: u64, n: u64) -> Batch {
        Batch { seed: self.seed, role: self.role, step, samples: 0..n }
    }

    /// Asks the oracle, and counts. An answer that is not finite is no answer.
    pub fn ask(&self, request: Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, Halt> {
        let (draw, points, losses) = (request.draw.clone(), request.points, request.losses);
        let charge = self.spend(self.put(request, answer)?, Samples::New)?;
        lock(&self.spent).rounds += 1;
        if let Err(halt) = check_finite(answer, asked(&draw)) {
            self.notice(&draw, points[0], losses);
            return Err(halt);
        }
        Ok(charge)
    }

    /// Asks many questions of one shape: on all threads, and where the oracle has a team, each member some of them. The
    /// answers may be anything, also infinite.
    pub(crate) fn each<'p>(
        &self,
        count: usize,
        samples: Samples,
        question: impl Fn(usize) -> Request<'p> + Sync,
    ) -> Result<Answers, Halt> {
        if count == 0 {
            return Ok(Answers::default());
        }
        let first = question(0);
        let gradients = first.rows() * self.about.dim;
        let width = gradients + if first.losses { first.points.len() } else { 0 };
        let mut answers = Answers {
            asked: asked(&first.draw),
            gradients,
            width,
            numbers: vec![0.0; count * width],
            charges: vec![Charge::default(); count],
        };
        let numbers = &mut answers.numbers;
        let paid: Vec<Paid> = match self.oracle.team() {
            None => {
                let rows = numbers.par_chunks_mut(width.max(1)).enumerate();
                rows.map(|(i, row)| self.put_or_recall(question(i), row, PARTS))
                    .collect::<Result<_, Halt>>()?
            }
            Some(team) => {
                if let Some(paid) = self.recall_all(width, numbers, &question) {
                    paid
                } else {
                    let paid = self.each_of_team(team, width, numbers, &question)?;
                    self.record_all(width, numbers, &paid, &question);
                    paid
                }
            }
        };
        // All of them went out together.
        lock(&self.spent).rounds += 1;
        for (charge, paid) in answers.charges.iter_mut().zip(paid) {
            *charge = self.spend(paid, samples)?;
        }
        for i in (0..answers.len()).filter(|&i| !answers.is_finite(i)) {
            let Request { draw, points, losses, .. } = question(i);
            self.notice(&draw, points[0], losses);
        }
        Ok(answers)
    }

    #[cold]
    fn notice(&self, draw: &Draw, point: &[f64], losses: bool) {
        let mut spent = lock(&self.spent);
        spent.not_finite += 1;
        spent.suspect = Suspect::of(draw, point, losses).or(spent.suspect.take());
    }

    fn each_of_team<'p>(
        &self,
        team: &dyn Team,
        width: usize,
        numbers: &mut [f64],
        question: &(impl Fn(usize) -> Request<'p> + Sync),
    ) -> Result<Vec<Paid>, Halt> {
        let (first, count) = (question(0), numbers.len() / width.max(1));
        // Large questions to a table are divided by rows, so that a member reads no others than its own.
        if self.is_divided_by_rows(team, &first, width) {
            let rows = numbers.chunks_mut(width.max(1)).enumerate();
            let together = |(i, row): (usize, &mut [f64])| {
                self.put_row(Request { team: Some(team), ..question(i) }, row)
            };
            return rows.map(together).collect();
        }
        team.hear(&first)?;
        team.hear(&question(count - 1))?;
        let work = first.usual_price(self.about).evaluations * count as u128;
        share(team, work, width, numbers, |i, row| self.put_row(question(i), row))
    }

    /// What is kept of a step that was interrupted, if it is all that is asked: the members of a team have the same.
    fn recall_all<'p>(
        &self,
        width: usize,
        numbers: &mut [f64],
        question: &impl Fn(usize) -> Request<'p>,
    ) -> Option<Vec<Paid>> {
        let mut kept = lock(self.kept.as_ref()?);
        let rows = numbers.chunks_mut(width.max(1)).enumerate();
        rows.map(|(i, row)| kept.recall(&Question::of(&question(i)), row)).collect()
    }

    fn record_all<'p>(
        &self,
        width: usize,
        numbers: &[f64],
        paid: &[Paid],
        question: &impl Fn(usize) -> Request<'p>,
    ) {
        let Some(kept) = &self.kept else { return };
        let mut kept = lock(kept);
        for (i, (row, paid)) in numbers.chunks(width.max(1)).zip(paid).enumerate() {
            kept.record(Question::of(&question(i)), row, *paid);
        }
    }

    /// An answer, or parts of it, that a step kept when it was interrupted; the rest is asked, a long question in parts that are kept as well.
    fn put_or_recall(&self, request: Request<'_>, row: &mut [f64], depth: u32) -> Result<Paid, Halt> {
        let Some(kept) = &self.kept else { return self.put_row(request, row) };
        let question = Question::of(&request);
        {
            let mut kept = lock(kept);
            if let Some(paid) = kept.recall(&question, row) {
                return Ok(paid);
            }
            if self.pause.is_some_and(|pause| pause.load(Ordering::Relaxed)) && kept.may_pause() {
                return Err(Halt::Paused);
            }
        }
        let Some([left, right]) = self.parts(&request, depth) else {
            let paid = self.put_row(request, row)?;
            lock(kept).record(question, row, paid);
            return Ok(paid);
        };
        let parts = [question.about(&left), question.about(&right)];
        let part = |batch: Batch, row: &mut [f64]| {
            self.put_or_recall(Request { draw: Draw::Batch(batch), ..request.clone() }, row, depth - 1)
        };
        let mut sum = vec![0.0; row.len()];
        let (first, second) = rayon::join(|| part(left, row), || part(right, &mut sum));
        let paid = first?.and(second?);
        row.iter_mut().zip(&sum).for_each(|(total, term)| *total += term);
        lock(kept).join(question, &parts, row, paid);
        Ok(paid)
    }

    /// The two parts of a long question whose answers add up to the answer, bit for bit.
    fn parts(&self, request: &Request<'_>, depth: u32) -> Option<[Batch; 2]> {
        let Draw::Batch(batch) = &request.draw else { return None };
        let leaf = self.oracle.leaf().filter(|_| depth > 0)?;
        let is_long = batch.count() / LEAVES / 2 >= leaf.max(1);
        if is_long { batch.halves(leaf) } else { None }
    }

    fn put_row(&self, request: Request<'_>, row: &mut [f64]) -> Result<Paid, Halt> {
        let (gradients, losses) = row.split_at_mut(request.rows() * self.about.dim);
        self.put(request, &mut Answer { gradients, losses, support: usize::MAX })
    }

    fn is_divided_by_rows(&self, team: &dyn Team, question: &Request<'_>, width: usize) -> bool {
        let samples = u64::try_from(question.usual_price(self.about).samples).unwrap_or(u64::MAX);
        matches!(self.about.source, Source::Table { .. }) && team.divides(samples, width)
    }

    fn put(&self, request: Request<'_>, answer: &mut Answer<'_>) -> Result<Paid, Halt> {
        let request = Request { stop: Some(self.stop), ..request };
        inside(self.term, &request)?;
        let charge = put(self.oracle, self.about, &request, answer).inspect_err(|halt| {
            if let Halt::OverBudget { left, .. } = halt {
                lock(&self.spent).end = Some(*left);
            }
        })?;
        if self.on_nan == OnNan::Skip && check_finite(answer, asked(&request.draw)).is_err() {
            let skipped = skip(self.oracle, self.about, &request, answer)?;
            return Ok(Paid { charge, skipped });
        }
        Ok(Paid { charge, skipped: Skipped::default() })
    }

    fn spend(&self, Paid { mut charge, skipped }: Paid, samples: Samples) -> Result<Charge, Halt> {
        if samples == Samples::Known {
            charge.samples = 0;
        }
        let mut spent = lock(&self.spent);
        spent.charge.samples += charge.samples;
        spent.charge.evaluations += charge.evaluations + skipped.evaluations;
        spent.not_finite += skipped.count;
        if spent.charge.samples > self.most {
            return Err(Halt::Oracle(OracleError::new("it charged more than its price")));
        }
        Ok(charge)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers to many questions of one shape.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The role and step of the first question; each of the others is a step further.
    asked: (Role, u64),
    /// Numbers of an answer that are gradients; losses follow.
    gradients: usize,
    width: usize,
    numbers: Vec<f64>,
    charges: Vec<Charge>,
}

impl Default for Answers {
    fn default() -> Self {
        let asked = (Role::Large, 0);
        Self { asked, gradients: 0, width: 0, numbers: Vec::new(), charges: Vec::new() }
    }
}

impl Answers {
    pub(crate) fn len(&self) -> usize {
        self.charges.len()
    }

    pub(crate) fn gradients(&self, i: usize) -> &[f64] {
        &self.numbers[i * self.width..][..self.gradients]
    }

    pub(crate) fn losses(&self, i: usize) -> &[f64] {
        &self.numbers[i * self.width..(i + 1) * self.width][self.gradients..]
    }

    /// What all of them cost.
    pub(crate) fn samples(&self) -> u128 {
        self.charges.iter().map(|charge| charge.samples).sum()
    }

    fn is_finite(&self, i: usize) -> bool {
        finite(self.gradients(i), self.losses(i), self.asked).is_ok()
    }

    /// Refuses NaN and infinity.
    pub(crate) fn check_finite(&self) -> Result<(), Halt> {
        let (role, first) = self.asked;
        (0..self.len()).try_for_each(|i| finite(self.gradients(i), self.losses(i), (role, first + i as u64)))
    }
}

/// Has each member of a team answer some of the questions. An answer travels as its numbers and what it cost.
fn share(
    team: &dyn Team,
    work: u128,
    width: usize,
    numbers: &mut [f64],
    ask: impl Fn(usize, &mut [f64]) -> Result<Paid, Halt> + Sync,
) -> Result<Vec<Paid>, Halt> {
    const COST: usize = 9;
    let mut rows = vec![0; (width + COST) * (numbers.len() / width.max(1))];
    team.share(work, width + COST, &mut rows, &|range: Range<usize>, rows: &mut [u64]| {
        let both = rows.par_chunks_mut(width + COST).zip(range);
        both.try_for_each(|(row, i)| {
            let mut numbers = vec![0.0; width];
            let Paid { charge, skipped } = ask(i, &mut numbers).map_err(OracleError::from)?;
            let counts = [charge.samples, charge.evaluations, skipped.count, skipped.evaluations];
            for (words, n) in row.chunks_mut(2).zip(counts) {
                words.copy_from_slice(&[n as u64, (n >> 64) as u64]);
            }
            row[COST - 1] = u64::from(charge.exact);
            row[COST..].iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_bits());
            Ok(())
        })
    })?;
    let filled = numbers.chunks_mut(width.max(1)).zip(rows.chunks(width + COST));
    let read = |(numbers, row): (&mut [f64], &[u64])| {
        numbers.iter_mut().zip(&row[COST..]).for_each(|(number, word)| *number = f64::from_bits(*word));
        let number = |words: &[u64]| u128::from(words[0]) | u128::from(words[1]) << 64;
        let [samples, evaluations, count, again] = [0, 2, 4, 6].map(|at| number(&row[at..at + 2]));
        let charge = Charge { samples, evaluations, exact: row[COST - 1] != 0 };
        Paid { charge, skipped: Skipped { count, evaluations: again } }
    };
    Ok(filled.map(read).collect())
}

/// Whether samples are drawn, or were drawn before and are now evaluated elsewhere: then only the evaluations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    New,
    Known,
}
