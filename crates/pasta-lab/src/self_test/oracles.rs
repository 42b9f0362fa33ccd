//! Who answers the certificates: oracles that remember what they have computed.

use std::sync::{Arc, Mutex, PoisonError};

use pasta_opt::bounds::{CHAIN_NOISE, CHAIN_SMOOTHNESS, LowerSmooth};
use pasta_opt::draws::Role;
use pasta_opt::hard::HardInstance;
use pasta_opt::oracle::{About, Answer, Charge, Draw, Request};
use pasta_opt::prelude::*;

use super::Broken;
use super::case::{ALLOWED, SMALL_FOR_KURTOSIS};

/// The samples of one seed, drawn when they are first asked for and kept for its other runs. The noise does not depend
/// on the point, so they serve them all. Sub-batch i of n takes the samples n i .. n i + n, none twice in a run.
pub(super) struct SampleCache {
    noisy: Arc<Noisy>,
    /// Of the pilot and of the certificate, one sample after another.
    drawn: [Mutex<Vec<f64>>; 2],
}

impl SampleCache {
    pub(super) fn new(noisy: &Arc<Noisy>) -> Self {
        // Room for the dearest run: to grow would take twice the memory.
        let room = (ALLOWED * SMALL_FOR_KURTOSIS) as usize * noisy.about().dim;
        Self { noisy: Arc::clone(noisy), drawn: [Vec::new(), Vec::with_capacity(room)].map(Mutex::new) }
    }
}

impl Oracle for SampleCache {
    fn about(&self) -> &About {
        self.noisy.about()
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let (Draw::Batch(batch), &[x]) = (&request.draw, request.points) else {
            return self.noisy.answer(request, answer);
        };
        let (d, n) = (x.len(), batch.count());
        let place = usize::from(batch.role == Role::Certificate);
        let mut drawn = self.drawn[place].lock().unwrap_or_else(PoisonError::into_inner);
        let (first, end) = ((batch.step * n) as usize, ((batch.step + 1) * n) as usize);
        // The gradient of |x|^2/2 vanishes at the origin: what is left of a sample is its noise.
        for i in drawn.len() / d..end {
            let single = Batch { step: i as u64, samples: 0..1, ..batch.clone() };
            self.noisy.answer(&Request::sums(single, &[self.noisy.start()]), answer)?;
            drawn.extend_from_slice(answer.gradients);
        }
        self.noisy.objective().gradient(x, answer.gradients);
        answer.gradients.iter_mut().for_each(|g| *g *= n as f64);
        for noise in drawn[first * d..end * d].chunks_exact(d) {
            answer.gradients.iter_mut().zip(noise).for_each(|(g, u)| *g += u);
        }
        Ok(request.usual_price(self.about()))
    }
}

/// The oracle of a hard instance at one point. It is affine in the mean of z, so two answers give all of them; the
/// chain is not evaluated again for every batch.
///
/// g - grad F = h (z/p - 1), h_i = m_i grad_i the masked part of the gradient and z Bernoulli(p) (see
/// [`pasta_opt::hard::Mask`]). So V = E|g - grad F|^2 = |h|^2 (1 - p)/p.
pub(super) struct Masked {
    pub(super) instance: HardInstance,
    pub(super) x: Vec<f64>,
    /// What every sample shows.
    open: Vec<f64>,
    /// h, what only a sample with z = 1 shows.
    hidden: Vec<f64>,
}

impl Masked {
    /// The slope is behind, half of the chain is awake, and what the next coordinate says is hidden.
    pub(super) fn new(p: f64, dimension: usize) -> Result<Self, Broken> {
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
        x[0] = 2.0 * bound.distance;
        // Where a coordinate is large, its own part of the gradient is small: most of it is hidden.
        x[1..=chain / 2].fill(10.0 * bound.lambda);
        let mut open = vec![0.0; x.len()];
        instance.stochastic_gradient(&x, 0.0, &mut open);
        let mut hidden = vec![0.0; x.len()];
        instance.gradient(&x, &mut hidden);
        hidden.iter_mut().zip(&open).for_each(|(h, open)| *h -= open);
        Ok(Self { instance, x, open, hidden })
    }

    pub(super) fn gradient_norm(&self) -> f64 {
        self.open.iter().zip(&self.hidden).map(|(open, h)| (open + h) * (open + h)).sum::<f64>().sqrt()
    }

    pub(super) fn variance(&self) -> f64 {
        let p = self.instance.bound().p;
        self.hidden.iter().map(|h| h * h).sum::<f64>() * (1.0 - p) / p
    }
}

impl Oracle for Masked {
    fn about(&self) -> &About {
        self.instance.about()
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let (Draw::Batch(batch), &[x]) = (&request.draw, request.points) else {
            return self.instance.answer(request, answer);
        };
        if x != self.x {
            return Err(OracleError::new("the answers of another point are not known"));
        }
        let (n, p) = (batch.count(), self.instance.bound().p);
        let shown = batch.whole().binomial(n, p) as f64 / p;
        for ((g, open), h) in answer.gradients.iter_mut().zip(&self.open).zip(&self.hidden) {
            *g = n as f64 * open + shown * h;
        }
        Ok(request.usual_price(self.about()))
    }
}

#[cfg(test)]
mod tests {
    use pasta_opt::draws::Role;
    use pasta_opt::oracle::{Answer, Request};
    use pasta_opt::prelude::*;

    use super::{Masked, SampleCache};
    use crate::self_test::case::{Case, Law, Source};

    fn batch(step: u64, n: u64) -> Batch {
        Batch { seed: 5, role: Role::Certificate, step, samples: 0..n }
    }

    fn answer(oracle: &dyn Oracle, x: &[f64], batch: &Batch) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        oracle.answer(&Request::sums(batch.clone(), &[x]), &mut Answer::new(&mut out)).unwrap();
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
                let tolerance = 1e-14 * norm * batch.count() as f64 / 0.01;
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
        let case = Case::new(Law::Tail(Tail::StudentT { dof: 3.0 }), 10).unwrap();
        let Source::Samples(noisy) = &case.source else {
            panic!("a Student t batch is drawn sample by sample")
        };
        let (late, early) = (SampleCache::new(noisy), SampleCache::new(noisy));
        let x = [0.25; 10];
        let single = |i| answer(&**noisy, &x, &batch(i, 1));
        let of_three = answer(&late, &x, &batch(4, 3));
        // Rounding aside, which sums of four numbers of order ten leave below 1e-13.
        for i in 0..10 {
            let sum: f64 = (12..15).map(|j| single(j)[i]).sum();
            assert!((of_three[i] - sum).abs() < 1e-13);
        }
        answer(&early, &[0.0; 10], &batch(0, 1));
        assert_eq!(answer(&early, &x, &batch(4, 3)), of_three);
    }
}
