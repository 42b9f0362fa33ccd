//! Where certificates are tried: points at which the gradient, and the variance and kurtosis of the noise, are known.

use std::sync::{Mutex, PoisonError};

use pasta_opt::bounds::{CHAIN_NOISE, CHAIN_SMOOTHNESS, LowerSmooth};
use pasta_opt::certificate::{Certificate, Certifier, Grade, Request, Verdict};
use pasta_opt::draws::Role;
use pasta_opt::hard::HardInstance;
use pasta_opt::oracle::Batch;
use pasta_opt::prelude::*;
use serde::Serialize;

use super::Broken;

pub(super) const DELTA: f64 = 0.05;
/// What the kurtosis grade assumes.
pub(super) const KURTOSIS: f64 = 100.0;
/// |grad f|/eps where a certificate is false, and where it is due.
const JUST_ABOVE: f64 = 1.02;
const HALF: f64 = 0.5;
/// Samples allowed where a certificate is false, in units of V/eps^2.
pub(super) const ALLOWED: f64 = 130.0;
/// Samples allowed where it is due. A little more than the dearer of the goals; but a kurtosis of 100 needs some
/// thousands whatever the unit.
const ALLOWED_WHEN_DUE: f64 = 160.0;
const ALLOWED_AT_LEAST: f64 = 12_000.0;

/// V/eps^2 where a batch of any size is drawn at once and has one coordinate.
const LARGE: f64 = 1e4;
/// V/eps^2 elsewhere. Any smaller, and the number of sub-batches that the method needs would make up the cost.
const SMALL: f64 = 25.0;
const SMALL_FOR_KURTOSIS: f64 = 64.0;

/// What the noise is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Law {
    /// Noise of variance 1, added to the gradient.
    Tail(Tail),
    /// The oracle of a hard instance: with probability p a sample shows the hidden part of the gradient, 1/p times as
    /// large.
    Mask { p: f64 },
}

/// In the order of the table.
///
/// The last event stands for the worst of its kind. In a search in one dimension, at V/eps^2 = 25, 10^3 and 10^6, with
/// the event along the gradient or against it, n = 32 V/eps^2 the samples that are planned, and n p from 0.003 to 3,000
/// in steps of half a decade (p at most 1/2), 4,000 runs each, declared bounds were false in less than 1 % of the runs
/// where n p <= 1. From there the rate grows with n p, and from n p = 300 on it is level, between 2.6 and 3.8 %, as for
/// normal noise: the worst event is one that is not rare.
const LAWS: [Law; 11] = [
    Law::Tail(Tail::Gaussian),
    Law::Tail(Tail::StudentT { dof: 3.0 }),
    Law::Tail(Tail::StudentT { dof: 2.5 }),
    Law::Tail(Tail::Lognormal { sigma: 1.0 }),
    Law::Tail(Tail::Lognormal { sigma: 1.5 }),
    Law::Tail(Tail::Lognormal { sigma: 2.0 }),
    Law::Mask { p: 1e-2 },
    Law::Mask { p: 1e-4 },
    Law::Tail(Tail::TwoPoint { probability: 1e-4 }),
    Law::Tail(Tail::TwoPoint { probability: 1e-2 }),
    Law::Tail(Tail::TwoPoint { probability: 0.1 }),
];

impl Law {
    pub(super) fn name(self) -> String {
        match self {
            Self::Tail(Tail::Gaussian) => "normal".into(),
            Self::Tail(Tail::StudentT { dof }) => format!("Student t({dof})"),
            Self::Tail(Tail::Lognormal { sigma }) => format!("lognormal({sigma})"),
            Self::Tail(Tail::TwoPoint { probability }) => format!("event, p = {probability}"),
            Self::Mask { p } => format!("mask, p = {p}"),
        }
    }

    /// E|u|^4/(E|u|^2)^2 of the noise u in d dimensions. A mask is an event with a fixed direction.
    fn kurtosis(self, dimension: usize) -> f64 {
        match self {
            Self::Tail(tail) => tail.kurtosis(dimension),
            Self::Mask { p } => Tail::TwoPoint { probability: p }.kurtosis(dimension),
        }
    }

    /// Whether a gradient and its opposite see the same noise.
    fn symmetric(self) -> bool {
        matches!(self, Self::Tail(Tail::Gaussian | Tail::StudentT { .. }))
    }

    /// Whether the sum of a batch has a law of its own, so that its size costs nothing.
    fn drawn_at_once(self) -> bool {
        !matches!(self, Self::Tail(Tail::StudentT { .. } | Tail::Lognormal { .. }))
    }
}

