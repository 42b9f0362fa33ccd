//! What is to be minimised, from where, and what is known about it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::certificate::Basis;
use crate::kernels::squared_distance;
use crate::objective::{Facts, Objective};
use crate::oracle::{Noise, Noisy, Oracle};
use crate::recipe::{Constant, Constants};
use crate::state::StartError;
use crate::table::{Class, Linear, TableError};
use crate::term::{Term, keep_inside};

/// What is to be minimised, from where, and what is known about it.
pub struct Problem {
    /// Whose samples are drawn.
    pub oracle: Arc<dyn Oracle>,
    /// x0.
    pub start: Vec<f64>,
    /// h, where f + h is minimised: constraints and penalties.
    pub term: Option<Arc<dyn Term>>,
    /// Formulas, where they are known.
    pub truth: Option<Truth>,
    /// The table, where the samples are its rows.
    pub table: Option<KnownTable>,
    /// What it is, for people.
    pub words: String,
}

impl Problem {
    /// An oracle about which nothing else is known.
    pub fn of(oracle: Arc<dyn Oracle>, start: Vec<f64>) -> Self {
        let words = oracle.about().identity.clone();
        Self { oracle, start, term: None, truth: None, table: None, words }
    }

    /// Where a run begins: see [`feasible`].
    pub(crate) fn feasible_start(&self, project: bool) -> Result<Vec<f64>, StartError> {
        feasible(self.term.as_deref(), self.oracle.about().dim, &self.start, project)
    }

    /// What is proved about it, seen from its start, and the classes that it is in; `None` where nothing is.
    pub fn proved(&self) -> Result<Option<(Constants, Facts)>, TableError> {
        match (&self.truth, &self.table) {
            (Some(truth), _) => Ok(Some((truth.proved(), truth.objective().facts()))),
            (None, Some(table)) => {
                let proved = table.proved(&self.start)?;
                Ok(Some((proved, KnownTable::facts(&proved))))
            }
            (None, None) => Ok(None),
        }
    }

    /// The probability that a constant of [`proved`](Self::proved) does not hold, as far as it was asked for.
    pub fn failure(&self) -> f64 {
        self.table.as_ref().map_or(0.0, KnownTable::failure)
    }

    /// |x - x0|, for a point with as many coordinates as the start.
    pub fn distance(&self, x: &[f64]) -> f64 {
        squared_distance(x, &self.start).sqrt()
    }

    /// What a certificate rests on by default: the declared noise of a formula, or all rows of a table.
    pub fn usual_basis(&self) -> Option<Basis> {
        let of_table = self.table.as_ref().map(|_| Basis::Exact);
        self.truth.as_ref().and_then(Truth::declared_noise).or(of_table)
    }

    /// True if f is known to have kinks.
    pub fn has_kinks(&self) -> bool {
        let by_formula = self.objective().is_some_and(|f| f.facts().smoothness.is_none());
        by_formula || self.table.as_ref().is_some_and(KnownTable::has_kinks)
    }

    /// True if its coordinates are weights of standardised columns.
    pub fn is_standardised(&self) -> bool {
        self.table.as_ref().is_some_and(|table| table.linear.design().standardise)
    }

    /// The objective, where it is known.
    pub fn objective(&self) -> Option<&dyn Objective> {
        self.truth.as_ref().map(|truth| truth.objective())
    }

    /// The objective, where it is known and all that is minimised: formulas know no term.
    pub(crate) fn free_objective(&self) -> Option<&dyn Objective> {
        self.objective().filter(|_| self.term.is_none())
    }

    /// Why a certificate of x would be void: what is known about the noise against its assumption.
    pub fn false_assumption(&self, basis: &Basis, x: &[f64]) -> Option<String> {
        self.truth.as_ref()?.false_assumption(basis, x)
    }
}

