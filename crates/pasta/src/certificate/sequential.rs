//! The sequential certificate: draw, shrink, bound, look again.

use serde::{Deserialize, Serialize};

use super::made::{Made, Spent};
use super::mapping::{self, CENTRE, CENTRE_MEANS, CENTRE_SAMPLES, Centred};
use super::means::Means;
use super::rounding::{self, Known, LEAST_COUNT, Spread};
use super::{Basis, Certificate, CertificateError, Claim, ClaimError, PILOT, Quantity, Verdict};
use crate::check::{self, Agreement};
use crate::checkpoint::CheckpointError;
use crate::digest::Digest;
use crate::draws::Role;
use crate::gate::{Gate, Halt};
use crate::kernels::squared_norm;
use crate::moments::Moments;
use crate::oracle::{About, Request, Source};
use crate::term::Term;

/// Sub-batches of the first track: s^2 v = 2 log(1/delta)/k must be below 1/100, and the more there are the
/// sharper the variance is known.
const SUB_BATCHES: f64 = 4096.0;
/// Numbers of the sub-batches of a group that are held at a time.
const MOST_HELD: u64 = 4_000_000;
/// Each further track aims at half the margin, so at four times the samples; it gets a fifth of the error.
pub(super) const TRACKS: usize = 3;
const FIRST_SHARE: f64 = 0.8;
const NEXT_SHARE: f64 = 0.2;
/// Of a variance estimated on the side, this share of all error; look j = 0, 1, .. at it gets LOOK_SHARE^(j+1) of the share.
const VARIANCE_SHARE: f64 = 0.2;
const LOOK_SHARE: f64 = 0.5;
/// Losses are compared with gradients by a small part of the samples that a certificate may draw.
const COMPARED_OF: u128 = 8;
/// A plan takes an estimated variance for this many times as much, so that a typical error does not leave it too small.
pub(crate) const UNSURE: f64 = 1.2;

/// A certificate in the making: a step is a group of sub-batches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Certifier {
    #[serde(skip)]
    x: Vec<f64>,
    claim: Claim,
    attempt: u64,
    /// m: samples of a sub-batch.
    samples_each: u64,
    /// What one sample costs: more than one where a sample is made of several.
    price: u128,
    tracks: Vec<Track>,
    moments: Moments,
    /// The next look at the variance: its number, and the count of sub-batches it waits for.
    variance_look: (i32, u64),
    /// An upper bound on v; the smallest so far. v itself never changes.
    variance: Option<f64>,
    samples: u128,
    /// What it would draw if its budget allowed it.
    wanted: u128,
    /// The rows that it passed over, if it did.
    rows: Option<u64>,
    bound: Option<f64>,
    /// Whether losses were compared with gradients, or cannot be.
    #[serde(default)]
    is_compared: bool,
    #[serde(default)]
    agreement: Option<Agreement>,
    /// Where there is a term: what is certified is the gradient mapping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    centred: Option<Centred>,
    /// What it takes to make it again; `None` if it was begun by a version that did not note it.
    #[serde(default)]
    begun: Option<Begun>,
    /// The sub-batches of a group, where a round has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u64>,
}

/// How a certificate began.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Begun {
    /// The seed of its gate.
    seed: u64,
    /// What was claimed, with all that it could draw at the most.
    claim: Claim,
    /// What its roles had drawn.
    before: Spent,
}

/// One value of s with its running sum.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Track {
    /// s: the scale of the shrinking.
    scale: f64,
    /// log(1/delta) of this track, for the mean.
    log: f64,
    /// The number of sub-batches that s is best for.
    planned: f64,
    /// The sum of c(X).
    #[serde(skip)]
    sum: Vec<f64>,
}