/// What a certificate is asked to rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Claim {
    /// The variance, declared as it is.
    Declared,
    /// A quarter of the variance: a false declaration, to see that it shows.
    Understated,
    /// Kurtosis at most 100.
    Kurtosis,
    /// Nothing: a normal approximation.
    Approximate,
}

/// Whether what a certificate rests on is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Assumption {
    Holds,
    Broken,
    /// An approximation assumes nothing that could hold.
    None,
}

impl Claim {
    fn grade(self, variance: f64) -> Grade {
        match self {
            Self::Declared => Grade::Variance(variance),
            Self::Understated => Grade::Variance(0.25 * variance),
            Self::Kurtosis => Grade::Kurtosis(KURTOSIS),
            Self::Approximate => Grade::Approximate,
        }
    }

    fn assumption(self, kurtosis: f64) -> Assumption {
        match self {
            Self::Declared => Assumption::Holds,
            Self::Kurtosis if kurtosis <= KURTOSIS => Assumption::Holds,
            Self::Kurtosis | Self::Understated => Assumption::Broken,
            Self::Approximate => Assumption::None,
        }
    }

    /// V/eps^2 from which on the unit, and not a least number of samples, makes up the cost.
    pub(super) fn fair_unit(self) -> f64 {
        if self == Self::Kurtosis { SMALL_FOR_KURTOSIS } else { SMALL }
    }
}

/// A noise in a dimension, and all that is asked there.
pub(super) struct Site {
    pub(super) law: Law,
    /// Of the points; a mask has at least 3.
    pub(super) dimension: usize,
    pub(super) kurtosis: f64,
    pub(super) trials: Vec<Trial>,
    source: Source,
}

/// One grade at a site.
pub(super) struct Trial {
    pub(super) claim: Claim,
    pub(super) assumption: Assumption,
    /// |grad f| = 1.02 eps; where the noise is skewed, in both directions.
    above: Vec<Question>,
    /// |grad f| = eps/2; where the noise is skewed, in both directions.
    half: Vec<Question>,
}

/// A point, and what is asked there.
struct Question {
    x: Vec<f64>,
    request: Request,
    /// V/eps^2.
    unit: f64,
}

/// Who answers.
enum Source {
    /// A batch at a time.
    Batches(Noisy),
    /// Sample by sample, each drawn once for all the runs of a seed.
    Samples(Noisy),
    Mask(Box<Masked>),
}

/// What the runs of some seeds came to, at one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// False certificates, in either direction.
    pub(super) false_ones: [u64; 2],
    /// Certificates where they were due.
    pub(super) certified: u64,
    /// Answers there that the gradient looks larger than the target.
    pub(super) above: u64,
    /// Samples that were drawn there.
    pub(super) samples: u128,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.false_ones.iter_mut().zip(other.false_ones).for_each(|(total, more)| *total += more);
        self.certified += other.certified;
        self.above += other.above;
        self.samples += other.samples;
    }
}

/// Every noise in this dimension.
pub(super) fn sites(dimension: usize) -> Result<Vec<Site>, Broken> {
    LAWS.into_iter().map(|law| Site::new(law, dimension)).collect()
}

/// Whether the target is said to be met; the approximate grade says so in a word of its own.
fn succeeded(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Certified | Verdict::Likely)
}

impl Site {
    fn new(law: Law, dimension: usize) -> Result<Self, Broken> {
        match law {
            Law::Tail(tail) => Self::additive(tail, dimension),
            Law::Mask { p } => Self::masked(p, dimension),
        }
    }

    /// Noise of variance 1 around the gradient of |x|^2/2, which is the point itself. The gradient has the direction
    /// (1, .., 1), that of a rare event.
    fn additive(tail: Tail, dimension: usize) -> Result<Self, Broken> {
        let law = Law::Tail(tail);
        let noise = Noise { growth: 0.0, floor: 1.0, tail };
        let origin = vec![0.0; dimension];
        let noisy = Noisy::new(Box::new(Quadratic { spectrum: vec![1.0; dimension] }), noise, origin)?;
        let at_once = law.drawn_at_once() && dimension == 1;
        let question = |claim: Claim, share: f64, sign: f64| {
            let unit = if at_once { LARGE } else { claim.fair_unit() };
            let target = unit.sqrt().recip();
            let x = vec![sign * share * target / (dimension as f64).sqrt(); dimension];
            Question::new(x, share, target, unit, claim.grade(1.0))
        };
        let signs: &[f64] = if law.symmetric() { &[1.0] } else { &[1.0, -1.0] };
        let ask = |claim| {
            let at = |share| signs.iter().map(|&sign| question(claim, share, sign)).collect();
            (at(JUST_ABOVE), at(HALF))
        };
        let banked = !law.drawn_at_once() || (tail == Tail::Gaussian && !at_once);
        let source = if banked { Source::Samples(noisy) } else { Source::Batches(noisy) };
        Ok(Self::with(law, dimension, source, ask))
    }

