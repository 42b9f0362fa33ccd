//! The estimates as a table [recipe.constants], ready to be copied into a problem file.

use pasta_opt::calibrate::Calibration;
use pasta_opt::recipe::Constant;

use super::findings::{Evidence, Figure, interval};

pub(super) fn constants(figures: &[Figure], calibration: &Calibration) -> String {
    let mut lines = vec![
        "[recipe.constants]".to_owned(),
        "# Measured around the start, proved nowhere: a run with them has no promise.".to_owned(),
    ];
    if calibration.breaks_bg0() {
        lines.push("# BG-0 fails along some ray: no growth and floor bound this noise.".to_owned());
    }
    let (mut estimated, mut unknowable) = (Vec::new(), Vec::new());
    for (constant, figure) in figures.iter().filter_map(|figure| Some((figure.constant?, figure))) {
        let (name, symbol) = (constant.name(), constant.symbol());
        match &figure.measured {
            Evidence::Estimated { estimate, found } if usable(constant, estimate.value) => {
                estimated.push(format!("{name:?}"));
                lines.push(format!("# {symbol}: {}, {found}", interval(*estimate)));
                lines.push(format!("{name} = {:?}", rounded(estimate.value)));
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
    lines.extend(unknowable);
    lines.join("\n") + "\n"
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
