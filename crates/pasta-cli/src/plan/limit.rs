//! The lower bounds, alone or beside a plan.

use pasta_opt::bounds::{LowerBound, LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::objective::Measure;
use pasta_opt::recipe::{Constant, Constants, Plan, RecipeError, Row};
use serde::Serialize;

use pasta_report::Table;
use pasta_report::console::{Failure, Report};
use pasta_report::constants::{Echo, equations};
use pasta_report::number::{at_least, ceiling, real, whole};

/// The theorems that say what zero-respecting methods cannot beat.
#[derive(Clone, Copy)]
pub(super) enum Theorem {
    Smooth,
    MeanSquareSmooth,
}

impl Theorem {
    pub(super) const ALL: [Self; 2] = [Self::Smooth, Self::MeanSquareSmooth];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Smooth => "lower-smooth",
            Self::MeanSquareSmooth => "lower-mss",
        }
    }

    fn reference(self) -> &'static str {
        match self {
            Self::Smooth => "Theorem 1",
            Self::MeanSquareSmooth => "Theorem 2",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Smooth => "what zero-respecting methods need, f smooth",
            Self::MeanSquareSmooth => "what zero-respecting methods need, smooth sample by sample",
        }
    }

    pub(super) fn needs(self) -> &'static [Constant] {
        use Constant::{Floor, Gap, Growth, MsSmoothness, Smoothness, Target};
        match self {
            Self::Smooth => &[Smoothness, Gap, Growth, Floor, Target],
            Self::MeanSquareSmooth => &[MsSmoothness, Gap, Growth, Floor, Target],
        }
    }

    /// The bound that a plan can be compared with. Both bounds are about small gradients, so it takes a plan that
    /// promises one, for the same class of functions.
    fn of(row: &Row, plan: &Plan) -> Option<Self> {
        let gradient = plan.guarantee.measure == Measure::GradientSquared;
        Self::ALL.into_iter().find(|theorem| gradient && theorem.needs().iter().all(|&c| row.uses(c)))
    }

    fn evaluate(self, constants: &Constants) -> Result<Limit, RecipeError> {
        let need =
            |constant| constants.get(constant).ok_or(RecipeError::Missing { recipe: self.name(), constant });
        let gap = need(Constant::Gap)?;
        let growth = need(Constant::Growth)?;
        let floor = need(Constant::Floor)?;
        let target = need(Constant::Target)?;
        let (bound, apart) = match self {
            Self::Smooth => {
                let smoothness = need(Constant::Smoothness)?;
                (LowerSmooth { smoothness, gap, growth, floor, target }.evaluate()?, None)
            }
            Self::MeanSquareSmooth => {
                let ms_smoothness = need(Constant::MsSmoothness)?;
                let theorem = LowerMeanSquareSmooth { ms_smoothness, gap, growth, floor, target };
                (theorem.evaluate()?, Some(Apart::of(&theorem)))
            }
        };
        let (regime, reference) = (self.name(), self.reference());
        Ok(Limit { regime, reference, binds: BINDS, bound, apart, growth, target })
    }
}

/// Whom the bounds bind.
const BINDS: &str = "zero-respecting methods";

/// A lower bound at given constants.
#[derive(Serialize)]
pub(super) struct Limit {
    regime: &'static str,
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

impl Apart {
    fn of(theorem: &LowerMeanSquareSmooth) -> Self {
        Self {
            growth_max: theorem.growth_limit(),
            statistical_floor: theorem.statistical_floor(),
            statistical_floor_constant: "unknown",
        }
    }
}

/// The lower bound that belongs beside a plan, or why there is none; `None` if no theorem speaks about it.
pub(super) fn beside(row: &Row, plan: &Plan, constants: &Constants) -> Option<Result<Limit, RecipeError>> {
    Theorem::of(row, plan).map(|theorem| theorem.evaluate(constants))
}

/// The lower bounds whose constants are all given.
pub(super) fn all(constants: &Constants) -> Vec<(&'static str, Result<Limit, RecipeError>)> {
    let known = |theorem: &Theorem| theorem.needs().iter().all(|&c| constants.get(c).is_some());
    let evaluated = |theorem: Theorem| (theorem.name(), theorem.evaluate(constants));
    Theorem::ALL.into_iter().filter(known).map(evaluated).collect()
}

impl Limit {
    pub(super) fn name(&self) -> &'static str {
        self.regime
    }

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
    pub(super) fn new(theorem: Theorem, constants: &Constants) -> Result<Self, Failure> {
        let limit = theorem.evaluate(constants).map_err(Failure::input)?;
        Ok(Self { limit, constants: Echo(*constants) })
    }
}

impl Report for Alone {
    fn text(&self) -> String {
        let Limit { regime, reference, bound, apart, target, .. } = &self.limit;
        let LowerBound { chain, p, terms: [from_growth, from_floor], reach, lambda, .. } = *bound;
        let mut rows = vec![
            ("lower bound", format!("{regime}: what {BINDS} cannot beat")),
            ("reference", (*reference).to_owned()),
            ("given", equations(&self.constants.0)),
        ];
        match (bound.bound, bound.sharp_bound) {
            (Some(closed), Some(sharp)) => rows.extend([
                (
                    "samples",
                    format!(
                        "at least {} in expectation, on the hard instance, to reach |grad f| <= {}",
                        at_least(closed),
                        real(*target)
                    ),
                ),
                ("", format!("{} from growth, {} from floor", at_least(from_growth), at_least(from_floor))),
                ("sharp form", format!("(T - 1)/(2p) = {} samples", at_least(sharp))),
            ]),
            _ => rows.push(("samples", self.limit.sentence())),
        }
        rows.push(("admits", admitted(bound.eps_max, apart.as_ref())));
        if let Some(apart) = apart {
            let floor = real(apart.statistical_floor);
            rows.push(("statistical floor", format!("{floor} samples times a constant that is unknown")));
        }
        if bound.admissible {
            rows.push((
                "hard instance",
                format!(
                    "a chain of T = {} coordinates of scale lambda = {}, at distance D = {} from the start; a \
                     sample reveals the next one with probability p = {}",
                    whole(u128::from(chain)),
                    real(lambda),
                    real(reach),
                    real(p)
                ),
            ));
        }
        rows.push((
            "binds",
            format!(
                "{BINDS}: they move only along coordinates in which the oracle has answered something other than \
                 zero"
            ),
        ));
        Table::labelled(rows).text()
    }
}

fn admitted(eps_max: f64, apart: Option<&Apart>) -> String {
    match apart {
        None => format!("eps <= {}", ceiling(eps_max)),
        Some(Apart { growth_max, .. }) if eps_max > 0.0 => {
            format!("eps <= {} and B < {}", ceiling(eps_max), ceiling(*growth_max))
        }
        Some(Apart { growth_max, .. }) => format!("B < {}", ceiling(*growth_max)),
    }
}