    /// A hard instance, half of whose chain is known. There the gradient is given, and the target is chosen.
    fn masked(p: f64, dimension: usize) -> Result<Self, Broken> {
        let mask = Masked::new(p, dimension)?;
        let (norm, variance) = (mask.gradient_norm(), mask.variance());
        let ask = |claim: Claim| {
            let at = |share: f64| {
                let target = norm / share;
                let unit = variance / (target * target);
                vec![Question::new(mask.x.clone(), share, target, unit, claim.grade(variance))]
            };
            (at(JUST_ABOVE), at(HALF))
        };
        Ok(Self::with(Law::Mask { p }, mask.x.len(), Source::Mask(Box::new(mask.clone())), ask))
    }

    fn with(
        law: Law,
        dimension: usize,
        source: Source,
        ask: impl Fn(Claim) -> (Vec<Question>, Vec<Question>),
    ) -> Self {
        let kurtosis = law.kurtosis(dimension);
        let mut claims = vec![Claim::Declared, Claim::Kurtosis, Claim::Approximate];
        if law == Law::Tail(Tail::Gaussian) && dimension == 1 {
            claims.insert(1, Claim::Understated);
        }
        let trial = |claim: Claim| {
            let (above, half) = ask(claim);
            Trial { claim, assumption: claim.assumption(kurtosis), above, half }
        };
        Self { law, dimension, kurtosis, trials: claims.into_iter().map(trial).collect(), source }
    }

    /// One run of everything. Runs of a seed may share samples: they stand in different rows.
    pub(super) fn run(&self, seed: u64) -> Result<Vec<Tally>, Broken> {
        match &self.source {
            Source::Batches(oracle) => self.run_on(oracle, seed),
            Source::Mask(oracle) => self.run_on(&**oracle, seed),
            Source::Samples(noisy) => self.run_on(&Bank::new(noisy), seed),
        }
    }

    fn run_on(&self, oracle: &dyn Oracle, seed: u64) -> Result<Vec<Tally>, Broken> {
        let tally = |trial: &Trial| {
            let mut tally = Tally::default();
            for (count, question) in tally.false_ones.iter_mut().zip(&trial.above) {
                *count = u64::from(succeeded(question.put(oracle, seed)?.verdict));
            }
            // Directions take turns.
            let due = trial.half[seed as usize % trial.half.len()].put(oracle, seed)?;
            tally.certified = u64::from(succeeded(due.verdict));
            tally.above = u64::from(due.verdict == Verdict::Above);
            tally.samples = due.samples;
            Ok(tally)
        };
        self.trials.iter().map(tally).collect()
    }
}

impl Trial {
    /// V/eps^2 at |grad f| = 1.02 eps, and at eps/2.
    pub(super) fn units(&self) -> [f64; 2] {
        [self.above[0].unit, self.half[0].unit]
    }
}

impl Question {
    fn new(x: Vec<f64>, share: f64, target: f64, unit: f64, grade: Grade) -> Self {
        let allowed =
            if share > 1.0 { ALLOWED * unit } else { (ALLOWED_WHEN_DUE * unit).max(ALLOWED_AT_LEAST) };
        let request = Request { target, delta: DELTA, grade, budget: Some(allowed as u128), guess: None };
        Self { x, request, unit }
    }

    fn put(&self, oracle: &dyn Oracle, seed: u64) -> Result<Certificate, Broken> {
        Ok(Certifier::start(oracle, &self.x, self.request, seed, 0)?.finish()?)
    }
}

/// The samples of one seed, drawn when they are first asked for and kept for its other runs. The noise does not depend
/// on the point, so they serve them all. Sub-batch i of n takes the samples n i .. n i + n, none twice in a run.
struct Bank<'o> {
    noisy: &'o Noisy,
    /// Of the pilot and of the certificate, one sample after another.
    drawn: [Mutex<Vec<f64>>; 2],
}

impl<'o> Bank<'o> {
    fn new(noisy: &'o Noisy) -> Self {
        // Room for the dearest run: to grow would take twice the memory.
        let room = (ALLOWED * SMALL_FOR_KURTOSIS) as usize * noisy.dim();
        Self { noisy, drawn: [Vec::new(), Vec::with_capacity(room)].map(Mutex::new) }
    }
}