/// A start in the domain of a term: refuses a term that is not for so many coordinates, and a start outside of its domain, or moves it to the nearest
/// point inside if that is asked for. A start that is no point is left to the method, which refuses it.
pub fn feasible(
    term: Option<&dyn Term>,
    dim: usize,
    start: &[f64],
    project: bool,
) -> Result<Vec<f64>, StartError> {
    let mut start = start.to_vec();
    let Some(term) = term else { return Ok(start) };
    term.check(dim).map_err(|error| StartError::Term { what: error.0 })?;
    if start.len() == dim && start.iter().all(|x| x.is_finite()) {
        if project {
            keep_inside(term, &mut start);
        }
        if let Some(outside) = term.outside(&start) {
            return Err(StartError::Outside { words: outside.words });
        }
    }
    Ok(start)
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// What formulas say about a problem. No run rests on it: it is shown beside what samples say.
#[derive(Debug, Clone)]
pub struct Truth(pub Arc<Noisy>);

impl Deref for Truth {
    type Target = Noisy;

    fn deref(&self) -> &Noisy {
        &self.0
    }
}

impl Truth {
    /// B and b of the noise, unless it grows with another power of the distance than 2.
    pub fn declared_noise(&self) -> Option<Basis> {
        let Noise { growth, floor, .. } = self.noise();
        (self.exponent() == 2.0).then_some(Basis::Growth { growth, floor, distance: 0.0 })
    }

    fn false_assumption(&self, basis: &Basis, x: &[f64]) -> Option<String> {
        let variance = self.variance(x);
        // Both are rounded.
        let too_small = |declared: &f64| *declared < variance * (1.0 - 1e-9);
        if let Some(declared) = basis.declared_variance().filter(too_small) {
            return Some(format!(
                "[noise] has E|g - grad f|^2 = {variance:.4e} there, not at most {declared:.4e}"
            ));
        }
        let kurtosis = self.noise().tail.kurtosis(x.len());
        match basis {
            Basis::Kurtosis(assumed) if *assumed < kurtosis * (1.0 - 1e-9) && variance > 0.0 => {
                Some(format!("[noise] has kurtosis {kurtosis:.4e}, not at most {assumed}"))
            }
            _ => None,
        }
    }

    /// What is proved about the problem, seen from its start; about noise that does not grow with the square of the distance,
    /// nothing. mu is left out, since it means one thing for PL and another for star-convexity.
    pub fn proved(&self) -> Constants {
        let all = Constants::of(self.objective(), &self.noise(), self.start());
        let of_noise = [Constant::MsSmoothness, Constant::Growth, Constant::Floor];
        let mut proved = Constants::default();
        let kept = all.known().filter(|(c, _)| self.exponent() == 2.0 || !of_noise.contains(c));
        kept.for_each(|(constant, value)| proved.set(constant, value));
        proved
    }
}

/// A table with a loss, and what is proved about it, computed once it is asked for.
#[derive(Debug)]
pub struct KnownTable {
    linear: Arc<Linear>,
    /// The constants, and the largest probability that one of them does not hold.
    proved: OnceLock<Result<(Constants, f64), TableError>>,
}

impl KnownTable {
    /// Nothing is computed yet.
    pub fn new(linear: Arc<Linear>) -> Self {
        Self { linear, proved: OnceLock::new() }
    }

    /// The table with its loss.
    pub fn linear(&self) -> &Arc<Linear> {
        &self.linear
    }

    /// What is proved about the loss on this table, seen from the start.
    fn proved(&self, start: &[f64]) -> Result<Constants, TableError> {
        let prove = || {
            let proved = self.linear.constants(start)?;
            let failure = proved.constants.iter().map(|constant| constant.failure).fold(0.0, f64::max);
            Ok(((&proved).into(), failure))
        };
        self.proved.get_or_init(prove).clone().map(|(constants, _)| constants)
    }

    fn failure(&self) -> f64 {
        self.proved.get().and_then(|proved| proved.as_ref().ok()).map_or(0.0, |(_, failure)| *failure)
    }

    /// The classes that the loss is in by what is proved.
    fn facts(proved: &Constants) -> Facts {
        Facts {
            smoothness: proved.get(Constant::Smoothness),
            lipschitz: proved.get(Constant::Lipschitz),
            weak_convexity: proved.get(Constant::Rho),
            pl: proved.get(Constant::Mu),
            star: proved.get(Constant::Mu),
        }
    }

    fn has_kinks(&self) -> bool {
        matches!(self.linear.loss().row().class, Class::LipschitzConvex | Class::WeaklyConvex)
    }
}
