//! The plan of one recipe.

use std::fmt;

use pasta_opt::objective::Measure;
use pasta_opt::prelude::{BatchRule, Estimator, Output, Schedule, Sequence};
use pasta_opt::recipe::{self, Constant, Constants, Cost, Guarantee, Plan, RecipeError, RecipeRow};
use serde::{Serialize, Serializer};

use super::limit::{self, Limit};
use pasta_report::console::Report;
use pasta_report::constants::{Echo, equations};
use pasta_report::number::{at_most, digits, exactly, real, short, whole};
use pasta_report::{Table, unbroken};

/// A plan, with the keys that programs read.
#[derive(Serialize)]
pub(super) struct Planned {
    recipe: &'static str,
    reference: &'static str,
    #[serde(skip)]
    for_problems: &'static str,
    constants: Echo,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variance: Option<f64>,
    #[serde(flatten)]
    settings: Settings,
    samples: Amount,
    evaluations: Amount,
    exact_samples: bool,
    promise: Promise,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_bound: Option<Limit>,
    /// The bound in words, or why there is none.
    #[serde(skip)]
    limit: Option<String>,
}

/// The settings of Algorithm 1 by the paper's letters; those that do not apply are absent.
#[derive(Serialize)]
struct Settings {
    eta: Plain,
    beta: Plain,
    #[serde(rename = "K")]
    steps: u64,
    #[serde(rename = "S")]
    epochs: u64,
    #[serde(rename = "N", skip_serializing_if = "Option::is_none")]
    large: Option<u64>,
    #[serde(rename = "N0", skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    #[serde(rename = "N_ref", skip_serializing_if = "Option::is_none")]
    reference: Option<u64>,
    #[serde(rename = "b", skip_serializing_if = "Option::is_none")]
    small: Option<u64>,
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    refresh: Option<Plain>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_rule: Option<Drift>,
}

/// The dynamic rule with its numbers.
#[derive(Serialize)]
struct Drift {
    formula: &'static str,
    growth: f64,
    floor: f64,
    variance: f64,
    at_least: u64,
}

/// A number of samples: whole where it is known exactly.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Amount {
    Exactly(u128),
    AtMost(f64),
}

#[derive(Serialize)]
struct Promise {
    measure: &'static str,
    bound: f64,
    point: Output,
    statement: String,
    #[serde(skip)]
    envelope: Option<f64>,
}

/// The plan for a target, or for the best target that a budget buys.
pub(super) fn plan(
    row: &RecipeRow,
    constants: &Constants,
    budget: Option<f64>,
) -> Result<Planned, RecipeError> {
    let mut constants = row.relevant(constants);
    let plan = match budget {
        None => row.plan(&constants)?,
        Some(budget) => {
            let (target, plan) = recipe::best_target(row, &constants, budget)?;
            constants.set(Constant::Target, target);
            plan
        }
    };
    let limit = limit::beside(row, &plan, &constants);
    let (samples, evaluations) = amounts(plan.cost);
    Ok(Planned {
        recipe: row.name,
        reference: row.reference,
        for_problems: row.for_problems,
        constants: Echo(constants),
        budget,
        variance: variance(row, &plan.schedule),
        settings: Settings::of(&plan.schedule),
        samples,
        evaluations,
        exact_samples: plan.cost.exact.is_some(),
        promise: Promise::of(&plan),
        limit: limit.as_ref().map(|limit| match limit {
            Ok(limit) => limit.sentence(),
            Err(reason) => format!("none; {reason}"),
        }),
        lower_bound: limit.and_then(Result::ok),
    })
}

impl Planned {
    /// Whether the promise is about the Moreau envelope, not about f.
    pub(super) fn is_about_the_envelope(&self) -> bool {
        self.promise.envelope.is_some()
    }

