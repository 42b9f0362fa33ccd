//! Theorem 6: check one anchoring, or list those that a step size allows.

use pasta_opt::recipe::{AnchorRange, Constant, Constants, RecipeError, Uncertainty, UncertaintyCheck};
use serde::Serialize;

use pasta_report::console::{Failure, Report};
use pasta_report::constants::{Echo, equations};
use pasta_report::number::{exactly, real, whole};
use pasta_report::{Column, Table, unbroken};

/// What is asked: about one anchoring and batch, or, without `beta`, about all.
pub(super) struct Question {
    pub(super) eta: Option<f64>,
    pub(super) beta: Option<f64>,
    pub(super) batch: Option<u64>,
}

const REGIME: &str = "uncertainty";
const REFERENCE: &str = "Theorem 6";

/// How many anchorings the list has.
const LISTED: u32 = 12;

/// The smallest anchoring of the list where the theorem sets no limit.
const SMALLEST_LISTED: f64 = 1e-6;

pub(super) fn answer(question: Question, constants: &Constants) -> Result<Answer, Failure> {
    let need = |constant| constants.get(constant).ok_or(RecipeError::Missing { recipe: REGIME, constant });
    let smoothness = need(Constant::Smoothness).map_err(Failure::input)?;
    let growth = need(Constant::Growth).map_err(Failure::input)?;
    let eta = question.eta.ok_or_else(|| Failure::input("uncertainty: needs eta (the step size)"))?;
    let principle = Uncertainty { smoothness, growth, eta };
    match (question.beta, question.batch) {
        (Some(beta), batch) => {
            let n = batch.unwrap_or(1);
            let check = principle.check(beta, n).map_err(Failure::input)?;
            let constants = Echo(*constants);
            let checked = Checked { regime: REGIME, reference: REFERENCE, constants, eta, beta, n, check };
            Ok(Answer::Checked(checked))
        }
        (None, Some(_)) => Err(Failure::input("uncertainty: uses batch only together with beta")
            .hint("without beta it says which batches each beta needs")),
        (None, None) => Ok(Answer::Allowed(Allowed::new(principle, constants).map_err(Failure::input)?)),
    }
}

/// What the principle says.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Checked(Checked),
    Allowed(Allowed),
}

impl Report for Answer {
    fn text(&self) -> String {
        match self {
            Self::Checked(checked) => checked.text(),
            Self::Allowed(allowed) => allowed.text(),
        }
    }
}

/// The principle at one anchoring and batch.
#[derive(Serialize)]
pub(super) struct Checked {
    regime: &'static str,
    reference: &'static str,
    constants: Echo,
    eta: f64,
    beta: f64,
    #[serde(rename = "N")]
    n: u64,
    #[serde(flatten)]
    check: UncertaintyCheck,
}

impl Report for Checked {
    fn text(&self) -> String {
        let Self { eta, beta, n, check, .. } = self;
        let smallest = match check.min_n {
            Some(n) => format!("N = {} at this beta", whole(n)),
            None => "none at this beta: it has to be below 1/2".to_owned(),
        };
        let conclusion = if check.variance_ok && check.eta_ok {
            let [next, here, start] =
                ["|x_{t+1} - x*|^2", "(1 - beta/2) |x_t - x*|^2", "beta |x0 - x*|^2"].map(unbroken);
            format!("for convex L-smooth f, E{next} <= {here} + {start} + {}", unbroken("eta^2 b^2/N"))
        } else {
            "nothing; the two conditions above are sufficient, not necessary".to_owned()
        };
        let noise = compared(check.lhs, ">=", check.rhs, check.variance_ok);
        let step = compared(*eta, "<=", check.eta_cap, check.eta_ok);
        let exact = compared(check.exact_noise_lhs, ">=", check.rhs, check.exact_noise_ok);
        let (constants, eta, beta) = (equations(self.constants.0.known()), exactly(*eta), exactly(*beta));
        let given = format!("{constants}, eta = {eta}, beta = {beta}, N = {}", whole(*n));
        let rows = [
            ("principle", format!("{REGIME}: anchoring and sampling that bound the drift")),
            ("reference", REFERENCE.to_owned()),
            ("given", given),
            ("noise", format!("beta (1 - 2 beta) N >= eta^2 B^2: {noise}")),
            ("step size", format!("eta <= sqrt(beta)/(2L): {step}")),
            ("smallest batch", smallest),
            ("promise", conclusion),
            ("exact for f = 0", format!("beta (1 - beta) N >= eta^2 B^2: {exact}")),
        ];
        Table::labelled(rows).text()
    }
}