impl Oracle for Bank<'_> {
    fn dim(&self) -> usize {
        self.noisy.dim()
    }

    fn sum(&self, x: &[f64], batch: &Batch, out: &mut [f64]) -> Result<(), OracleError> {
        let (d, n) = (self.dim(), batch.n);
        let place = usize::from(batch.role == Role::Certificate);
        let mut drawn = self.drawn[place].lock().unwrap_or_else(PoisonError::into_inner);
        let (first, end) = ((batch.step * n) as usize, ((batch.step + 1) * n) as usize);
        // The gradient of |x|^2/2 vanishes at the origin: what is left of a sample is its noise.
        for i in drawn.len() / d..end {
            let single = Batch { step: i as u64, n: 1, ..*batch };
            self.noisy.sum(self.noisy.start(), &single, out)?;
            drawn.extend_from_slice(out);
        }
        self.noisy.objective().gradient(x, out);
        out.iter_mut().for_each(|o| *o *= n as f64);
        for noise in drawn[first * d..end * d].chunks_exact(d) {
            out.iter_mut().zip(noise).for_each(|(o, u)| *o += u);
        }
        Ok(())
    }

    fn sum_difference(
        &self,
        x: &[f64],
        y: &[f64],
        batch: &Batch,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        self.noisy.sum_difference(x, y, batch, out)
    }
}

/// The oracle of a hard instance at one point. It is affine in the mean of z, so two answers give all of them; the
/// chain is not evaluated again for every batch.
///
/// g - grad F = h (z/p - 1), h_i = m_i grad_i the masked part of the gradient and z Bernoulli(p) (see
/// [`pasta_opt::hard::Mask`]). So V = E|g - grad F|^2 = |h|^2 (1 - p)/p.
#[derive(Clone)]
struct Masked {
    instance: HardInstance,
    x: Vec<f64>,
    /// What every sample shows.
    open: Vec<f64>,
    /// h, what only a sample with z = 1 shows.
    hidden: Vec<f64>,
}

impl Masked {
    /// The slope is behind, half of the chain is awake, and what the next coordinate says is hidden.
    fn new(p: f64, dimension: usize) -> Result<Self, Broken> {
        // The shortest chain has two coordinates, and u comes before them.
        let chain = dimension.max(3) - 1;
        // With L = eps = 1 and B = 0: T = Delta/(768 l1), rounded down, and p = 1/(1 + b^2/(4 varsigma^2)).
        let instance = HardInstance::smooth(LowerSmooth {
            smoothness: 1.0,
            gap: 768.0 * CHAIN_SMOOTHNESS as f64 * (chain as f64 + 0.5),
            growth: 0.0,
            floor: 2.0 * CHAIN_NOISE as f64 * ((1.0 - p) / p).sqrt(),
            target: 1.0,
        })?;
        let bound = *instance.bound();
        let mut x = vec![0.0; 1 + chain];
        x[0] = 2.0 * bound.reach;
        // Where a coordinate is large, its own part of the gradient is small: most of it is hidden.
        x[1..=chain / 2].fill(10.0 * bound.lambda);
        let mut open = vec![0.0; x.len()];
        instance.stochastic_gradient(&x, 0.0, &mut open);
        let mut hidden = vec![0.0; x.len()];
        instance.gradient(&x, &mut hidden);
        hidden.iter_mut().zip(&open).for_each(|(h, open)| *h -= open);
        Ok(Self { instance, x, open, hidden })
    }

    fn gradient_norm(&self) -> f64 {
        self.open.iter().zip(&self.hidden).map(|(open, h)| (open + h) * (open + h)).sum::<f64>().sqrt()
    }

    fn variance(&self) -> f64 {
        let p = self.instance.bound().p;
        self.hidden.iter().map(|h| h * h).sum::<f64>() * (1.0 - p) / p
    }
}

impl Oracle for Masked {
    fn dim(&self) -> usize {
        self.x.len()
    }

    fn sum(&self, x: &[f64], batch: &Batch, out: &mut [f64]) -> Result<(), OracleError> {
        if x != self.x {
            return Err(OracleError::new("the answers of another point are not known"));
        }
        let (n, p) = (batch.n as f64, self.instance.bound().p);
        let shown = batch.whole().binomial(batch.n, p) as f64 / p;
        for ((o, open), h) in out.iter_mut().zip(&self.open).zip(&self.hidden) {
            *o = n * open + shown * h;
        }
        Ok(())
    }

