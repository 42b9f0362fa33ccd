//! The problems of the race: streams and tables whose gradients and values are known, one row each.
//!
//! What is known is for judging ends of runs only: a method sees samples (and, of a table, exact passes).

mod additive;
mod classes;
mod factor;
mod linear;
mod net;
mod normal;
mod queue;
mod regression;
mod reparameterised;
mod stock;
mod table;
mod wells;

use std::sync::Arc;

use pasta_opt::draws::{Address, Role, Stream};
use pasta_opt::oracle::{Batched, Oracle, OracleError, Sampled};

use self::table::{Rows, Table};

/// A row of the race.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Its name in commands and tables.
    pub(crate) name: &'static str,
    /// What it is, in a line.
    pub(crate) about: &'static str,
    pub(crate) set: Set,
    pub(crate) kind: Kind,
    /// Final over initial gradients below this count as this: rounding, unless said.
    pub(crate) floor: f64,
    make: fn() -> Instance,
}

/// What is left of a gradient that rounding hides.
const ROUNDING: f64 = 1e-8;

/// Who may look at a problem, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    /// May be looked at while a method is being chosen.
    Development,
    /// Run once, after the method was frozen.
    KeptBack,
}

/// Where the samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Stream,
    Table,
}

/// A problem that is ready to be run.
pub(crate) struct Instance {
    pub(crate) oracle: Arc<dyn Oracle>,
    pub(crate) truth: Arc<dyn Truth>,
    pub(crate) start: Vec<f64>,
}

/// What a run is judged by.
pub(crate) trait Truth: Send + Sync {
    /// |grad f(x)|, or what takes its place where f has kinks for good.
    fn error(&self, x: &[f64]) -> f64;
    /// f(x).
    fn value(&self, x: &[f64]) -> f64;
    /// Both.
    fn judge(&self, x: &[f64]) -> (f64, f64) {
        (self.error(x), self.value(x))
    }
}

impl Problem {
    const fn development(
        name: &'static str,
        kind: Kind,
        about: &'static str,
        make: fn() -> Instance,
    ) -> Self {
        Self { name, about, set: Set::Development, kind, floor: ROUNDING, make }
    }

    const fn kept_back(name: &'static str, kind: Kind, about: &'static str, make: fn() -> Instance) -> Self {
        Self { name, about, set: Set::KeptBack, kind, floor: ROUNDING, make }
    }

    /// The same where a smaller gradient is worth nothing.
    const fn down_to(self, floor: f64) -> Self {
        Self { floor, ..self }
    }

    pub(crate) fn instance(&self) -> Instance {
        (self.make)()
    }
}

/// A stream of samples whose expectations are known.
trait Law: Send + Sync + 'static {
    fn dim(&self) -> usize {
        self.start().len()
    }
    fn start(&self) -> Vec<f64>;
    /// Adds `weight` times g(x, xi) to `out`, and gives f(x, xi).
    fn sample(&self, weight: f64, x: &[f64], xi: &mut Stream, out: &mut [f64]) -> f64;
    /// E g(x, xi).
    fn gradient(&self, x: &[f64], out: &mut [f64]);
    /// E f(x, xi).
    fn value(&self, x: &[f64]) -> f64;
    /// Both; for a law that comes to both at once.
    fn gradient_and_value(&self, x: &[f64], out: &mut [f64]) -> f64 {
        self.gradient(x, out);
        self.value(x)
    }
}

/// A law as what a user of the library would write.
struct Streamed<L> {
    law: Arc<L>,
    dim: usize,
    name: &'static str,
}

impl<L: Law> Sampled for Streamed<L> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn identity(&self) -> String {
        self.name.to_owned()
    }

    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        self.law.sample(weight, x, xi, out);
        Ok(())
    }

    fn loss(&self, x: &[f64], xi: &mut Stream) -> Result<f64, OracleError> {
        Ok(self.law.sample(0.0, x, xi, &mut vec![0.0; self.dim]))
    }

    fn gives_losses(&self) -> bool {
        true
    }
}

/// The truth of a law.
struct Known<L>(Arc<L>);

impl<L: Law> Truth for Known<L> {
    fn error(&self, x: &[f64]) -> f64 {
        let mut gradient = vec![0.0; x.len()];
        self.0.gradient(x, &mut gradient);
        norm(&gradient)
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.0.value(x)
    }

    fn judge(&self, x: &[f64]) -> (f64, f64) {
        let mut gradient = vec![0.0; x.len()];
        let value = self.0.gradient_and_value(x, &mut gradient);
        (norm(&gradient), value)
    }
}

fn stream(name: &'static str, law: impl Law) -> Instance {
    let law = Arc::new(law);
    let (start, dim) = (law.start(), law.dim());
    let oracle = Arc::new(Batched::new(Streamed { law: Arc::clone(&law), dim, name }));
    Instance { oracle, truth: Arc::new(Known(law)), start }
}

fn table(name: &'static str, rows: impl Rows) -> Instance {
    let table = Arc::new(Table::new(name, rows));
    Instance { oracle: table.clone(), start: table.start(), truth: table }
}

/// The random choices that make a problem: the same every time.
fn setup(problem: u64) -> Stream {
    Address { seed: problem, role: Role::Setup, step: 0, sample: 0 }.stream()
}

fn normals(xi: &mut Stream, n: usize) -> Vec<f64> {
    (0..n).map(|_| xi.normal()).collect()
}

