use pasta_opt::prelude::*;
use pasta_opt::problems::SoftAbsolute;

use super::support::{assert_broken, assert_promise, noisy};

const START: [f64; 1] = [0.6];

fn recipe(floor: f64) -> SmoothAnchored {
    let gap = SoftAbsolute { dimension: 1 }.gap(&START);
    SmoothAnchored { smoothness: 1.0, lipschitz: 1.0, gap, growth: 0.0, floor, target: 0.5 }
}

#[test]
fn anchored_epochs_keep_their_promise_on_a_smooth_function() {
    let oracle = noisy(SoftAbsolute { dimension: 1 }, 0.0, 1.0, &START);
    assert_promise(&oracle, &recipe(1.0).plan().unwrap(), 2);
}

#[test]
fn anchored_epochs_that_were_told_too_little_noise_break_their_promise() {
    // A run of few epochs is enough: noise of this size never lets the anchor settle.
    let oracle = noisy(SoftAbsolute { dimension: 1 }, 0.0, 2000.0, &START);
    let mut plan = recipe(0.0).plan().unwrap();
    plan.schedule.epochs = 8;
    assert_broken(&oracle, &plan, 8);
}