impl Certifier {
    /// Plans a certificate of the point x. `attempt` tells apart the certificates of one run: each has samples of its
    /// own. Unless the variance is declared or guessed, a pilot of 256 samples plans it.
    ///
    /// With a [term](Gate::with_term) it is the gradient mapping that is certified, with the gate's gamma or, if it has none, one that a few samples choose.
    ///
    /// An oracle over a finite table is passed over once, and the answer is exact, if the samples would be as many as
    /// its rows.
    pub fn start(gate: &mut Gate, x: &[f64], claim: Claim, attempt: u64) -> Result<Self, CertificateError> {
        claim.check(gate.about(), x)?;
        let centred = mapping::start(gate, x, attempt, claim.budget)?;
        let guess = claim.guess.and_then(|guess| guess.variance);
        let price = gate.price(&Request::sums(gate.batch(Role::Certificate, 0, 1), &[x])).samples.max(1);
        let mut certifier = Self {
            x: x.to_vec(),
            claim,
            attempt,
            samples_each: 1,
            price,
            tracks: Vec::new(),
            moments: Moments::new(x.len()),
            variance_look: (0, 0),
            variance: None,
            samples: centred.as_ref().map_or(0, |centred| centred.samples),
            wanted: 0,
            rows: None,
            bound: None,
            is_compared: false,
            agreement: None,
            centred,
            begun: Some(Begun {
                seed: gate.seed(),
                claim: claim.within(gate),
                before: Spent::of(gate.ledger()),
            }),
            group: None,
        };
        let variance = match (claim.basis.declared_variance(), guess) {
            (Some(declared), _) => declared,
            (None, Some(guess)) => UNSURE * guess,
            (None, None) if claim.basis == Basis::Exact => 0.0,
            (None, None) => {
                let pilot = PILOT.min(certifier.left(gate));
                let (moments, samples) = certifier.means(Role::Pilot, 1).moments(gate, 0..pilot)?;
                certifier.samples += samples;
                UNSURE * moments.variance()
            }
        };
        certifier.plan(variance, claim.samples_for(variance));
        certifier.wanted = certifier.planned_samples();
        let rows = gate.about().full_pass().unwrap_or(0);
        let affordable = certifier.allowed(gate);
        let pass = rows > 0 && u128::from(rows) <= certifier.wanted && u128::from(rows) <= affordable;
        if pass || claim.basis == Basis::Exact {
            certifier.claim.basis = Basis::Exact;
            certifier.wanted = u128::from(rows);
        } else if affordable < certifier.wanted - certifier.samples {
            // The best bound that can be had.
            let left = certifier.left(gate);
            certifier.plan(variance, left as f64);
        } else if certifier.wanted as f64 > MOST_SAMPLES {
            let planned = claim.usual_samples(variance).min(f64::MAX);
            return Err(ClaimError::TooMany { planned }.into());
        }
        certifier.group = certifier.wide_group(gate.round_cost());
        certifier.draw_centre(gate)?;
        Ok(certifier)
    }

    /// g0, where there is a term: the mean of samples of its own, fixed before the first sample of the certificate.
    fn draw_centre(&mut self, gate: &mut Gate) -> Result<(), Halt> {
        if self.centred.is_none() || self.claim.basis == Basis::Exact {
            return Ok(());
        }
        // Its error adds |g - g0|^2 to v: with so many samples a few hundredths.
        let each = self.samples_each.max(CENTRE_SAMPLES).min(self.left(gate) / (2 * CENTRE_MEANS));
        let mut drawn = (vec![0.0; self.x.len()], 0);
        if each > 0 {
            let means = self.means(Role::Pilot, each);
            let (moments, samples) = means.moments(gate, CENTRE..CENTRE + CENTRE_MEANS)?;
            drawn = (moments.mean, samples);
        }
        self.samples += drawn.1;
        if let Some(centred) = &mut self.centred {
            centred.centre = drawn.0;
        }
        Ok(())
    }

    /// Draws to the end.
    pub fn finish(mut self, gate: &mut Gate) -> Result<Certificate, Halt> {
        loop {
            if let Some(certificate) = self.advance(gate)? {
                return Ok(certificate);
            }
        }
    }

    /// Draws to the end, or until it is interrupted: then it answers as far as it came. `watch` sees the gate and the samples that are planned after every
    /// group.
    pub fn follow(
        &mut self,
        gate: &mut Gate,
        mut watch: impl FnMut(&Gate, u128),
    ) -> Result<Certificate, Halt> {
        loop {
            match self.advance(gate) {
                Ok(Some(certificate)) => return Ok(certificate),
                Ok(None) => watch(gate, self.planned_samples()),
                Err(Halt::Interrupted) => return Ok(self.answer(Verdict::Interrupted)),
                Err(halt) => return Err(halt),
            }
        }
    }