/// n numbers from `first` to `last` with equal ratios.
fn geometric(first: f64, last: f64, n: usize) -> Vec<f64> {
    (0..n).map(|i| first * (last / first).powf(i as f64 / (n as f64 - 1.0))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

fn sigmoid(u: f64) -> f64 {
    if u >= 0.0 { 1.0 / (1.0 + (-u).exp()) } else { u.exp() / (1.0 + u.exp()) }
}

/// log(1 + e^u).
fn softplus(u: f64) -> f64 {
    u.max(0.0) + (-u.abs()).exp().ln_1p()
}

use Kind::{Stream as S, Table as T};

/// Every problem of the race.
pub(crate) const PROBLEMS: &[Problem] = &[
    Problem::development(
        "lsq-small",
        T,
        "least squares, 442 rows, 10 correlated standard columns",
        linear::small,
    ),
    Problem::development("lsq-raw", T, "least squares, columns as they come: scales .5 to 1000", linear::raw),
    Problem::development("lsq-cubic", T, "least squares, all products up to degree 3", linear::cubic),
    Problem::development("logistic", T, "logistic regression, 20,000 rows", linear::logistic),
    Problem::development("welsch", T, "redescending loss, a fifth of the rows wrong", linear::welsch),
    Problem::development(
        "phase",
        T,
        "robust phase retrieval, kinks; error is the distance to the signal",
        linear::phase,
    ),
    Problem::development(
        "softmax",
        T,
        "softmax on correlated non-negative features of scales 1 to .05",
        classes::softmax,
    ),
    Problem::development("factor", T, "matrix factorisation 20 x 15, rank 3", factor::full),
    Problem::development("net", T, "two-layer tanh net, 2,000 rows", net::table),
    Problem::development("sine", S, "x^2/2 + sin^2 x, B = 9, b = 1, no losses", additive::sine),
    Problem::development("ramp", S, "a slope that ends far out, B = 3, b = .1, no losses", additive::ramp)
        .down_to(0.25),
    Problem::development(
        "quad-0",
        S,
        "curvatures 1 to 1e-3, way 10, d = 50, B = 0, no losses",
        additive::quad_0,
    ),
    Problem::development("quad-1", S, "the same with B = 1", additive::quad_1),
    Problem::development("quad-10", S, "the same with B = 10", additive::quad_10),
    Problem::development("quad-30", S, "the same with B = 30", additive::quad_30),
    Problem::development("round-0", S, "curvature 1, way 5, d = 50, B = 0, no losses", additive::round_0),
    Problem::development("round-1", S, "the same with B = 1", additive::round_1),
    Problem::development("round-10", S, "the same with B = 10", additive::round_10),
    Problem::development("round-30", S, "the same with B = 30", additive::round_30),
    Problem::development(
        "quad-losses-10",
        S,
        "quad-10 with losses as noisy as its gradients",
        additive::losses_10,
    ),
    Problem::development(
        "quad-losses-30",
        S,
        "quad-30 with losses as noisy as its gradients",
        additive::losses_30,
    ),
    Problem::development(
        "vi-gaussian",
        S,
        "mean-field variational inference, Gaussian target",
        reparameterised::gaussian,
    ),
    Problem::development("newsvendor", S, "five products, lognormal demand", stock::newsvendor),
    Problem::development(
        "lsq-columns",
        S,
        "least squares on a stream, columns of scale 1 to .03",
        regression::columns,
    ),
    Problem::development("poisson", S, "Poisson regression: exponential losses", regression::poisson),
    Problem::development(
        "logistic-stream",
        S,
        "logistic regression on a stream, columns of scale 1 to .2",
        regression::logistic,
    ),
    Problem::development(
        "huber",
        S,
        "Huber's loss, a fifth of the errors 20 times larger",
        regression::huber,
    ),
    Problem::development(
        "principal",
        S,
        "first principal component: saddles at all others",
        wells::principal,
    ),
    Problem::development("valley", S, "a curved valley; the noise vanishes at its end", wells::valley),
    Problem::development("queue", S, "service rates of a tandem queue, simulated", queue::tandem),
    Problem::development("hinge", T, "squared hinge with a ridge, 3,000 rows", linear::hinge),
    Problem::kept_back(
        "logistic-outliers",
        S,
        "logistic regression, one in twenty features ten times larger",
        regression::outliers,
    ),
    Problem::kept_back("quantile", S, "linear regression of the upper tenth", regression::quantile),
    Problem::kept_back(
        "cauchy",
        S,
        "location of a Cauchy law from far away: a redescending loss",
        wells::cauchy,
    ),
    Problem::kept_back(
        "phase-stream",
        S,
        "smooth phase retrieval: noise like the fourth power of the distance",
        wells::phase,
    ),
    Problem::kept_back(
        "vi-logistic",
        S,
        "mean-field variational inference, logistic posterior",
        reparameterised::logistic,
    ),
    Problem::kept_back("shortfall", S, "portfolio of least expected shortfall", stock::shortfall),
    Problem::kept_back("net-stream", S, "two-layer tanh net on a stream", net::stream_of_two),
    Problem::kept_back("ripples", S, "a bowl with many minima", wells::ripples),
    Problem::kept_back("hinge-raw", T, "squared hinge, columns as they come", linear::hinge_raw),
    Problem::kept_back("poisson-table", T, "Poisson regression, 3,000 rows", linear::poisson),
    Problem::kept_back("completion", T, "matrix completion 40 x 25, rank 2, 400 entries", factor::completion),
    Problem::kept_back("net-classes", T, "two-layer net for two intertwined classes", net::classes),
    Problem::kept_back(
        "separable",
        T,
        "logistic regression of separable rows: no minimiser",
        linear::separable,
    ),
];

#[cfg(test)]
mod tests;
