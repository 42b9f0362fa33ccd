//! Sums and differences beside the samples that they are made of.

use std::ops::Range;

use super::slip::Slip;
use super::slopes::direction;
use super::{Early, Findings, distance, finite, norm};
use crate::draws::Role;
use crate::gate::Gate;
use crate::oracle::{Answer, Batch, Request};

/// Sums are compared up to this part of the size of their terms. Rounding is below it by far, slips are above it.
const ROUNDING: f64 = 1e-9;

/// Of a sum at the start and at a point nearby.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Of gradients and of losses: the size of the sum, and of its change from one point to the other.
    of: [[f64; 2]; 2],
    /// The change of the losses over what the gradients say of it.
    ratio: f64,
}

/// Asks for sums at and near the start.
pub(super) struct Sums<'a> {
    pub(super) gate: &'a mut Gate,
    pub(super) x: &'a [f64],
    /// Samples of a sum.
    pub(super) n: u64,
}

/// What is left to be found out where samples can be spared.
#[derive(Debug, Clone, Default)]
pub(super) struct Open {
    /// The sum that two addresses have in common, where it is not that of equal samples.
    same_sum: Option<Vec<f64>>,
}

impl Sums<'_> {
    /// Repeats, terms, addresses and differences.
    pub(super) fn compare(&mut self, findings: &mut Findings) -> Result<Open, Early> {
        let n = self.n;
        let sum = self.sum(0, 0..n)?;
        let again = self.sum(0, 0..n)?;
        if !findings.is_repeatable {
            findings.has_noise = again != sum;
            return Ok(Open::default());
        }
        if sum.iter().zip(&again).any(|(a, b)| a.to_bits() != b.to_bits()) {
            let relative = distance(&sum, &again) / norm(&sum).max(norm(&again));
            return Err(Early::Slip(Slip::OwnGenerator { samples: n, relative }));
        }
        let singles: Vec<Vec<f64>> = (0..n).map(|i| self.sum(0, i..i + 1)).collect::<Result<_, _>>()?;
        let all_equal = singles.iter().all(|single| *single == singles[0]);
        let is_their_sum = not_the_sum(&sum, &singles);
        // Samples that are all alike add up to n of them, unless a call draws several from a generator that it ignores.
        findings.has_noise = !all_equal || is_their_sum.is_some();
        if self.gate.about().additive {
            findings.slips.extend(is_their_sum);
        }
        // Where events are rare, most sums are n times the sample without one.
        let is_of_equals =
            singles.iter().any(|single| not_the_sum(&sum, &vec![single.clone(); n as usize]).is_none());
        let same_sum = (!is_of_equals && n > 1 && self.sum(1, 0..n)? == sum).then_some(sum);
        findings.slips.extend(self.difference(n)?);
        // An oracle that overwrites is wrong about its differences too: once is enough.
        findings.slips.dedup_by(|a, b| std::mem::discriminant(a) == std::mem::discriminant(b));
        Ok(Open { same_sum })
    }

    /// Whether all addresses have the sum that two have in common, with at most so many samples. Where few values occur, two agree by chance: of the
    /// sums of five zeros and ones at most 0.41 are alike, without all terms being so, and all of sixteen with a chance of 10^-6.
    pub(super) fn ignores_seed(&mut self, open: &Open, most: u64) -> Result<Option<Slip>, Early> {
        const ADDRESSES: u64 = 16;
        let (n, Some(sum)) = (self.n, &open.same_sum) else { return Ok(None) };
        if most < (ADDRESSES - 2) * n {
            return Ok(None);
        }
        for i in 2..ADDRESSES {
            if self.sum(600 + i, 0..n)? != *sum {
                return Ok(None);
            }
        }
        Ok(Some(Slip::IgnoresSeed { samples: n, addresses: ADDRESSES }))
    }

    /// The sum of some samples at the start.
    fn sum(&mut self, step: u64, samples: Range<u64>) -> Result<Vec<f64>, Early> {
        let batch = Batch { samples, ..self.gate.batch(Role::Check, step, 0) };
        let mut sum = vec![0.0; self.x.len()];
        let asked = self.gate.ask(Request::sums(batch, &[self.x]), &mut Answer::new(&mut sum));
        finite(asked, 0.0)?;
        Ok(sum)
    }

    /// Whether sums over samples are sums, where they cannot be compared with their terms, with at most so many samples.
    ///
    /// The mean square of a sum of n independent samples is at least n times that of one, whatever their law is; that of their mean is at most that of
    /// one. The same holds for changes from one point to another, which have less noise; and where draws cancel each other, as antithetic ones do,
    /// sums are small, but their changes are not. So both must be small. A few samples raise a suspicion, which more confirm or not, by medians of mean
    /// squares, which no outlier moves: an honest oracle pays for them now and then, and is not accused.
    pub(super) fn mean_for_sum(&mut self, most: u64) -> Result<Option<Slip>, Early> {
        const SAMPLES: u64 = 16;
        const TIMES: u64 = 32;
        const FEW: u64 = 8;
        let first = 4 * self.n;
        if most < 6 * (FEW + 1) {
            return Ok(None);
        }
        let (samples, times, group) = if most >= first + TIMES * (SAMPLES + 1) {
            (SAMPLES, TIMES, 8)
        } else {
            (FEW, (most / (FEW + 1)).min(TIMES), 1)
        };
        let slip = |sums: &[Sizes], singles: &[Sizes], samples: u64, group: usize, of: usize| {
            let [sum, single] = medians(sums, singles, group, of, 0).map(f64::sqrt);
            Slip::MeanForSum { samples, of_losses: of == 1, sum, single }
        };
        let mut suspects = [true; 2];
        if group > 1 {
            let (sums, singles) = (self.sizes(100, self.n, 3)?, self.sizes(200, 1, self.n)?);
            if let Some(of) = by_ratio(&sums, &singles, self.n) {
                return Ok(Some(slip(&sums, &singles, self.n, 1, of)));
            }
            let mean = |sizes: &[Sizes], of: usize, what: usize| -> f64 {
                sizes.iter().map(|sizes| sizes.of[of][what].powi(2)).sum::<f64>() / sizes.len() as f64
            };
            suspects = [0, 1].map(|of| {
                [0, 1].into_iter().any(|what| mean(&sums, of, what) < 4.0 * mean(&singles, of, what))
            });
        }
        if suspects == [false; 2] {
            return Ok(None);
        }
        let (sums, singles) = (self.sizes(300, samples, times)?, self.sizes(400, 1, times)?);
        if let Some(of) = by_ratio(&sums, &singles, samples) {
            return Ok(Some(slip(&sums, &singles, samples, 1, of)));
        }
        let is_small = |of: usize, what: usize| {
            let [sum, single] = medians(&sums, &singles, group, of, what);
            sum < 2.0 * single
        };
        let is_wrong = |of: usize| {
            // Where most samples do not change at all, as between the kinks of a loss, the change says nothing, and many samples have to.
            let silent = group > 1 && medians(&sums, &singles, group, of, 1)[1] == 0.0;
            // Where all change alike there is no chance in it.
            let is_sharp = [&sums, &singles].into_iter().all(|sizes| is_steady(sizes, of));
            suspects[of] && (silent || is_small(of, 1)) && (is_sharp || is_small(of, 0))
        };
        Ok((0..2).find(|of| is_wrong(*of)).map(|of| slip(&sums, &singles, samples, group, of)))
    }

    /// The sizes of the sums of so many batches of n samples at the start, and of their changes to a point nearby.
    fn sizes(&mut self, step: u64, n: u64, batches: u64) -> Result<Vec<Sizes>, Early> {
        let has_losses = self.gate.about().losses;
        let (y, away) = self.moved(1e-2);
        let points: [&[f64]; 2] = [self.x, &y];
        let d = y.len();
        let (mut sums, mut losses) = (vec![0.0; 2 * d], [0.0; 2]);
        let mut all = Vec::new();
        for i in 0..batches {
            let batch = self.gate.batch(Role::Check, step + i, n);
            let room: &mut [f64] = if has_losses { &mut losses } else { &mut [] };
            let mut answer = Answer { gradients: &mut sums, losses: room, support: d };
            let request = Request { losses: has_losses, ..Request::sums(batch, &points) };
            finite(self.gate.ask(request, &mut answer), away)?;
            let (here, there) = sums.split_at(d);
            let [loss, other] = losses;
            let said: f64 = here
                .iter()
                .zip(there)
                .zip(self.x.iter().zip(&y))
                .map(|((a, b), (x, y))| 0.5 * (a + b) * (x - y))
                .sum();
            let of = [[norm(here), distance(here, there)], [loss.abs(), (loss - other).abs()]];
            all.push(Sizes { of, ratio: (loss - other) / said });
        }
        Ok(all)
    }

    /// What is wrong with differences.
    fn difference(&mut self, n: u64) -> Result<Option<Slip>, Early> {
        let (y, away) = self.moved(1e-3);
        let points: [&[f64]; 2] = [self.x, &y];
        let d = self.x.len();
        let (mut both, mut difference) = (vec![0.0; 2 * d], vec![0.0; d]);
        let batch = self.gate.batch(Role::Check, 2, n);
        finite(self.gate.ask(Request::sums(batch.clone(), &points), &mut Answer::new(&mut both)), away)?;
        let asked = self.gate.ask(Request::differences(batch, &points), &mut Answer::new(&mut difference));
        finite(asked, away)?;
        let (gx, gy) = both.split_at(d);
        let combined = |sign: f64| -> Vec<f64> { gx.iter().zip(gy).map(|(a, b)| a + sign * b).collect() };
        let size = norm(gx) + norm(gy);
        // A few samples may cancel; what each of them adds is what rounding is measured by.
        let is =
            |what: &[f64]| distance(&difference, what) <= ROUNDING * (n as f64) * size.max(f64::MIN_POSITIVE);
        Ok(if is(&combined(-1.0)) {
            None
        } else if is(&combined(1.0)) {
            Some(Slip::IgnoresWeight)
        } else if is(&gy.iter().map(|g| -g).collect::<Vec<_>>()) {
            Some(Slip::Overwrites { samples: n })
        } else {
            Some(Slip::NotTheDifference { relative: distance(&difference, &combined(-1.0)) / size })
        })
    }

    /// The start moved a little in a random direction, and by how much.
    fn moved(&self, h: f64) -> (Vec<f64>, f64) {
        let v = direction(self.gate.seed(), Role::Check, 0, self.x);
        let moved = |h: f64| {
            let mut y: Vec<f64> = self.x.iter().zip(&v).map(|(x, v)| x + h * v).collect();
            self.gate.keep_inside(&mut y);
            y
        };
        let y = moved(h);
        // That way may lead out of a domain.
        (if y == self.x { moved(-h) } else { y }, h * norm(&v))
    }
}