    /// Draws one group of sub-batches; the answer when there is one. After a halt it stands where it stood.
    pub fn advance(&mut self, gate: &mut Gate) -> Result<Option<Certificate>, Halt> {
        if !self.is_compared && self.compare(gate)? {
            return Ok(self.contradicted());
        }
        if self.claim.basis == Basis::Exact {
            return self.pass_over_all(gate).map(Some);
        }
        let group = self.group().min(self.left(gate) / self.samples_each);
        if group == 0 {
            return Ok(Some(self.answer(Verdict::OutOfBudget)));
        }
        if self.moments.count as f64 >= 2.0 * self.tracks.last().map_or(0.0, |t| t.planned) {
            return Ok(Some(self.answer(Verdict::NotReached)));
        }
        self.draw(gate, group)?;
        self.look_at_variance();
        if let Some(bound) = self.bound_now(gate) {
            self.bound = Some(self.bound.map_or(bound, |best| best.min(bound)));
        }
        if self.bound.is_some_and(|bound| bound <= self.claim.target) {
            return Ok(Some(match self.claim.basis {
                Basis::Approximate => self.answer(Verdict::Likely),
                Basis::Kurtosis(_) if self.moments.variance() == 0.0 && !gate.about().trusted => {
                    Certificate { bound: None, ..self.answer(Verdict::NoNoise) }
                }
                _ => self.answer(Verdict::Certified),
            }));
        }
        Ok(self.looks_above(gate).then(|| self.answer(Verdict::Above)))
    }

    /// The answer, were it given now.
    pub fn answer(&self, verdict: Verdict) -> Certificate {
        let Claim { target, delta, basis, .. } = self.claim;
        let Self { bound, samples, rows, agreement, .. } = *self;
        let mapping = |centred: &Centred| Quantity::GradientMapping { gamma: centred.gamma };
        let of = self.centred.as_ref().map_or(Quantity::Gradient, mapping);
        Certificate { verdict, of, bound, target, delta, basis, samples, rows, agreement }
    }

    /// How it was made, as far as it came: what it takes to make it again, and the numbers behind its bound.
    pub fn made(&self) -> Option<Made> {
        let Begun { seed, mut claim, before } = self.begun?;
        let own = self.claim.budget.filter(|most| *most < u128::MAX);
        claim.budget = claim.budget.into_iter().chain(own).min();
        let scale = |i: usize| self.tracks.get(i).map_or(0.0, |track| track.scale);
        Some(Made {
            seed,
            attempt: self.attempt,
            claim,
            point: Digest::of_point(&self.x),
            samples_each: self.samples_each,
            sub_batches: self.moments.count,
            planned: self.tracks.first().map_or(0.0, |track| track.planned),
            scales: std::array::from_fn(scale),
            group: self.group,
            variance: self.variance,
            mean: squared_norm(&self.moments.mean).sqrt(),
            scatter: self.moments.scatter(),
            before,
        })
    }

    /// Compares losses with gradients at the point, if its samples allow that. Whether any was drawn.
    fn compare(&mut self, gate: &mut Gate) -> Result<bool, Halt> {
        let affordable = self.allowed(gate) / self.price >= COMPARED_OF * u128::from(check::AGAIN);
        let before = gate.ledger().clone();
        if self.claim.basis != Basis::Approximate && affordable {
            let found = check::again(gate, &self.x, self.attempt);
            // What did not come to its end is made, and counted, again.
            self.agreement = found.inspect_err(|_| gate.rewind(before.clone()))?;
        }
        self.is_compared = true;
        let drawn = gate.ledger().of(Role::Slopes).samples - before.of(Role::Slopes).samples;
        self.samples += drawn;
        Ok(drawn > 0)
    }

    /// Gradients that are not those of the losses bound nothing.
    fn contradicted(&self) -> Option<Certificate> {
        let is_contradicted = self.agreement.is_some_and(|agreement| agreement.contradiction.is_some());
        is_contradicted.then(|| self.answer(Verdict::Void).void())
    }

