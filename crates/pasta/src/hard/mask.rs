//! What hides the next coordinate of the chain.

use std::sync::OnceLock;

/// How the oracle hides the frontier. One z, Bernoulli(p), is shared by all coordinates:
/// g_i = grad_i (1 + m_i (z/p - 1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// m_i = 1 beyond the last coordinate above 1/4, else 0 (Theorem 1).
    Basic,
    /// m_i falls smoothly from 1 to 0 as the coordinates from i on grow from 1/4 to 1/2: mean-square smooth (Theorem 2).
    MeanSquareSmooth,
}

impl Mask {
    /// Calls `hide(i, m_i)` for every coordinate, counted from 0, whose m_i at x = y/lambda is not zero. They are the
    /// last ones, so this costs what lies beyond the frontier.
    pub(super) fn visit(self, y: &[f64], lambda: f64, mut hide: impl FnMut(usize, f64)) {
        match self {
            Self::Basic => (super::progress(y, 0.25 * lambda)..y.len()).for_each(|i| hide(i, 1.0)),
            Self::MeanSquareSmooth => {
                // Theta_i = Gamma(1 - (sum over k >= i of Gamma(|x_k|)^2)^(1/2)), from the far end.
                let mut tail = 0.0;
                for (i, y) in y.iter().enumerate().rev() {
                    tail += gamma((y / lambda).abs()).powi(2);
                    let m = gamma(1.0 - tail.sqrt());
                    // The sum only grows: all that come before are zero, too.
                    if m == 0.0 {
                        break;
                    }
                    hide(i, m);
                }
            }
        }
    }
}

/// Subintervals of [0, 1] at whose ends the integral is tabulated.
const PIECES: usize = 256;

/// A smooth step: 0 up to 1/4, 1 from 1/2 on, between the normalised integral of exp(-1/(100 (t - 1/4)(1/2 - t))).
///
/// With v = 4t - 1 the integrand is exp(-0.16/(v (1 - v))) on (0, 1). Up to the nearest tabulated point the
/// integral is in memory; the rest, at most 1/256 long, is one Gauss-Legendre rule, exact there to rounding.
pub(super) fn gamma(t: f64) -> f64 {
    let v = 4.0 * t - 1.0;
    if v <= 0.0 {
        return 0.0;
    }
    if v >= 1.0 {
        return 1.0;
    }
    static TABLE: OnceLock<[f64; PIECES + 1]> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table = [0.0; PIECES + 1];
        for i in 0..PIECES {
            table[i + 1] = table[i] + integral(i as f64 / PIECES as f64, (i + 1) as f64 / PIECES as f64);
        }
        table
    });
    let piece = ((v * PIECES as f64) as usize).min(PIECES - 1);
    (table[piece] + integral(piece as f64 / PIECES as f64, v)) / table[PIECES]
}

/// The integral of exp(-0.16/(v (1 - v))) from a to b by the ten-point Gauss-Legendre rule.
fn integral(a: f64, b: f64) -> f64 {
    const NODES: [(f64, f64); 5] = [
        (0.148_874_338_981_631_2, 0.295_524_224_714_752_87),
        (0.433_395_394_129_247_2, 0.269_266_719_309_996_35),
        (0.679_409_568_299_024_4, 0.219_086_362_515_982_04),
        (0.865_063_366_688_984_5, 0.149_451_349_150_580_6),
        (0.973_906_528_517_171_7, 0.066_671_344_308_688_14),
    ];
    let (middle, half) = (0.5 * (a + b), 0.5 * (b - a));
    let at = |v: f64| if v <= 0.0 || v >= 1.0 { 0.0 } else { libm::exp(-0.16 / (v * (1.0 - v))) };
    half * NODES.iter().map(|(x, w)| w * (at(middle - half * x) + at(middle + half * x))).sum::<f64>()
}
