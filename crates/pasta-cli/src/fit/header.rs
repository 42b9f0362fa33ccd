//! The first line of a fit, and every setting as it was resolved.

use pasta_opt::fit::RELATIVE;
use pasta_opt::kinks;
use pasta_opt::run::Target;
use pasta_opt::table::{Design, Features, Loss};
use pasta_report::grouped;
use pasta_report::number::{given, significant};

use super::arguments::{Arguments, EXACT};
use crate::table::{Loaded, counted, naming};

/// What a fit begins with.
pub(super) struct Header<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) file: &'a str,
    pub(super) loaded: &'a Loaded,
    pub(super) method: &'a str,
    pub(super) budget: u128,
    /// That of the residuals, where the scale of the loss is from there.
    pub(super) deviation: Option<f64>,
    /// Why this loss was chosen, if none was given.
    pub(super) guessed: Option<&'a str>,
}

impl Header<'_> {
    /// The table, the loss, what differs from the usual, and the method.
    pub(super) fn line(&self) -> String {
        let Self { arguments, file, loaded, method, deviation, guessed, .. } = *self;
        let table = loaded.linear.table();
        let rows = counted(table.rows() as u64, "row");
        let columns = counted(table.columns() as u64, "column");
        let label = match (&loaded.label[..], loaded.classes.0.len()) {
            ("", 0) => String::new(),
            ("", classes) => format!(", {classes} classes"),
            (label, 0) => format!(", label {label}"),
            (label, classes) => format!(", label {label} ({classes} classes)"),
        };
        let dropped = match loaded.dropped {
            0 => String::new(),
            dropped => format!(", {} dropped", counted(dropped, "row")),
        };
        let loss = words(&loaded.linear.loss(), deviation);
        let guessed = guessed.map_or_else(String::new, |why| format!(" (guessed: {why})"));
        let (usual, others) = (unusual(&loaded.linear.design()), others(arguments));
        let naming = naming(&loaded.encoding);
        let offset = &arguments.reading.offset;
        let offset = offset.as_ref().map_or_else(String::new, |column| format!(", offset {column}"));
        format!(
            "{file}: {rows}, {columns}{naming}{label}{offset}{dropped}; loss {loss}{guessed}{usual}{others}; method {method}"
        )
    }

    /// Every setting as it was resolved.
    pub(super) fn settings(&self) -> String {
        let Self { arguments, loaded, method, budget, .. } = *self;
        let linear = &loaded.linear;
        let (layout, width) = match &linear.table().features {
            Features::Dense(dense) => ("dense", dense.values.width()),
            Features::Sparse(sparse) => ("sparse", sparse.values.width()),
        };
        let design = linear.design();
        let others = others(arguments);
        let (what, of) = if !others.is_empty() {
            ("f - min f, or else |x - prox(x - grad f)|,", "the start")
        } else if method == EXACT && kinks::applies(linear) {
            ("f - min f", "f at the start")
        } else {
            ("|grad f|", "the start")
        };
        let target = match arguments.target {
            None => format!("{RELATIVE:e} of {of}"),
            Some(Target::Norm(norm)) => given(norm),
            Some(share) => format!("{share} of {of}"),
        };
        let quickest =
            if arguments.method.is_none() && method == EXACT { " (the quickest for this table)" } else { "" };
        format!(
            "{layout} f{}, {}, {}, degree {}, penalty {}{others}; method {method}{quickest}, {what} <= {target}, at most {} rows read, seed {}, threads {}",
            8 * width,
            if design.intercept { "intercept" } else { "no intercept" },
            if design.standardise { "standardised" } else { "raw columns" },
            design.degree,
            given(design.penalty),
            grouped(budget),
            arguments.seed,
            threads(arguments),
        )
    }
}

/// What is not as it is without flags.
fn unusual(design: &Design) -> String {
    let penalty = (design.penalty != 0.0).then(|| format!(", penalty {}", given(design.penalty)));
    let degree = (design.degree != 1).then(|| format!(", degree {}", design.degree));
    let intercept = (!design.intercept).then(|| ", no intercept".to_owned());
    let raw = (!design.standardise).then(|| ", raw columns".to_owned());
    [penalty, degree, intercept, raw].into_iter().flatten().collect()
}

/// Penalties and bounds besides the ridge's, in words.
fn others(arguments: &Arguments) -> String {
    let l1 = arguments.penalty_l1.map(|l1| format!(", l1 {}", given(l1)));
    let net = arguments.elastic_net.map(|ratio| format!(", elastic net {}", given(ratio)));
    let signs = arguments.non_negative.then(|| ", no negative weights".to_owned());
    let has_bounds = !arguments.lower.is_empty() || !arguments.upper.is_empty();
    let bounds = has_bounds.then(|| ", bounds on weights".to_owned());
    [l1, net, signs, bounds].into_iter().flatten().collect()
}

pub(super) fn threads(arguments: &Arguments) -> String {
    arguments.threads.map_or_else(|| "all".to_owned(), |threads| threads.to_string())
}

/// A loss with its parameter, and where that is from.
pub(super) fn words(loss: &Loss, deviation: Option<f64>) -> String {
    let name = loss.row().name;
    let from = if deviation.is_some() { " from the residuals" } else { "" };
    let shown = |value: f64| if deviation.is_some() { significant(value, 3) } else { value.to_string() };
    match (loss.row().parameter, loss.parameter()) {
        (Some(row), Some(value)) => format!("{name} ({} {}{from})", row.name, shown(value)),
        _ => name.to_owned(),
    }
}