/// "0.08 >= 0.0729, holds".
fn compared(left: f64, relation: &str, right: f64, holds: bool) -> String {
    let (left, right) = (real(left), real(right));
    let verdict = match holds {
        true => "holds",
        false if left == right => "fails, by less than the digits shown",
        false => "fails",
    };
    format!("{left} {relation} {right}, {verdict}")
}

/// The anchorings that a step size allows.
#[derive(Serialize)]
pub(super) struct Allowed {
    regime: &'static str,
    reference: &'static str,
    constants: Echo,
    eta: f64,
    #[serde(flatten)]
    range: AnchorRange,
    table: Vec<Line>,
}

/// The batches that one anchoring needs; `None` where no count can hold them.
#[derive(Serialize)]
struct Line {
    beta: f64,
    #[serde(rename = "min_N")]
    theorem: Option<u64>,
    #[serde(rename = "exact_noise_min_N")]
    exact: Option<u64>,
}

impl Allowed {
    fn new(principle: Uncertainty, constants: &Constants) -> Result<Self, RecipeError> {
        let range = principle.anchor_range()?;
        let table = anchorings(range).map(|beta| Line::at(beta, principle)).collect::<Result<_, _>>()?;
        let constants = Echo(*constants);
        Ok(Self { regime: REGIME, reference: REFERENCE, constants, eta: principle.eta, range, table })
    }
}

/// A dozen beta over the range, each the same multiple of the one before, in two digits where they stay inside.
fn anchorings(AnchorRange { smallest, below, .. }: AnchorRange) -> impl Iterator<Item = f64> {
    let first = if smallest > 0.0 { smallest } else { SMALLEST_LISTED };
    let ratio = below / first;
    (0..LISTED).map(move |index| {
        let beta = first * ratio.powf(f64::from(index) / f64::from(LISTED));
        let rounded = format!("{beta:.1e}").parse().unwrap_or(beta);
        if index > 0 && (first..below).contains(&rounded) { rounded } else { beta }
    })
}

impl Line {
    fn at(beta: f64, principle: Uncertainty) -> Result<Self, RecipeError> {
        let theorem = match principle.check(beta, 1) {
            Ok(check) => check.min_n,
            Err(RecipeError::TooMany { .. }) => None,
            Err(error) => return Err(error),
        };
        let exact = theorem.map(|enough| smallest_exact(beta, enough, principle)).transpose()?;
        Ok(Self { beta, theorem, exact })
    }

    fn cells(&self) -> Vec<String> {
        let count = |n: Option<u64>| n.map_or_else(|| "more than 2^63".to_owned(), whole);
        vec![real(self.beta), count(self.theorem), count(self.exact)]
    }
}

/// The smallest N of the exact condition for f = 0, by bisection: the condition is monotone in N, and what is
/// enough for the theorem is enough for it.
fn smallest_exact(beta: f64, enough: u64, principle: Uncertainty) -> Result<u64, RecipeError> {
    let (mut too_few, mut enough) = (0, enough);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if principle.check(beta, middle)?.exact_noise_ok {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Ok(enough)
}

impl Report for Allowed {
    fn text(&self) -> String {
        let AnchorRange { smallest, below, least_batch, single_sample, .. } = self.range;
        let single = match single_sample {
            Some((low, high)) => format!("enough for beta from {} to {}", real(low), real(high)),
            None => "not enough at any beta".to_owned(),
        };
        let anchoring = match smallest {
            0.0 => format!("0 < beta < {}", real(below)),
            smallest => format!("{} <= beta < {}", real(smallest), real(below)),
        };
        let summary = Table::labelled([
            ("principle", format!("{REGIME}: anchoring and sampling that bound the drift")),
            ("reference", REFERENCE.to_owned()),
            ("given", format!("{}, eta = {}", equations(self.constants.0.known()), exactly(self.eta))),
            ("conditions", "beta (1 - 2 beta) N >= eta^2 B^2 and eta <= sqrt(beta)/(2L)".to_owned()),
            ("anchoring", anchoring),
            ("smallest batch", format!("N = {} over all these beta", whole(least_batch))),
            ("one sample", single),
        ])
        .text();
        let header = ["beta", "smallest N of the theorem", "smallest N if f = 0 (exact)"];
        let lines = Table {
            caption: String::new(),
            columns: header.map(Column::right).to_vec(),
            rows: self.table.iter().map(Line::cells).collect(),
        }
        .text();
        format!("{summary}\n\n{lines}")
    }
}
