//! The first line of a fit: every setting as it was resolved.

use pasta_opt::fit::RELATIVE;
use pasta_opt::kinks;
use pasta_opt::run::Target;
use pasta_opt::table::{Features, Loss};
use pasta_report::grouped;
use pasta_report::number::{given, significant};

use super::arguments::{Arguments, EXACT};
use crate::table::{Loaded, counted, naming};

/// Every setting, in a line.
pub(super) fn header(
    arguments: &Arguments,
    file: &str,
    loaded: &Loaded,
    method: &str,
    budget: u128,
    deviation: Option<f64>,
    guessed: Option<&str>,
) -> String {
    let linear = &loaded.linear;
    let table = linear.table();
    let rows = counted(table.rows() as u64, "row");
    let columns = counted(table.columns() as u64, "column");
    let (layout, width) = match &table.features {
        Features::Dense(dense) => ("dense", dense.values.width()),
        Features::Sparse(sparse) => ("sparse", sparse.values.width()),
    };
    let design = linear.design();
    let label = match (&loaded.label[..], loaded.classes.0.len()) {
        ("", 0) => String::new(),
        ("", classes) => format!(", {classes} classes"),
        (label, 0) => format!(", label {label}"),
        (label, classes) => format!(", label {label} ({classes} classes)"),
    };
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
    let dropped = match loaded.dropped {
        0 => String::new(),
        dropped => format!(", {} dropped", counted(dropped, "row")),
    };
    format!(
        "{file}: {rows}, {columns} ({layout} f{}){}{label}{dropped}; loss {}, {}, {}, degree {}, penalty {}{others}; method {}{}, {what} <= {target}, \
         at most {} rows read, seed {}, threads {}",
        8 * width,
        naming(&loaded.encoding),
        words(&linear.loss(), deviation)
            + &guessed.map_or_else(String::new, |why| format!(" (guessed: {why})")),
        if design.intercept { "intercept" } else { "no intercept" },
        if design.standardise { "standardised" } else { "raw columns" },
        design.degree,
        given(design.penalty),
        method,
        if arguments.method.is_none() && method == EXACT { " (the quickest for this table)" } else { "" },
        grouped(budget),
        arguments.seed,
        threads(arguments),
    )
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
    match *loss {
        Loss::Huber { delta } => format!("{name} (delta {}{from})", shown(delta)),
        Loss::Quantile { level } => format!("{name} (level {level})"),
        Loss::Cauchy { scale } | Loss::Welsch { scale } | Loss::Tukey { scale } => {
            format!("{name} (scale {}{from})", shown(scale))
        }
        _ => name.to_owned(),
    }
}
