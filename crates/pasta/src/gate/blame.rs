//! Whose fault an answer is that is not finite: the oracle's, or that of the point.

use super::window::Samples;
use super::{Gate, Halt};
use crate::draws::Role;
use crate::oracle::{Answer, Batch, Draw, Request};
use crate::stop::{Divergence, Mixed, Stop};

/// To find out whose fault an infinite answer is, so many of its samples are asked for one by one.
const SINGLES: u64 = 64;

/// The addresses of the other samples that are asked for then.
const BLAME: u64 = 1 << 40;

/// A question whose answer was not finite.
#[derive(Debug, Clone)]
pub(super) struct Suspect {
    batch: Batch,
    point: Vec<f64>,
    /// Whether losses were asked for.
    losses: bool,
}

impl Suspect {
    pub(super) fn of(draw: &Draw, point: &[f64], losses: bool) -> Option<Self> {
        match draw {
            Draw::Batch(batch) => Some(Self { batch: batch.clone(), point: point.to_vec(), losses }),
            Draw::Everything(_) => None,
        }
    }
}

impl Gate {
    /// Counts an answer that was not finite.
    #[cold]
    pub(crate) fn notice(&mut self, draw: &Draw, point: &[f64], losses: bool) {
        self.ledger.count_not_finite(1);
        self.suspect = Suspect::of(draw, point, losses).or(self.suspect.take());
    }

    /// Where the last answer was asked for that was not finite, if nobody was blamed for it.
    pub(crate) fn suspect(&self) -> Option<&[f64]> {
        self.suspect.as_ref().map(|suspect| suspect.point.as_slice())
    }

    /// Whether the last answer that was not finite is the oracle's fault: then there is a point at which some answers are finite and others are
    /// not. The same question is asked once more; then its samples one by one, and some others, at a point where answers ought to be finite.
    pub(crate) fn blame(&mut self, good: &[f64], others: u64, step: u64) -> Result<Option<Mixed>, Halt> {
        let Some(suspect) = self.suspect.take() else { return Ok(None) };
        let Suspect { batch, point, losses } = &suspect;
        let (mut sum, mut loss) = (vec![0.0; point.len()], [0.0]);
        let mut answer = Answer { losses: &mut loss, ..Answer::new(&mut sum) };
        let points: &[&[f64]] = &[point];
        let again = Request { losses: *losses, ..Request::sums(batch.clone(), points) };
        let mixed = match self.ask(again, &mut answer) {
            Ok(_) => Some(Mixed { step, not_finite: 1, answers: 2 }),
            Err(Halt::NotFinite { .. }) => self.mixed_at(good, Some(&suspect), others, step)?,
            // There is no room to find out.
            Err(Halt::OverBudget { .. }) => None,
            Err(halt) => return Err(halt),
        };
        self.suspect = None;
        Ok(mixed)
    }

    /// Asks for single samples at a point, those of a batch and others: some are finite and others are not?
    fn mixed_at(
        &mut self,
        x: &[f64],
        suspect: Option<&Suspect>,
        others: u64,
        step: u64,
    ) -> Result<Option<Mixed>, Halt> {
        let losses = suspect.is_some_and(|suspect| suspect.losses);
        let own = suspect.map(|suspect| &suspect.batch).filter(|_| self.about.additive);
        let fresh = self.batch(Role::Check, BLAME + self.ledger.not_finite() as u64 % BLAME, others);
        let (mut not_finite, mut answers) = (0, 0);
        for batch in own.into_iter().chain([&fresh]) {
            let count = batch.count().min(4 * SINGLES);
            match self.not_finite_at(x, batch, count, losses) {
                Ok(bad) => (not_finite, answers) = (not_finite + bad, answers + count),
                Err(Halt::OverBudget { .. }) => {}
                Err(halt) => return Err(halt),
            }
        }
        Ok((0 < not_finite && not_finite < answers).then_some(Mixed { step, not_finite, answers }))
    }

    /// How many of the first samples of a batch are not finite at a point.
    fn not_finite_at(&mut self, x: &[f64], batch: &Batch, count: u64, losses: bool) -> Result<u64, Halt> {
        let before = self.ledger.not_finite();
        let (points, first) = (&[x], batch.samples.start);
        self.window(batch.role, u128::from(count), |window| {
            window.each(count as usize, Samples::New, |i| {
                let at = first + i as u64;
                let single = Batch { samples: at..at + 1, ..batch.clone() };
                Request { losses, ..Request::sums(single, points) }
            })
        })?;
        Ok((self.ledger.not_finite() - before) as u64)
    }

    /// How a walk ends that cannot go on from x because of this: where it is the oracle's answer, and the oracle's fault, as that.
    pub(crate) fn end_of(
        &mut self,
        divergence: Divergence,
        batch: Batch,
        x: &[f64],
        start: &[f64],
    ) -> Result<Stop, Halt> {
        let Divergence::Gradient { step } = divergence else { return Ok(Stop::Diverged(divergence)) };
        let mut sum = vec![0.0; x.len()];
        let mixed = match self.ask(Request::sums(batch, &[x]), &mut Answer::new(&mut sum)) {
            Err(Halt::NotFinite { .. }) => self.blame(start, SINGLES, step)?,
            // The oracle does not repeat itself, or the walk's own arithmetic failed.
            Ok(_) => self.mixed_at(start, None, 4 * SINGLES, step)?,
            Err(Halt::OverBudget { .. }) => None,
            Err(halt) => return Err(halt),
        };
        Ok(mixed.map_or(Stop::Diverged(divergence), Stop::NotFinite))
    }
}
