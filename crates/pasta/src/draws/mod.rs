//! Randomness by address: (seed, role, step, sample) names a stream, and nothing else in the library draws.
//!
//! A stream is a pure function of its address. There is no generator state to save in a checkpoint or to
//! split between threads: whoever needs sample 17 of step 5 recomputes it and gets the same bits.
//!
//! ```
//! use pasta_opt::draws::{Address, Role};
//!
//! let address = Address { seed: 1, role: Role::Large, step: 5, sample: 17 };
//! assert_eq!(address.stream().normal().to_bits(), address.stream().normal().to_bits());
//! ```

mod counts;
mod philox;

pub use philox::philox4x64;

pub use {rand_core, rand_distr};

use rand_core::{Infallible, TryRng, utils};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// What a draw is for. Draws of different roles never share a stream. The numbers are part of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Role {
    /// Samples of a large (fresh) batch.
    Large = 1,
    /// Samples of a small batch, evaluated at two points.
    Small = 2,
    /// The coin that decides between the two.
    Coin = 3,
    /// Which iterate or anchor is handed out.
    Output = 4,
    /// Random choices of tests, figures and start points.
    Setup = 5,
    /// Fresh samples of a certificate.
    Certificate = 6,
    /// The pilot that plans a certificate or a forecast; its samples are used for nothing else.
    Pilot = 7,
    /// Samples that measure constants before a run.
    Calibration = 8,
    /// Samples by which a run guesses whether a certificate is worth trying; used for nothing else.
    Look = 9,
    /// Samples of the search for the points on which a Moreau certificate rests.
    Search = 10,
    /// The runs from which a forecast is made. They have seeds of their own; under this role they are counted.
    Forecast = 11,
    /// Samples by which an oracle is checked before it is believed; used for nothing else.
    Check = 12,
    /// Samples whose losses are compared with their gradients at a point that is to be certified; used for nothing else.
    Slopes = 13,
}

impl Role {
    /// Every role, in the order of the numbers.
    pub const ALL: [Self; 13] = [
        Self::Large,
        Self::Small,
        Self::Coin,
        Self::Output,
        Self::Setup,
        Self::Certificate,
        Self::Pilot,
        Self::Calibration,
        Self::Look,
        Self::Search,
        Self::Forecast,
        Self::Check,
        Self::Slopes,
    ];
}

/// The seed of a run within a run: a pure function of the outer seed, what it is for, and its number. Neighbouring seeds
/// and numbers give unrelated seeds, so that no two runs share samples.
pub fn derived_seed(seed: u64, role: Role, number: u64) -> u64 {
    // A part of the address that no batch uses.
    Address { seed, role, step: number, sample: Address::WHOLE_BATCH }.part(u64::MAX).word()
}

/// The name of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// The seed of the whole run.
    pub seed: u64,
    /// What the draw is for.
    pub role: Role,
    /// The step of the run, counted over all epochs.
    pub step: u64,
    /// The sample within the batch; [`Address::WHOLE_BATCH`] for a draw that stands for all of it.
    pub sample: u64,
}

impl Address {
    /// The sample number of a draw that stands for a whole batch at once. No batch has that many samples.
    pub const WHOLE_BATCH: u64 = u64::MAX;

    /// The stream with this name, from its beginning.
    #[inline]
    pub fn stream(self) -> Stream {
        self.part(0)
    }

    /// One of the 2^64 streams that share this address; the first is [`stream`](Self::stream).
    #[inline]
    pub(crate) fn part(self, part: u64) -> Stream {
        Stream {
            key: [self.seed, self.role as u64],
            counter: [0, self.sample, self.step, part],
            block: [0; 4],
            used: 4,
        }
    }
}

/// The random words of one address: 2^64 blocks of four. Implements [`rand_core::Rng`], so every
/// distribution of [`rand_distr`] can be drawn from it; both crates are re-exported here, in the versions that fit.
#[derive(Debug, Clone)]
pub struct Stream {
    key: [u64; 2],
    counter: [u64; 4],
    block: [u64; 4],
    used: usize,
}

impl Stream {
    /// Key and counter of the next block of Philox4x64-10. A generator of that name in another language, set to them, draws the
    /// words that this stream would draw, unless some of a block were drawn already.
    ///
    /// ```
    /// use pasta_opt::draws::{Address, Role};
    ///
    /// let address = Address { seed: 7, role: Role::Large, step: 5, sample: 17 };
    /// assert_eq!(address.stream().position(), ([7, 1], [0, 17, 5, 0]));
    /// ```
    pub fn position(&self) -> ([u64; 2], [u64; 4]) {
        (self.key, self.counter)
    }

    #[inline]
    fn word(&mut self) -> u64 {
        if self.used == 4 {
            self.refill();
        }
        let word = self.block[self.used & 3];
        self.used += 1;
        word
    }

    /// The next block. Out of line, so that the other three words of a block are read without a call.
    #[inline(never)]
    fn refill(&mut self) {
        self.block = philox4x64(self.counter, self.key);
        self.counter[0] = self.counter[0].wrapping_add(1);
        self.used = 0;
    }

    /// Uniform on [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on the open interval (0, 1): safe to take the logarithm of.
    #[inline]
    pub fn open_uniform(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// Uniform on 0..n, without bias.
    ///
    /// Lemire's multiply-and-reject; `n` must be positive.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "there is no number below zero to draw");
        let threshold = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.word()) * u128::from(n);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Standard normal.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(self)
    }

    /// True with probability `p`, resolved to 2^-64; `p` outside [0, 1] acts like the nearer end.
    #[inline]
    pub fn bernoulli(&mut self, p: f64) -> bool {
        // Two to the power 64 as a double; the cast saturates, so p = 1 needs its own branch.
        p >= 1.0 || self.word() < (p * 18_446_744_073_709_551_616.0) as u64
    }

    /// The number of successes in `n` independent trials that succeed with probability `p`.
    ///
    /// Right for every `n`: the cost does not depend on it and no rounding grows with it.
    pub fn binomial(&mut self, n: u64, p: f64) -> u64 {
        counts::binomial(self, n, p)
    }

    /// Poisson with the given mean, which must be below 2^63.
    pub fn poisson(&mut self, mean: f64) -> u64 {
        counts::poisson(self, mean)
    }

    /// Draws from any distribution of [`rand_distr`].
    ///
    /// ```
    /// use pasta_opt::draws::{Address, Role, rand_distr::Gamma};
    ///
    /// let mut xi = Address { seed: 1, role: Role::Setup, step: 0, sample: 0 }.stream();
    /// let gamma = Gamma::new(2.0, 1.0)?;
    /// assert!(xi.sample(&gamma) > 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sample<T>(&mut self, distribution: &impl Distribution<T>) -> T {
        distribution.sample(self)
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.word() >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.word())
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        utils::fill_bytes_via_next_word(dst, || self.try_next_u64())
    }
}