    /// The cells of a comparison: recipe, target, K, S, samples, evaluations, promise.
    pub(super) fn cells(&self) -> Vec<String> {
        let Promise { measure, bound, .. } = self.promise;
        // Short of the envelope's parameter, which would not fit.
        let measure = unbroken(&measure.replace("_{1/lambda}", ""));
        vec![
            self.recipe.to_owned(),
            self.constants.0.get(Constant::Target).map_or_else(String::new, |eps| digits(eps, 3)),
            short(self.settings.steps as f64),
            short(self.settings.epochs as f64),
            short(self.samples.value()),
            short(self.evaluations.value()),
            format!("E\u{a0}{measure} {}", unbroken(&format!("<= {}", digits(bound, 3)))),
        ]
    }
}

/// The sigma^2 in force, where the recipe has one to choose.
fn variance(row: &RecipeRow, schedule: &Schedule) -> Option<f64> {
    match schedule.large {
        BatchRule::Drift { target_variance, .. } if row.uses(Constant::Variance) => Some(target_variance),
        _ => None,
    }
}

fn amounts(cost: Cost) -> (Amount, Amount) {
    match cost.exact {
        Some(exact) if cost.evaluations == cost.samples => (Amount::Exactly(exact), Amount::Exactly(exact)),
        Some(exact) => (Amount::Exactly(exact), Amount::AtMost(cost.evaluations)),
        None => (Amount::AtMost(cost.samples), Amount::AtMost(cost.evaluations)),
    }
}

impl Amount {
    fn value(self) -> f64 {
        match self {
            Self::Exactly(count) => count as f64,
            Self::AtMost(bound) => bound,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Exactly(count) => format!("exactly {}", whole(count)),
            Self::AtMost(bound) if bound.is_finite() => format!("at most {} in expectation", at_most(bound)),
            Self::AtMost(_) => "no bound that a double can hold".to_owned(),
        }
    }
}

impl Promise {
    fn of(plan: &Plan) -> Self {
        let Guarantee { measure, point, bound, .. } = plan.guarantee;
        let envelope = match measure {
            Measure::MoreauSquared { lambda } => Some(lambda),
            Measure::GradientSquared | Measure::Gap => None,
        };
        let measure = measure.formula();
        let described = match plan.schedule.total_steps() {
            0 => "the start x0, without a single sample",
            _ => point.description(),
        };
        let statement = format!("E {measure} <= {} for {described}", real(bound));
        Self { measure, bound, point, statement, envelope }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let statement = self.statement.replace("x_0 .. x_", &unbroken("x_0 .. x_"));
        let mut lines = vec![("promise", statement)];
        if let Some(lambda) = self.envelope {
            let lambda = unbroken(&format!("lambda = {}", real(lambda)));
            lines.push(("", format!("phi_{{1/lambda}} is the Moreau envelope of f, {lambda}")));
        }
        lines
    }
}

impl Settings {
    fn of(schedule: &Schedule) -> Self {
        let fixed = |rule| match rule {
            BatchRule::Fixed(n) => Some(n),
            BatchRule::Drift { .. } => None,
        };
        let (refresh, small) = match schedule.estimator {
            Estimator::Minibatch => (Some(Plain(Sequence::Constant(1.0))), None),
            Estimator::Page { refresh, small } => (Some(Plain(refresh)), Some(small)),
            Estimator::Storm { .. } => (None, None),
        };
        let batch_rule = Drift::of(schedule.large);
        Self {
            eta: Plain(schedule.eta),
            beta: Plain(schedule.beta),
            steps: schedule.steps,
            epochs: schedule.epochs,
            large: fixed(schedule.large),
            first: fixed(schedule.first),
            reference: batch_rule.as_ref().filter(|_| small.is_some()).map(|rule| rule.at_least),
            small,
            refresh,
            batch_rule,
        }
    }

    /// The batches in words, a line each.
    fn batches(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(first) = self.first
            && self.first != self.large
        {
            let of_each = if self.epochs == 1 { "" } else { " of an epoch" };
            lines.push(format!("N0 = {}, the first{of_each}", whole(first)));
        }
        let large = match (self.large, &self.batch_rule) {
            (Some(1), _) => Some("1: one sample a step".to_owned()),
            (Some(n), _) => Some(whole(n)),
            (None, rule) => rule.as_ref().map(|rule| rule.words(self.first.is_none())),
        };
        lines.extend(large.map(|large| format!("N = {large}")));
        if let (Some(p), Some(b)) = (self.refresh, self.small) {
            lines.push(format!(
                "PAGE: N samples with probability p = {p}, otherwise a correction by b = {}, each sample at two points",
                whole(b)
            ));
        }
        lines
    }
}