    /// The samples that it will draw if the gradient is as small as the plan supposes.
    pub fn planned_samples(&self) -> u128 {
        let sub_batches = self.tracks.first().map_or(0.0, |track| track.planned);
        let planned = (sub_batches * self.samples_each as f64) as u128;
        self.samples.saturating_add(planned.saturating_mul(self.price))
    }

    /// The same, whatever the budget; the rows, if it will pass over all.
    pub(crate) fn wanted_samples(&self) -> u128 {
        self.wanted
    }

    /// Lets it draw at most so many times the samples that it wants, if it could draw more.
    pub(crate) fn limit_to(&mut self, times: u128) {
        let most = self.wanted.saturating_mul(times);
        self.claim.budget = Some(self.claim.budget.map_or(most, |budget| budget.min(most)));
    }

    /// The vectors, in the order in which a checkpoint stores them.
    pub(crate) fn vectors(&self) -> impl Iterator<Item = &[f64]> {
        let centre = self.centred.iter().map(|centred| &centred.centre);
        let sums = self.tracks.iter().map(|t| &t.sum);
        [&self.x, &self.moments.mean].into_iter().chain(sums).chain(centre).map(Vec::as_slice)
    }

    /// Takes back the vectors of a checkpoint.
    pub(crate) fn restore(&mut self, vectors: Vec<Vec<f64>>, about: &About) -> Result<(), CheckpointError> {
        let planned = self.claim.basis == Basis::Exact || self.tracks.len() == TRACKS;
        if !planned || self.samples_each == 0 || self.price == 0 || self.claim.check_numbers(about).is_err() {
            return Err(CheckpointError::damaged("the plan of its certificate makes no sense"));
        }
        let Self { x, moments, tracks, centred, claim, .. } = self;
        let centre = centred.iter_mut().map(|centred| &mut centred.centre);
        let sums = tracks.iter_mut().map(|t| &mut t.sum);
        let mine: Vec<&mut Vec<f64>> = [x, &mut moments.mean].into_iter().chain(sums).chain(centre).collect();
        // An exact certificate has no centre.
        let fits = |(i, v): (usize, &Vec<f64>)| {
            v.len() == about.dim || (claim.basis == Basis::Exact && i > 1 && v.is_empty())
        };
        if mine.len() != vectors.len() || !vectors.iter().enumerate().all(fits) {
            return Err(CheckpointError::damaged("the vectors of its certificate do not fit the problem"));
        }
        mine.into_iter().zip(vectors).for_each(|(mine, vector)| *mine = vector);
        Ok(())
    }

    /// What may still be charged.
    fn allowed(&self, gate: &Gate) -> u128 {
        let own = self.claim.budget.map_or(u128::MAX, |budget| budget.saturating_sub(self.samples));
        own.min(gate.left())
    }

    /// Samples that may still be drawn, as far as they can be counted.
    fn left(&self, gate: &Gate) -> u64 {
        u64::try_from(self.allowed(gate) / self.price).unwrap_or(u64::MAX)
    }

    /// Where a round costs c samples, groups of sqrt(2 c n) samples of the n that are planned: half of one is drawn in vain on average, and of n samples
    /// that many make the rounds as dear as that.
    fn wide_group(&self, round_cost: u64) -> Option<u64> {
        let planned = self.tracks.first().filter(|_| round_cost > 0)?.planned;
        let samples = (2.0 * round_cost as f64 * planned * self.samples_each as f64).sqrt();
        let most = (MOST_HELD / self.x.len().max(1) as u64).max(32) as f64;
        Some((samples / self.samples_each as f64).min(planned.ceil()).clamp(32.0, most) as u64)
    }

    /// The same groups as in another attempt.
    pub(crate) fn set_group(&mut self, group: Option<u64>) {
        let most = (MOST_HELD / self.x.len().max(1) as u64).max(32);
        self.group = group.map(|group| group.clamp(1, most));
    }

    /// Sub-batches drawn between two looks: enough to keep threads busy, few enough to stop in time.
    fn group(&self) -> u64 {
        if let Some(group) = self.group {
            return group;
        }
        let numbers_each = (self.x.len() as u64).saturating_mul(self.samples_each);
        (1_000_000 / numbers_each.max(1)).clamp(1, 32)
    }

