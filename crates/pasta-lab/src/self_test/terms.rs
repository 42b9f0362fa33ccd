//! The same evidence for certificates of the gradient mapping: every kind of term, at points where h and f balance but for |G| = 1.02 eps or eps/2.

use std::sync::Arc;

use pasta_opt::draws::{Address, Role, Stream};
use pasta_opt::oracle::{About, Answer, Charge, Draw, Oracle, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::Quadratic;
use pasta_opt::term::{KINDS, Kind, Mapping, Steps, Term, TermSpec};
use serde::Serialize;

use pasta_report::{Column, Table, clopper_pearson, grouped};

use super::case::{ALLOWED, DELTA, Declaration, HALF, JUST_ABOVE, KURTOSIS, Tally, succeeded};
use super::oracles::SampleCache;
use super::{Broken, Outcome};

/// Laws of noise. A rare event lies along (1, .., 1), and so does, for the most part, what h does not balance.
const LAWS: [Tail; 12] = [
    Tail::Gaussian,
    Tail::StudentT { dof: 2.5 },
    Tail::StudentT { dof: 3.0 },
    Tail::StudentT { dof: 4.0 },
    Tail::Lognormal { sigma: 0.5 },
    Tail::Lognormal { sigma: 1.0 },
    Tail::Lognormal { sigma: 1.5 },
    Tail::Lognormal { sigma: 2.0 },
    Tail::TwoPoint { probability: 1e-4 },
    Tail::TwoPoint { probability: 1e-2 },
    Tail::TwoPoint { probability: 0.1 },
    Tail::TwoPoint { probability: 0.5 },
];

const GAMMA: f64 = 0.5;

/// A projection on a larger polyhedron takes milliseconds, and a certificate hundreds of them.
const LARGEST_POLYHEDRON: usize = 100;

/// A term, a point of its domain, and a gradient of f there at which nothing is left to be gained.
struct Place {
    term: Arc<dyn Term>,
    x: Vec<f64>,
    balanced: Vec<f64>,
    /// What is added to the gradient, in some length.
    direction: Vec<f64>,
}

impl Place {
    fn new(kind: &Kind, d: usize, xi: &mut Stream) -> Result<Self, Broken> {
        let term = spec_of(kind, d)?.term(d)?;
        let v: Vec<f64> = (0..d).map(|_| xi.normal()).collect();
        let mut x = v.clone();
        term.prox(Steps::One(GAMMA), &mut x);
        // (v - x)/gamma is a subgradient of h at x.
        let balanced = v.iter().zip(&x).map(|(v, x)| (x - v) / GAMMA).collect();
        let sign = if xi.uniform() < 0.5 { 1.0 } else { -1.0 };
        let direction = (0..d).map(|_| sign * (1.0 + 0.5 * xi.normal())).collect();
        Ok(Self { term, x, balanced, direction })
    }

    fn gradient(&self, t: f64) -> Vec<f64> {
        self.balanced.iter().zip(&self.direction).map(|(g, u)| g + t * u).collect()
    }

    /// A gradient with |G| = norm; `None` where the direction does not lead there, as on a simplex of one point.
    fn at(&self, norm: f64) -> Option<Vec<f64>> {
        let length = |t: f64| Mapping { term: &*self.term, gamma: GAMMA, x: &self.x }.norm(&self.gradient(t));
        let far = [1e3, -1e3].into_iter().find(|far| length(*far) > norm)?;
        let (mut low, mut high) = (0.0, far);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if length(middle) > norm { high = middle } else { low = middle }
        }
        Some(self.gradient(high))
    }
}