impl Drift {
    fn of(rule: BatchRule) -> Option<Self> {
        match rule {
            BatchRule::Fixed(_) => None,
            BatchRule::Drift { growth, floor, target_variance: variance, at_least } => Some(Self {
                formula: "max(at_least, ceil((growth^2 |x - x0|^2 + floor^2)/variance))",
                growth,
                floor,
                variance,
                at_least,
            }),
        }
    }

    /// The rule with its numbers, terms that are zero left out.
    fn words(&self, from_the_start: bool) -> String {
        let Self { growth, floor, variance, at_least, .. } = *self;
        let at_start = BatchRule::Drift { growth, floor, target_variance: variance, at_least }.size(0.0);
        let at_start = at_start.map_or_else(|needed| format!("{needed:.2e}"), whole);
        if growth == 0.0 {
            return format!("{at_start} at every step, since the noise does not grow");
        }
        let growing = match growth * growth {
            1.0 => "|x - x0|^2".to_owned(),
            square => format!("{} |x - x0|^2", real(square)),
        };
        let noise = if floor == 0.0 { growing } else { format!("({growing} + {})", real(floor * floor)) };
        let least = whole(at_least);
        let rule = unbroken(&format!("max({least}, ceil({noise}/{}))", real(variance)));
        if from_the_start { format!("{rule}, which is {at_start} at the start") } else { rule }
    }
}

impl Report for Planned {
    fn text(&self) -> String {
        let Settings { eta, beta, steps, epochs, .. } = self.settings;
        // All constants were given, except a target that a budget decided.
        let given = |(constant, _): &(Constant, f64)| *constant != Constant::Target || self.budget.is_none();
        let mut rows = vec![
            ("recipe", format!("{}: {}", self.recipe, self.for_problems)),
            ("reference", self.reference.to_owned()),
            ("given", equations(self.constants.0.known().filter(given))),
        ];
        if let (Some(budget), Some(target)) = (self.budget, self.constants.0.get(Constant::Target)) {
            let budget = at_most(budget);
            rows.push(("target", format!("eps = {}, the best for {budget} samples", exactly(target))));
        }
        if let Some(variance) = self.variance
            && self.constants.0.get(Constant::Variance).is_none()
        {
            let chosen = "chosen by the recipe (--variance overrides)";
            rows.push(("variance", format!("sigma^2 = {}, {chosen}", real(variance))));
        }
        rows.push(("step size", format!("eta = {eta}")));
        let towards =
            if beta.0 == Sequence::Constant(0.0) { "(none)" } else { "towards the start of the epoch" };
        rows.push(("anchoring", format!("beta = {beta} {towards}")));
        let of_each = if epochs == 1 { "" } else { " an epoch" };
        rows.push(("steps", format!("K = {}{of_each}", whole(steps))));
        rows.push(("epochs", format!("S = {}", whole(epochs))));
        for (index, line) in self.settings.batches().into_iter().enumerate() {
            rows.push((if index == 0 { "batches" } else { "" }, line));
        }
        rows.extend(self.promise.lines());
        rows.push(("samples", self.samples.words()));
        rows.push(("evaluations", self.evaluations.words()));
        rows.extend(self.limit.clone().map(|limit| ("lower bound", limit)));
        Table::labelled(rows).text()
    }
}

/// A sequence; a constant one is its value.
#[derive(Clone, Copy)]
struct Plain(Sequence);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Sequence::Constant(value) => write!(f, "{}", real(value)),
            Sequence::Harmonic { scale, shift } => write!(f, "{}/(t + {})", real(scale), real(shift)),
            Sequence::InverseRoot { scale, shift } => write!(f, "{}/sqrt(t + {})", real(scale), real(shift)),
        }
    }
}

impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Sequence::Constant(value) => value.serialize(serializer),
            other => other.serialize(serializer),
        }
    }
}