    fn pass_over_all(&mut self, gate: &mut Gate) -> Result<Certificate, Halt> {
        let rows = gate.about().full_pass().unwrap_or(0);
        if u128::from(rows) > self.allowed(gate) {
            return Ok(self.answer(Verdict::OutOfBudget));
        }
        let mut gradient = vec![0.0; self.x.len()];
        self.samples += gate.exact(Role::Certificate, &self.x, &mut gradient)?.samples;
        self.rows = match gate.about().source {
            Source::Table { rows } => Some(rows),
            Source::Stream | Source::Formula => None,
        };
        let norm = match (&self.centred, gate.term()) {
            (Some(centred), Some(term)) => centred.mapping(&**term, &self.x).norm(&gradient),
            _ => squared_norm(&gradient).sqrt(),
        };
        self.bound = Some(norm);
        Ok(self.answer(if norm <= self.claim.target { Verdict::Certified } else { Verdict::Above }))
    }

    fn means(&self, role: Role, samples_each: u64) -> Means<'_> {
        Means { x: &self.x, role, attempt: self.attempt, samples_each }
    }

    /// Chooses m and the tracks for a variance V of one sample and so many samples.
    fn plan(&mut self, variance: f64, samples: f64) {
        let target = self.claim.target;
        let (samples_each, planned) = self.claim.shape(samples);
        self.samples_each = samples_each;
        let v = variance / samples_each as f64;
        self.variance = self.claim.basis.declared_variance().map(|_| v);
        self.tracks = (0..TRACKS)
            .map(|i| {
                // The centre has a share of its own.
                let log = self.claim.log_of(i as i32)
                    + self.centred.as_ref().map_or(0.0, |_| Centred::log_of_rest());
                let planned = planned * 4f64.powi(i as i32);
                let spread = v + target * target;
                Track {
                    scale: (2.0 * log / (planned * spread)).sqrt(),
                    log,
                    planned,
                    sum: vec![0.0; self.x.len()],
                }
            })
            .collect();
        self.variance_look = (0, (planned / 4.0) as u64);
    }

    /// Draws `group` sub-batch means, in parallel, and adds them in their order.
    fn draw(&mut self, gate: &mut Gate, group: u64) -> Result<(), Halt> {
        let first = self.moments.count;
        let means = self.means(Role::Certificate, self.samples_each);
        let (mut means, samples) = means.draw(gate, first..first + group)?;
        self.samples += samples;
        if let Some(Centred { centre, .. }) = &self.centred {
            means
                .iter_mut()
                .for_each(|mean| mean.iter_mut().zip(centre).for_each(|(x, centre)| *x -= centre));
        }
        for mean in &means {
            self.moments.add(mean);
            let norm = squared_norm(mean).sqrt();
            for track in &mut self.tracks {
                let factor = shrink(track.scale * norm);
                track.sum.iter_mut().zip(mean).for_each(|(sum, x)| *sum += factor * x);
            }
        }
        Ok(())
    }

    /// The smallest bound that the tracks give now.
    fn bound_now(&self, gate: &Gate) -> Option<f64> {
        let spread = Spread::of(&self.moments);
        let bounds = self.tracks.iter().filter_map(|track| match (self.claim.basis, &self.centred) {
            (Basis::Approximate, _) => self.approximate_bound(gate, track),
            (_, Some(centred)) => {
                self.mapping_bound(centred, &**gate.term()?, track, &spread, self.variance?)
            }
            (_, None) => self.bound_of(track, &spread, self.variance?),
        });
        bounds.min_by(f64::total_cmp)
    }

    fn bound_of(&self, track: &Track, spread: &Spread, v: f64) -> Option<f64> {
        let (count, dim) = (self.moments.count as f64, track.sum.len());
        let means = rounding::Means { variance: v, samples_each: self.samples_each as f64, dim };
        let known = Known {
            mean: rounding::mean_length_up(&track.sum, count, spread),
            scale: track.scale,
            log: rounding::log_up(track.log),
            count,
            variance: means.variance_at(track.scale),
        };
        known.bound().map(|bound| means.gradient(bound)).filter(|bound| bound.is_finite())
    }

    /// |G| <= a(q) + s (v + beta^2)/2 + log(1/delta)/(s k), q the centre and the mean of what is clipped, beta >= |g - g0|; less where h curves.
    fn mapping_bound(
        &self,
        centred: &Centred,
        term: &dyn Term,
        track: &Track,
        spread: &Spread,
        v: f64,
    ) -> Option<f64> {
        let (count, dim) = (self.moments.count as f64, track.sum.len());
        let means = rounding::Means { variance: v, samples_each: self.samples_each as f64, dim };
        let centre = rounding::norm_up(&centred.centre);
        let known = Known {
            mean: rounding::mean_length_up(&track.sum, count, spread),
            scale: track.scale,
            log: rounding::log_up(track.log),
            count,
            variance: means.variance_about(track.scale, centre)?,
        };
        let of_centre = Known { log: rounding::log_up(track.log + Centred::log_of_centre()), ..known };
        let beta = of_centre.bound()?;
        let q = centred.plus(&track.sum, count);
        let of_x = centred.mapping(term, &self.x);
        let rounded = rounding::clipping_error(count, dim, spread)
            + of_x.rounding(&q)
            + means.shift(centre + beta)
            + 4.0 * f64::EPSILON * (centre + beta + known.mean);
        let (a, tau) = (of_x.stationarity(&q), rounding::deviation_up(&known, beta) + rounded);
        let flat = mapping::bound(a, tau, 0.0);
        // The subgradient of h at x+ is G - g, as long as |g| - |G| at least; |x - x+| is gamma |G|.
        let least = (centre * (1.0 - 1e-9) - beta - rounded - flat).max(0.0);
        let modulus = term.modulus(&self.x, least, centred.gamma * flat) * (1.0 - 1e-9);
        let bound = if modulus > 0.0 { mapping::bound(a, tau, centred.gamma * modulus) } else { flat };
        Some(bound).filter(|bound| bound.is_finite())
    }

    /// Bounds v from the scatter of the sub-batch means, at counts that double.
    fn look_at_variance(&mut self) {
        let (Basis::Kurtosis(kappa), (j, due)) = (self.claim.basis, self.variance_look) else { return };
        let count = self.moments.count;
        if count < due.max(2) {
            return;
        }
        self.variance_look = (j + 1, 2 * count);
        let log = rounding::log_up(self.claim.log_of_variance_look(j));
        let t = ((kurtosis_of_mean(kappa, self.samples_each) + 3.0) * log / (count / 2) as f64).sqrt();
        let t = t * (1.0 + 16.0 * f64::EPSILON);
        if t < 1.0 {
            let bound = (Spread::of(&self.moments).variance / (1.0 - t).next_down()).next_up();
            self.variance = Some(self.variance.map_or(bound, |best| best.min(bound)));
        }
    }

    /// The normal quantile times the standard error, once a track: what most people would do.
    fn approximate_bound(&self, gate: &Gate, track: &Track) -> Option<f64> {
        let k = self.moments.count as f64;
        let just_now = k - (self.group() as f64) < track.planned;
        if k < track.planned || !just_now {
            return None;
        }
        let mean = match (&self.centred, gate.term()) {
            (Some(centred), Some(term)) => {
                centred.mapping(&**term, &self.x).stationarity(&centred.plus(&self.moments.mean, 1.0))
            }
            _ => squared_norm(&self.moments.mean).sqrt(),
        };
        Some(mean + normal_quantile(-track.log) * self.moments.error2().sqrt())
    }

    /// Whether the plain mean is beyond the target by more than its noise could explain.
    fn looks_above(&self, gate: &Gate) -> bool {
        let k = self.moments.count as f64;
        // Before a rare event has happened the scatter is all but zero: what is known of the variance counts too.
        let error2 = match (self.claim.basis, self.variance) {
            (Basis::Approximate, _) => self.moments.error2(),
            (_, Some(v)) => self.moments.error2().max(v / k),
            (_, None) => return false,
        };
        let squared = match (&self.centred, gate.term()) {
            // G moves by no more than the mean: its noise adds no more to the square.
            (Some(centred), Some(term)) => {
                let norm = centred.mapping(&**term, &self.x).norm(&centred.plus(&self.moments.mean, 1.0));
                norm * norm - self.moments.error2()
            }
            _ => self.moments.squared_mean(),
        };
        let norm = squared.max(0.0).sqrt();
        self.tracks.first().is_some_and(|track| k >= LEAST_COUNT * track.log)
            && norm > self.claim.target + 4.0 * error2.sqrt()
    }
}

