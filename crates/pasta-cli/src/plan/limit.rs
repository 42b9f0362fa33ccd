//! The lower bounds, alone or beside a plan.

use pasta_opt::bounds::{LowerBound, LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::objective::Measure;
use pasta_opt::recipe::Constant::{self, Floor, Gap, Growth, MsSmoothness, Smoothness, Target};
use pasta_opt::recipe::{Constants, Plan, RecipeError, RecipeRow};
use serde::Serialize;

use pasta_report::Table;
use pasta_report::console::{Failure, Report};
use pasta_report::constants::{Echo, equations};
use pasta_report::number::{at_least, ceiling, real, whole};

/// A theorem that says what zero-respecting methods cannot beat.
pub(super) struct Theorem {
    pub(super) name: &'static str,
    reference: &'static str,
    pub(super) about: &'static str,
    pub(super) needs: [Constant; 5],
    /// The bound with these constants.
    bound: fn([f64; 5]) -> Result<(LowerBound, Option<Apart>), RecipeError>,
}

pub(super) const THEOREMS: &[Theorem] = &[
    Theorem {
        name: "lower-smooth",
        reference: "Theorem 1",
        about: "what zero-respecting methods need, f smooth",
        needs: [Smoothness, Gap, Growth, Floor, Target],
        bound: |[smoothness, gap, growth, floor, target]| {
            Ok((LowerSmooth { smoothness, gap, growth, floor, target }.evaluate()?, None))
        },
    },
    Theorem {
        name: "lower-mss",
        reference: "Theorem 2",
        about: "what zero-respecting methods need, smooth sample by sample",
        needs: [MsSmoothness, Gap, Growth, Floor, Target],
        bound: |[ms_smoothness, gap, growth, floor, target]| {
            let theorem = LowerMeanSquareSmooth { ms_smoothness, gap, growth, floor, target };
            let apart = Apart {
                growth_max: theorem.growth_limit(),
                statistical_floor: theorem.statistical_floor(),
                statistical_floor_constant: "unknown",
            };
            Ok((theorem.evaluate()?, Some(apart)))
        },
    },
];

impl Theorem {
    fn evaluate(&self, constants: &Constants) -> Result<Limit, RecipeError> {
        let mut values = [0.0; 5];
        for (value, constant) in values.iter_mut().zip(self.needs) {
            let missing = RecipeError::Missing { recipe: self.name, constant };
            *value = constants.get(constant).ok_or(missing)?;
        }
        let (bound, apart) = (self.bound)(values)?;
        let [_, _, growth, _, target] = values;
        let (regime, reference) = (self.name, self.reference);
        Ok(Limit { regime, reference, binds: BINDS, bound, apart, growth, target })
    }
}

/// Whom the bounds bind.
const BINDS: &str = "zero-respecting methods";

/// A lower bound at given constants.
#[derive(Serialize)]
pub(super) struct Limit {
    pub(super) regime: &'static str,
    reference: &'static str,
    binds: &'static str,
    #[serde(flatten)]
    bound: LowerBound,
    #[serde(flatten)]
    apart: Option<Apart>,
    #[serde(skip)]
    growth: f64,
    #[serde(skip)]
    target: f64,
}

/// What Theorem 2 has besides.
#[derive(Serialize)]
struct Apart {
    growth_max: f64,
    statistical_floor: f64,
    statistical_floor_constant: &'static str,
}

/// The lower bound that belongs beside a plan, or why there is none; `None` if no theorem speaks about it. Both bounds are
/// about small gradients, so it takes a plan that promises one, for the same class of functions.
pub(super) fn beside(
    row: &RecipeRow,
    plan: &Plan,
    constants: &Constants,
) -> Option<Result<Limit, RecipeError>> {
    let gradient = plan.guarantee.measure == Measure::GradientSquared;
    let theorem = THEOREMS.iter().find(|theorem| gradient && theorem.needs.iter().all(|&c| row.uses(c)))?;
    Some(theorem.evaluate(constants))
}

/// The lower bounds whose constants are all given.
pub(super) fn all(constants: &Constants) -> impl Iterator<Item = (&'static str, Result<Limit, RecipeError>)> {
    let known = |theorem: &&Theorem| theorem.needs.iter().all(|&c| constants.get(c).is_some());
    THEOREMS.iter().filter(known).map(|theorem| (theorem.name, theorem.evaluate(constants)))
}

impl Limit {
    /// The bound in one line.
    pub(super) fn sentence(&self) -> String {
        let LowerBound { bound, sharp_bound, eps_max, .. } = self.bound;
        match (bound, sharp_bound, &self.apart) {
            (Some(bound), Some(sharp), _) => format!(
                "at least {} samples for {BINDS} (sharp form: {}); {}",
                at_least(bound),
                at_least(sharp),
                self.reference
            ),
            (_, _, Some(apart)) if self.growth >= apart.growth_max => {
                format!("no lower bound at this growth (needs B < {})", ceiling(apart.growth_max))
            }
            _ => format!("no lower bound at this target (needs eps <= {})", ceiling(eps_max)),
        }
    }
}

/// A lower bound as the answer to a question of its own.
#[derive(Serialize)]
pub(super) struct Alone {
    #[serde(flatten)]
    limit: Limit,
    constants: Echo,
}

impl Alone {
    pub(super) fn new(theorem: &Theorem, constants: &Constants) -> Result<Self, Failure> {
        let limit = theorem.evaluate(constants).map_err(Failure::input)?;
        Ok(Self { limit, constants: Echo(*constants) })
    }
}

impl Report for Alone {
    fn text(&self) -> String {
        let Limit { regime, reference, bound, apart, target, .. } = &self.limit;
        let LowerBound { chain, p, terms: [from_growth, from_floor], distance, lambda, .. } = *bound;
        let mut rows = vec![
            ("lower bound", format!("{regime}: what {BINDS} cannot beat")),
            ("reference", (*reference).to_owned()),
            ("given", equations(self.constants.0.known())),
        ];
        match (bound.bound, bound.sharp_bound) {
            (Some(closed), Some(sharp)) => {
                let [closed, sharp, from_growth, from_floor] =
                    [closed, sharp, from_growth, from_floor].map(at_least);
                let where_to = format!("on the hard instance, to reach |grad f| <= {}", real(*target));
                rows.extend([
                    ("samples", format!("at least {closed} in expectation, {where_to}")),
                    ("", format!("{from_growth} from growth, {from_floor} from floor")),
                    ("sharp form", format!("(T - 1)/(2p) = {sharp} samples")),
                ]);
            }
            _ => rows.push(("samples", self.limit.sentence())),
        }
        rows.push(("admits", admitted(bound.eps_max, apart.as_ref())));
        if let Some(apart) = apart {
            let floor = real(apart.statistical_floor);
            rows.push(("statistical floor", format!("{floor} samples times a constant that is unknown")));
        }
        if bound.admissible {
            let [lambda, distance, p] = [lambda, distance, p].map(real);
            let instance = format!(
                "a chain of T = {} coordinates of scale lambda = {lambda}, at distance D = {distance} from the start; a \
                 sample reveals the next one with probability p = {p}",
                whole(chain)
            );
            rows.push(("hard instance", instance));
        }
        let how =
            "they move only along coordinates in which the oracle has answered something other than zero";
        rows.push(("binds", format!("{BINDS}: {how}")));
        Table::labelled(rows).text()
    }
}

fn admitted(eps_max: f64, apart: Option<&Apart>) -> String {
    let eps = format!("eps <= {}", ceiling(eps_max));
    match apart.map(|apart| format!("B < {}", ceiling(apart.growth_max))) {
        None => eps,
        Some(growth) if eps_max > 0.0 => format!("{eps} and {growth}"),
        Some(growth) => growth,
    }
}