/// One of each kind over d coordinates.
fn spec_of(kind: &Kind, d: usize) -> Result<TermSpec, Broken> {
    let ones = vec!["1"; d].join(", ");
    let keys = match kind.name {
        "box" => r#", "lower": 0, "upper": 1"#.into(),
        "non-negative" => String::new(),
        "l1" => r#", "weight": 0.5"#.into(),
        "elastic-net" => r#", "l1": 0.5, "l2": 0.3"#.into(),
        "log" => r#", "weight": 0.2"#.into(),
        "ball" => r#", "radius": 1"#.into(),
        "simplex" => r#", "total": 1"#.into(),
        "group-l2" => r#", "weight": 0.5, "size": 1"#.into(),
        "total-variation" => r#", "weight": 0.3"#.into(),
        "polyhedron" => format!(r#", "a": [[{ones}]], "b": [0.5]"#),
        other => return Err(format!("no example of {other}").into()),
    };
    Ok(serde_json::from_str(&format!(r#"{{"kind": "{}"{keys}}}"#, kind.name))?)
}

/// A gradient that is known and does not depend on the point, behind the noise of an oracle whose gradient is the point.
struct Slope {
    noisy: Arc<Noisy>,
    /// The samples of certificates, which all runs of a seed share.
    cache: Arc<SampleCache>,
    /// What the oracle's own gradient lacks.
    rest: Vec<f64>,
}

impl Oracle for Slope {
    fn about(&self) -> &About {
        self.noisy.about()
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        let Draw::Batch(batch) = &request.draw else { return self.noisy.answer(request, answer) };
        let charge = if batch.role == Role::Certificate {
            self.cache.answer(request, answer)?
        } else {
            self.noisy.answer(request, answer)?
        };
        let n = batch.count() as f64;
        answer.gradients.iter_mut().zip(&self.rest).for_each(|(sum, rest)| *sum += n * rest);
        Ok(charge)
    }
}

/// A noise in a dimension, on which all kinds of terms are tried.
pub(super) struct TermCase {
    pub(super) tail: Tail,
    pub(super) dimension: usize,
    noisy: Arc<Noisy>,
}

/// Every noise in this dimension.
pub(super) fn cases(dimension: usize) -> Result<Vec<TermCase>, Broken> {
    let case = |tail| {
        let noise = Noise { growth: 0.0, floor: 1.0, tail };
        let objective = Box::new(Quadratic { spectrum: vec![1.0; dimension] });
        let noisy = Arc::new(Noisy::new(objective, noise, vec![0.0; dimension])?);
        Ok(TermCase { tail, dimension, noisy })
    };
    LAWS.into_iter().map(case).collect()
}

/// One tally for each kind of term, and the last for no term.
pub(super) const TALLIES: usize = KINDS.len() + 1;

impl TermCase {
    /// Whether the assumption of the kurtosis basis holds.
    fn has_kurtosis(&self) -> bool {
        self.tail.kurtosis(self.dimension) <= KURTOSIS
    }

    /// One run of everything. The first count of false certificates is that of the declared variance, the second that of the kurtosis.
    pub(super) fn run(&self, seed: u64) -> Result<Vec<Tally>, Broken> {
        let cache = Arc::new(SampleCache::new(&self.noisy));
        let ask = |term: Option<Arc<dyn Term>>, x: &[f64], gradient: &[f64], claim: Claim| {
            let rest = gradient.iter().zip(x).map(|(g, x)| g - x).collect();
            let slope = Slope { noisy: Arc::clone(&self.noisy), cache: Arc::clone(&cache), rest };
            let mut gate = Gate::over(Arc::new(slope), seed).with_term(term).with_gamma(Some(GAMMA));
            Ok::<_, Broken>(Certifier::start(&mut gate, x, claim, 0)?.finish(&mut gate)?)
        };
        let claim = |declaration: Declaration| {
            let unit = declaration.fair_unit();
            let target = unit.sqrt().recip();
            let basis = declaration.basis(1.0);
            Claim { target, delta: DELTA, basis, budget: Some((ALLOWED * unit) as u128), guess: None }
        };
        let (declared, kurtosis) = (claim(Declaration::Declared), claim(Declaration::Kurtosis));
        let due =
            |certificate: &Certificate| (u64::from(succeeded(certificate.verdict)), certificate.samples);
        let mut xi =
            Address { seed, role: Role::Calibration, step: self.dimension as u64, sample: 0 }.stream();
        let mut tallies = Vec::with_capacity(TALLIES);
        for kind in KINDS {
            let mut tally = Tally::default();
            if kind.name == "polyhedron" && self.dimension > LARGEST_POLYHEDRON {
                tallies.push(tally);
                continue;
            }
            let place = Place::new(kind, self.dimension, &mut xi)?;
            let put = |share: f64, claim: Claim| {
                let Some(gradient) = place.at(share * claim.target) else { return Ok(None) };
                ask(Some(Arc::clone(&place.term)), &place.x, &gradient, claim).map(Some)
            };
            if let Some(false_one) = put(JUST_ABOVE, declared)? {
                tally.asked[0] = 1;
                tally.false_ones[0] = u64::from(succeeded(false_one.verdict));
            }
            if self.has_kurtosis()
                && let Some(false_one) = put(JUST_ABOVE, kurtosis)?
            {
                tally.asked[1] = 1;
                tally.false_ones[1] = u64::from(succeeded(false_one.verdict));
            }
            if let Some(certificate) = put(HALF, declared)? {
                (tally.certified, tally.samples) = due(&certificate);
            }
            tallies.push(tally);
        }
        let mut gradient = vec![0.0; self.dimension];
        gradient[0] = HALF * declared.target;
        let (certified, samples) = due(&ask(None, &vec![0.0; self.dimension], &gradient, declared)?);
        tallies.push(Tally { certified, samples, ..Tally::default() });
        Ok(tallies)
    }
}

/// A kind of term in a dimension, over all laws.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TermRow {
    term: &'static str,
    dimension: usize,
    /// Certificates at |G| = 1.02 eps, and how many of them were false.
    runs: u64,
    false_certificates: u64,
    /// The highest rate of a law and a basis, and its exact 95 % interval.
    worst_rate: f64,
    worst_low: f64,
    worst_high: f64,
    worst_law: String,
    /// The share certified at |G| = eps/2.
    certified: f64,
    /// Samples for each certificate there, over those of a gradient of eps/2 without a term.
    cost: f64,
    pub(super) outcome: Outcome,
}

impl TermRow {
    /// The rows of a dimension, from the sums of each law over `seeds` seeds.
    pub(super) fn of(dimension: usize, laws: &[(Tail, Vec<Tally>)], seeds: u64) -> Vec<Self> {
        let price = |tally: &Tally| tally.samples as f64 / tally.certified as f64;
        let sum = |i: usize| {
            let mut sum = Tally::default();
            laws.iter().for_each(|(_, tallies)| sum.add(&tallies[i]));
            sum
        };
        let free = sum(KINDS.len());
        let row = |(i, kind): (usize, &Kind)| {
            let all = sum(i);
            let cells = laws.iter().flat_map(|(tail, tallies)| {
                let Tally { asked, false_ones, .. } = tallies[i];
                [(tail, asked[0], false_ones[0]), (tail, asked[1], false_ones[1])]
            });
            let rate = |asked: u64, wrong: u64| if asked > 0 { wrong as f64 / asked as f64 } else { 0.0 };
            let worst = cells.max_by(|a, b| rate(a.1, a.2).total_cmp(&rate(b.1, b.2)))?;
            let (low, high) = clopper_pearson(worst.2, worst.1.max(1));
            let runs = all.asked[0] + all.asked[1];
            // A simplex of one point has no mapping but 0; a large polyhedron is left out.
            (runs > 0).then(|| Self {
                term: kind.name,
                dimension,
                runs,
                false_certificates: all.false_ones[0] + all.false_ones[1],
                worst_rate: rate(worst.1, worst.2),
                worst_low: low,
                worst_high: high,
                worst_law: worst.0.to_string(),
                certified: all.certified as f64 / (seeds * laws.len() as u64) as f64,
                cost: price(&all) / price(&free),
                outcome: if low > DELTA { Outcome::Failed } else { Outcome::Holds },
            })
        };
        KINDS.iter().enumerate().filter_map(row).collect()
    }

    /// Which row it is.
    pub(super) fn place(&self) -> String {
        format!("{}, d = {}, {}", self.term, self.dimension, self.worst_law)
    }

    fn cells(&self) -> Vec<String> {
        let percent = |share: f64| format!("{:.2}", 100.0 * share);
        vec![
            self.term.into(),
            self.dimension.to_string(),
            grouped(self.runs),
            self.false_certificates.to_string(),
            percent(self.worst_rate),
            format!("{} - {}", percent(self.worst_low), percent(self.worst_high)),
            format!("{:.1}", 100.0 * self.certified),
            format!("{:.2}", self.cost),
            self.outcome.words().into(),
        ]
    }
}

/// The section of the gradient mapping.
pub(super) fn section(rows: &[TermRow]) -> String {
    let [runs, wrong] = [|row: &TermRow| row.runs, |row: &TermRow| row.false_certificates]
        .map(|count| rows.iter().map(count).sum::<u64>());
    let caption = format!(
        "Gradient mappings, gamma = {GAMMA}: |G| = 1.02 eps at points where the term balances the rest, on {} laws of noise, by declared variance and, where \
         it holds, by kurtosis {KURTOSIS}.\n{} of {} certificates are false. Worst: of a law and a basis. Cost at |G| = eps/2: samples for each certificate over \
         those without a term.",
        LAWS.len(),
        grouped(wrong),
        grouped(runs),
    );
    let columns = Column::all(
        b"lrrrrrrrl",
        ["term", "d", "runs", "false", "worst %", "95 % interval", "certified %", "cost", "verdict"],
    );
    Table { caption, columns, rows: rows.iter().map(TermRow::cells).collect() }.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_place_with_the_mapping_that_is_asked_for() {
        for d in [1, 3, 50] {
            for kind in KINDS {
                let mut xi = Address { seed: 3, role: Role::Calibration, step: 0, sample: 0 }.stream();
                let place = Place::new(kind, d, &mut xi).unwrap();
                let mapping = Mapping { term: &*place.term, gamma: GAMMA, x: &place.x };
                assert!(mapping.norm(&place.balanced) < 1e-6, "{} in {d}", kind.name);
                let Some(gradient) = place.at(0.2) else {
                    assert_eq!((kind.name, d), ("simplex", 1));
                    continue;
                };
                assert!((mapping.norm(&gradient) - 0.2).abs() < 1e-6, "{} in {d}", kind.name);
            }
        }
    }

    #[test]
    fn a_slope_answers_with_its_gradient_and_the_noise_of_its_law() {
        let case = &cases(2).unwrap()[0];
        let cache = Arc::new(SampleCache::new(&case.noisy));
        let slope = Slope { noisy: Arc::clone(&case.noisy), cache, rest: vec![1.0, -2.0] };
        for role in [Role::Certificate, Role::Pilot] {
            let n = 10_000;
            let batch = Batch { seed: 5, role, step: 0, samples: 0..n };
            let mut sum = [0.0; 2];
            slope.answer(&Request::sums(batch, &[&[3.0, 4.0]]), &mut Answer::new(&mut sum)).unwrap();
            // The mean of 10,000 samples of variance 1/2 has a standard deviation of 0.007.
            assert!(
                (sum[0] / n as f64 - 4.0).abs() < 0.03 && (sum[1] / n as f64 - 2.0).abs() < 0.03,
                "{sum:?}"
            );
        }
    }

    #[test]
    fn a_row_counts_all_laws_and_fails_if_one_is_false_too_often() {
        let tally = |wrong| Tally {
            asked: [100, 0],
            false_ones: [wrong, 0],
            certified: 100,
            samples: 5000,
            ..Tally::default()
        };
        let laws = |wrong| {
            vec![
                (Tail::Gaussian, vec![tally(0); TALLIES]),
                (Tail::StudentT { dof: 3.0 }, vec![tally(wrong); TALLIES]),
            ]
        };
        let rows = TermRow::of(10, &laws(2), 100);
        assert_eq!(rows.len(), KINDS.len());
        assert_eq!((rows[0].runs, rows[0].false_certificates, rows[0].outcome), (200, 2, Outcome::Holds));
        assert_eq!((rows[0].certified, rows[0].cost), (1.0, 1.0));
        assert_eq!(TermRow::of(10, &laws(20), 100)[0].outcome, Outcome::Failed);
    }
}