impl Claim {
    /// The same claim, with the budget that it has at this gate.
    fn within(self, gate: &Gate) -> Self {
        let most = self.budget.map_or(gate.left(), |budget| budget.min(gate.left()));
        Self { budget: Some(most).filter(|most| *most < u128::MAX), ..self }
    }

    /// log(1/delta) for the mean, with the share of delta that a track has.
    fn log_of(&self, track: i32) -> f64 {
        let mean_share = match self.basis {
            Basis::Kurtosis(_) => 1.0 - VARIANCE_SHARE,
            _ => 1.0,
        };
        (1.0 / (FIRST_SHARE * NEXT_SHARE.powi(track) * mean_share * self.delta)).ln()
    }

    /// log(1/delta) for look j = 0, 1, .. at the variance.
    fn log_of_variance_look(&self, j: i32) -> f64 {
        -(VARIANCE_SHARE * LOOK_SHARE.powi(j + 1) * self.delta).ln()
    }

    /// m, and the number of sub-batches that the first track plans, for so many samples.
    fn shape(&self, samples: f64) -> (u64, f64) {
        let samples_each = (samples / SUB_BATCHES).ceil().clamp(1.0, MAX_SUB_BATCH) as u64;
        // Of a variance that is not declared, a bound within a factor of two: t = 1/2 at the third look, when the plan
        // is done.
        let for_variance = match self.basis {
            Basis::Kurtosis(kappa) => {
                8.0 * (kurtosis_of_mean(kappa, samples_each) + 3.0) * self.log_of_variance_look(2)
            }
            _ => 0.0,
        };
        // s^2 v <= 1/100 needs this many; a noiseless oracle needs no more either.
        let least = for_variance.max(250.0 * self.log_of(0));
        (samples_each, (samples / samples_each as f64).max(least))
    }