    fn sum_difference(
        &self,
        x: &[f64],
        y: &[f64],
        batch: &Batch,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        self.instance.sum_difference(x, y, batch, out)
    }
}

#[cfg(test)]
mod tests {
    use pasta_opt::draws::Role;
    use pasta_opt::oracle::Batch;
    use pasta_opt::prelude::*;

    use super::{Bank, LAWS, Law, Masked, Site, Source};

    fn batch(step: u64, n: u64) -> Batch {
        Batch { seed: 5, role: Role::Certificate, step, n }
    }

    fn answer(oracle: &dyn Oracle, x: &[f64], batch: &Batch) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        oracle.sum(x, batch, &mut out).unwrap();
        out
    }

    #[test]
    fn the_mask_answers_as_the_hard_instance_does_and_hides_most_of_the_gradient() {
        for dimension in [1, 10, 1000] {
            let mask = Masked::new(0.01, dimension).unwrap();
            assert_eq!(mask.instance.bound().chain as usize, dimension.max(3) - 1);
            assert!((mask.instance.bound().p - 0.01).abs() < 1e-15);
            let norm = mask.gradient_norm();
            let hidden = mask.hidden.iter().map(|h| h * h).sum::<f64>().sqrt();
            assert!(hidden > 0.9 * norm, "{hidden} of {norm}");
            for step in 0..20 {
                let batch = batch(step, 1 + 50 * step);
                let (ours, its) = (answer(&mask, &mask.x, &batch), answer(&mask.instance, &mask.x, &batch));
                // A few roundings of terms that are at most n/p times the gradient.
                let tolerance = 1e-14 * norm * batch.n as f64 / 0.01;
                assert!(ours.iter().zip(&its).all(|(a, b)| (a - b).abs() <= tolerance));
            }
        }
    }

    #[test]
    fn the_variance_and_kurtosis_of_the_mask_are_those_of_its_two_answers() {
        let mask = Masked::new(0.01, 10).unwrap();
        let mut gradient = vec![0.0; 10];
        mask.instance.gradient(&mask.x, &mut gradient);
        let moment = |power: i32| -> f64 {
            let of = |z: f64| {
                let mut g = vec![0.0; 10];
                mask.instance.stochastic_gradient(&mask.x, z, &mut g);
                g.iter().zip(&gradient).map(|(g, e)| (g - e) * (g - e)).sum::<f64>().sqrt().powi(power)
            };
            0.01 * of(1.0) + 0.99 * of(0.0)
        };
        assert!((moment(2) / mask.variance() - 1.0).abs() < 1e-12);
        let kurtosis = moment(4) / moment(2).powi(2);
        assert!((kurtosis / Law::Mask { p: 0.01 }.kurtosis(10) - 1.0).abs() < 1e-11, "{kurtosis}");
    }

    #[test]
    fn a_bank_hands_out_the_oracles_own_samples_in_any_order_and_at_any_point() {
        let site = Site::new(Law::Tail(Tail::StudentT { dof: 3.0 }), 10).unwrap();
        let Source::Samples(noisy) = &site.source else {
            panic!("a Student t batch is drawn sample by sample")
        };
        let (late, early) = (Bank::new(noisy), Bank::new(noisy));
        let x = [0.25; 10];
        let single = |i| answer(noisy, &x, &batch(i, 1));
        let of_three = answer(&late, &x, &batch(4, 3));
        // Rounding aside, which sums of four numbers of order ten leave below 1e-13.
        for i in 0..10 {
            let sum: f64 = (12..15).map(|j| single(j)[i]).sum();
            assert!((of_three[i] - sum).abs() < 1e-13);
        }
        answer(&early, &[0.0; 10], &batch(0, 1));
        assert_eq!(answer(&early, &x, &batch(4, 3)), of_three);
    }

    #[test]
    fn every_question_has_the_gradient_that_it_claims() {
        for law in LAWS {
            let site = Site::new(law, 10).unwrap();
            let norm = |x: &[f64]| {
                let mut gradient = vec![0.0; x.len()];
                match &site.source {
                    Source::Batches(noisy) | Source::Samples(noisy) => {
                        noisy.objective().gradient(x, &mut gradient);
                    }
                    Source::Mask(mask) => mask.instance.gradient(x, &mut gradient),
                }
                gradient.iter().map(|g| g * g).sum::<f64>().sqrt()
            };
            for trial in &site.trials {
                for (share, questions) in [(1.02, &trial.above), (0.5, &trial.half)] {
                    for question in questions {
                        assert!((norm(&question.x) / question.request.target / share - 1.0).abs() < 1e-12);
                    }
                }
            }
        }
    }
}