/// The median over groups of the mean squares of sums, and of single samples. In doubt, that of the sums is large and that of the singles small.
fn medians(sums: &[Sizes], singles: &[Sizes], group: usize, of: usize, what: usize) -> [f64; 2] {
    let groups = |sizes: &[Sizes]| {
        let square = |group: &[Sizes]| group.iter().map(|sizes| sizes.of[of][what].powi(2)).sum::<f64>();
        let mut squares: Vec<f64> = sizes.chunks_exact(group).map(square).collect();
        squares.sort_by(f64::total_cmp);
        squares.into_iter().map(|square| square / group as f64).collect::<Vec<f64>>()
    };
    let (sums, singles) = (groups(sums), groups(singles));
    [sums[sums.len() / 2], singles[(singles.len() - 1) / 2]]
}

/// Gradients or losses, if those are not added up and the others are: then all sums of n say n times as much of the one as of the other, or an n-th of
/// it, where single samples say the same of both.
fn by_ratio(sums: &[Sizes], singles: &[Sizes], n: u64) -> Option<usize> {
    let n = n as f64;
    let all = |sizes: &[Sizes], ratio: f64| sizes.iter().all(|size| (size.ratio / ratio - 1.0).abs() < 0.1);
    let is_right = all(singles, 1.0);
    [n, 1.0 / n].into_iter().position(|ratio| is_right && all(sums, ratio))
}

/// Whether all changes are of one size.
fn is_steady(sizes: &[Sizes], of: usize) -> bool {
    let changes = || sizes.iter().map(|sizes| sizes.of[of][1]);
    let (least, most) = (changes().fold(f64::INFINITY, f64::min), changes().fold(0.0, f64::max));
    least > 0.0 && most < 1.1 * least
}

/// What is wrong with a sum, beside its terms.
fn not_the_sum(sum: &[f64], singles: &[Vec<f64>]) -> Option<Slip> {
    let samples = singles.len() as u64;
    let mut expected = vec![0.0; sum.len()];
    singles.iter().for_each(|single| expected.iter_mut().zip(single).for_each(|(e, g)| *e += g));
    let size: f64 = singles.iter().map(|single| norm(single)).sum::<f64>().max(f64::MIN_POSITIVE);
    let relative = distance(sum, &expected) / size;
    if relative <= ROUNDING {
        return None;
    }
    let last = singles.last()?;
    Some(if distance(sum, last) <= ROUNDING * size {
        Slip::Overwrites { samples }
    } else {
        Slip::NotAdditive { samples, relative }
    })
}
