//! The estimates as a table [recipe.constants], ready to be copied into a problem file.

use pasta_opt::calibrate::{Calibration, SAFETY};
use pasta_opt::recipe::Constant;

use super::findings::{Evidence, Figure, interval};

pub(super) fn constants(
    figures: &[Figure],
    calibration: &Calibration,
    tried: Option<&str>,
    of_table: bool,
) -> String {
    let mut lines = vec![
        "[recipe.constants]".to_owned(),
        "# Measured around the start, proved nowhere: a run with them has no promise.".to_owned(),
    ];
    if calibration.breaks_bg0() {
        lines.push("# BG-0 fails along some ray: no growth and floor bound this noise.".to_owned());
    }
    lines.extend(tried.map(|line| format!("# {line}")));
    let (mut estimated, mut unknowable) = (Vec::new(), Vec::new());
    for (constant, figure) in figures.iter().filter_map(|figure| Some((figure.constant?, figure))) {
        let (name, symbol) = (constant.name(), constant.symbol());
        match &figure.measured {
            Evidence::Estimated { estimate, found } if usable(constant, estimate.value) => {
                estimated.push(format!("{name:?}"));
                let factor = safety(constant);
                let raised = if factor > 1.0 {
                    let seen = rounded(estimate.value);
                    format!("; {factor} times {seen}, the largest seen in a few places")
                } else {
                    String::new()
                };
                lines.push(format!("# {symbol}: {}, {found}{raised}", interval(*estimate)));
                lines.push(format!("{name} = {:?}", rounded(factor * estimate.value)));
            }
            Evidence::Estimated { .. } => lines.push(format!("# {name} =    # {symbol}: none was seen")),
            Evidence::NotEstimated { reason } => lines.push(format!("# {name} =    # {symbol}: {reason}")),
            Evidence::CannotBeMeasured => {
                unknowable.push(format!("# {name} =    # {symbol}: {}", constant.meaning()));
            }
        }
    }
    lines.push(format!("estimated = [{}]", estimated.join(", ")));
    let declare = "# No sample can tell these. Declare those that the recipe needs, as bounds that you know:";
    lines.push(declare.to_owned());
    if of_table {
        lines.push(
            "# (constants = \"problem\" takes what is proved about this table; `pasta inspect` shows it.)"
                .into(),
        );
    }
    lines.extend(unknowable);
    lines.join("\n") + "\n"
}

/// What is known from below is given to a run with a margin.
fn safety(constant: Constant) -> f64 {
    if matches!(constant, Constant::Smoothness | Constant::MsSmoothness) { SAFETY } else { 1.0 }
}

/// What became of the short run with these constants.
pub(super) fn tried(calibration: &Calibration) -> Option<String> {
    let trial = calibration.trial?;
    let (steps, eta) = (trial.steps, rounded(trial.eta));
    let raised = match trial.raised {
        0 => String::new(),
        1 => " L was raised once because a trial with a smaller one contradicted it.".to_owned(),
        times => format!(" L was raised {times} times because a trial with a smaller one contradicted it."),
    };
    Some(if trial.steady {
        format!("Tried for {steps} steps of {eta} times the gradient, without a contradiction.{raised}")
    } else {
        format!(
            "WARNING: a short run with these constants did not hold together: it came to {} from the start in {steps} \
             steps of {eta} times the gradient.{raised} f may have no minimum, or L may be larger still.",
            rounded(trial.distance)
        )
    })
}

/// A smoothness of zero is what one sees when there is nothing to see, and no recipe takes it.
fn usable(constant: Constant, value: f64) -> bool {
    let zero_is_a_value = matches!(constant, Constant::Growth | Constant::Floor);
    value.is_finite() && (value > 0.0 || zero_is_a_value)
}

/// Six digits: more would be noise.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