    /// With fewer samples than these there is no certificate of this basis, where one sample has at least this variance and no
    /// table can be passed over: not even if the gradient is zero.
    pub fn least_samples(&self, variance: f64) -> f64 {
        let log = self.log_of(0);
        (2.0 * log * variance / (self.target * self.target)).max(LEAST_COUNT * log)
    }

    /// The samples that a certificate plans where one sample has this variance.
    pub fn usual_samples(&self, variance: f64) -> f64 {
        let (samples_each, planned) = self.shape(self.samples_for(variance));
        samples_each as f64 * planned
    }

    /// The samples that the first track plans for a variance V of one sample: sqrt(2 V log/n) = margin * target.
    fn samples_for(&self, variance: f64) -> f64 {
        // The margin for error, as a share of the target: the guess leaves 1 - guess/target of it, less the
        // guess's own error. Beyond these limits the plan would be too bold or too dear.
        let margin = self.guess.map_or(0.45, |guess| (0.9 - 0.9 * guess.norm / self.target).clamp(0.2, 0.8));
        2.0 * self.log_of(0) * variance / (margin * self.target).powi(2)
    }
}

/// A sub-batch has at most this many samples, so that they can be counted.
const MAX_SUB_BATCH: f64 = 4.0e18;
/// More than this no plan may have: a sub-batch could not be large enough.
const MOST_SAMPLES: f64 = 1.0e22;

/// The most that the kurtosis of a mean of m samples of kurtosis kappa can be.
fn kurtosis_of_mean(kappa: f64, m: u64) -> f64 {
    let m = m as f64;
    kappa / m + 3.0 * (1.0 - 1.0 / m)
}

/// psi(t)/t with psi(t) = log(1 + t + t^2/2).
#[inline]
pub(super) fn shrink(t: f64) -> f64 {
    // psi(t)/t = 1 - t^2/6 + ..
    if t < 1e-8 { 1.0 } else { libm::log1p(t + 0.5 * t * t) / t }
}

/// z with P(Z > z) = exp(log_tail), by bisection on the complementary error function.
fn normal_quantile(log_tail: f64) -> f64 {
    let tail = libm::exp(log_tail);
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if 0.5 * libm::erfc(middle * std::f64::consts::FRAC_1_SQRT_2) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
