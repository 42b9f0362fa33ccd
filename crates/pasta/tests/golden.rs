//! Reference values, computed elsewhere in 60-digit arithmetic and rounded once (`tests/data/golden.json`).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use pasta_opt::bounds::{LowerBound, LowerMeanSquareSmooth, LowerSmooth};
use pasta_opt::hard::{HardInstance, Rotation};
use pasta_opt::oracle::{About, Answer, Draw, Form, Request};
use pasta_opt::prelude::*;
use pasta_opt::recipe::Uncertainty;
use serde_json::Value;

use common::Made;

mod common;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/golden.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Calls `check(in, out)` on every case of a section, and fails if there is none.
fn cases(section: &str, check: impl Fn(&Value, &Value)) {
    let golden = golden();
    let cases = golden[section].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        check(&case["in"], &case["out"]);
    }
}

fn real(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap_or_else(|| panic!("{key} in {case}"))
}

/// The bounds are sums and products of at most forty roundings, each at most 2^-53.
fn close(ours: f64, reference: f64) {
    assert!((ours - reference).abs() <= 1e-14 * reference.abs(), "{ours:?} is not {reference:?}");
}

fn constant(sequence: Sequence) -> f64 {
    match sequence {
        Sequence::Constant(value) => value,
        other => panic!("{other:?} is not constant"),
    }
}

fn fixed(rule: BatchRule) -> u64 {
    match rule {
        BatchRule::Fixed(n) => n,
        BatchRule::Drift { .. } => panic!("{rule:?} is not fixed"),
    }
}

/// eta and beta are rationals rounded once: equal to the last bit. Counts are exact.
fn check_schedule(plan: &Plan, out: &Value) {
    let Schedule { epochs, steps, eta, beta, .. } = plan.schedule;
    assert_eq!(steps, out["K"].as_u64().unwrap(), "K of {out}");
    assert_eq!(epochs, out["S"].as_u64().unwrap(), "S of {out}");
    assert_eq!(constant(eta), real(out, "eta"), "eta of {out}");
    assert_eq!(constant(beta), real(out, "beta"), "beta of {out}");
}

fn smooth(case: &Value) -> Smooth {
    Smooth {
        smoothness: real(case, "L"),
        gap: real(case, "Delta"),
        growth: case["B"].as_f64().unwrap_or(0.0),
        floor: case["b"].as_f64().unwrap_or(0.0),
        variance: Some(real(case, "sigma2")),
        target: real(case, "eps"),
    }
}

#[test]
fn theorem_3_matches_the_reference() {
    cases("smooth_recipe", |case, out| check_schedule(&smooth(case).plan().unwrap(), out));
    cases("smooth_drift_bound", |case, out| {
        close(smooth(case).drift_bound().unwrap(), out.as_f64().unwrap());
    });
    cases("smooth_bound_printed_case1", |case, out| {
        close(smooth(case).printed_bound().unwrap(), out.as_f64().unwrap());
    });
    cases("smooth_bound_unsimplified", |case, out| {
        close(smooth(case).plan().unwrap().cost.samples, out.as_f64().unwrap());
    });
}

#[test]
fn theorem_4_matches_the_reference() {
    // The reference gives |x0 - x*|^2; a square root squared again is off by a rounding, hence no bits for K_pre.
    let recipe = |case: &Value| SmoothConvex {
        smoothness: real(case, "L"),
        distance: real(case, "R2").sqrt(),
        growth: case["B"].as_f64().unwrap_or(0.0),
        floor: case["b"].as_f64().unwrap_or(0.0),
        variance: Some(real(case, "sigma2")),
        target: real(case, "eps"),
    };
    cases("convex_smooth_recipe", |case, out| check_schedule(&recipe(case).plan().unwrap(), out));
    cases("convex_smooth_bound", |case, out| {
        close(recipe(case).plan().unwrap().cost.samples, out.as_f64().unwrap());
    });
}

#[test]
fn theorem_5_matches_the_reference() {
    let recipe = |case: &Value| LipschitzConvex {
        lipschitz: real(case, "G"),
        distance: real(case, "R2").sqrt(),
        growth: case["B"].as_f64().unwrap_or(0.0),
        floor: case["b"].as_f64().unwrap_or(0.0),
        variance: Some(real(case, "sigma2")),
        target: real(case, "eps"),
    };
    cases("convex_lipschitz_recipe", |case, out| check_schedule(&recipe(case).plan().unwrap(), out));
    cases("convex_lipschitz_bound", |case, out| {
        close(recipe(case).plan().unwrap().cost.samples, out.as_f64().unwrap());
    });
}

#[test]
fn theorem_6_matches_the_reference() {
    cases("uncertainty", |case, out| {
        let principle =
            Uncertainty { smoothness: real(case, "L"), growth: real(case, "B"), eta: real(case, "eta") };
        let check = principle.check(real(case, "beta"), case["N"].as_u64().unwrap()).unwrap();
        close(check.lhs, real(out, "lhs"));
        close(check.rhs, real(out, "rhs"));
        close(check.eta_cap, real(out, "eta_cap"));
        close(check.exact_noise_lhs, real(out, "exact_noise_lhs"));
        assert_eq!(check.variance_ok, out["variance_ok"].as_bool().unwrap());
        assert_eq!(check.eta_ok, out["eta_ok"].as_bool().unwrap());
        assert_eq!(check.min_n, out["min_N"].as_u64());
        assert_eq!(check.exact_noise_ok, out["exact_noise_ok"].as_bool().unwrap());
    });
}

#[test]
fn theorem_7_matches_the_reference() {
    let recipe = |case: &Value| MeanSquareSmooth {
        ms_smoothness: real(case, "Lbar"),
        gap: real(case, "Delta"),
        growth: real(case, "B"),
        floor: real(case, "b"),
        target: real(case, "eps"),
    };
    cases("mss_recipe", |case, out| {
        let plan = recipe(case).plan().unwrap();
        check_schedule(&plan, out);
        let BatchRule::Drift { at_least, .. } = plan.schedule.large else { panic!("dynamic batches") };
        let Estimator::Page { refresh, small } = plan.schedule.estimator else { panic!("PAGE") };
        assert_eq!(at_least, out["N_ref"].as_u64().unwrap());
        assert_eq!(small, out["b"].as_u64().unwrap());
        assert_eq!(constant(refresh), real(out, "p"));
        assert_eq!(fixed(plan.schedule.first), out["N0"].as_u64().unwrap());
    });
    cases("mss_bound_printed", |case, out| {
        let plan = recipe(case).plan().unwrap();
        close(plan.cost.samples, out.as_f64().unwrap());
        assert!(plan.cost.evaluations > plan.cost.samples);
    });
    cases("mss_bound_unsimplified", |case, out| {
        close(recipe(case).unsimplified_bound().unwrap(), out.as_f64().unwrap());
    });
    cases("mss_bound_unsimplified_evals", |case, out| {
        let recipe = recipe(case);
        let counts = recipe.batches().unwrap();
        let twice = (counts.small * counts.steps) as f64;
        close(recipe.unsimplified_bound().unwrap() + twice, out.as_f64().unwrap());
    });
}

#[test]
fn one_over_p_is_a_ratio_of_integers() {
    // 8 B^2 Delta^2 + 2 b^2 = 2401 = 49^2 with eps = 1, all exact in doubles, so 1/p = 49 and K = 196 + 49.
    let recipe = MeanSquareSmooth { ms_smoothness: 1.0, gap: 12.25, growth: 1.0, floor: 24.5, target: 1.0 };
    let counts = recipe.batches().unwrap();
    assert_eq!((counts.reference, counts.small, counts.steps), (2401, 49, 245));
    // Through the rounded p it is not 49, and its ceiling is one too large.
    assert_eq!((1.0 / (49.0 / 2401.0f64)).ceil(), 50.0);
}

#[test]
fn theorem_8_matches_the_reference() {
    let recipe = |case: &Value| Pl {
        smoothness: real(case, "L"),
        mu: real(case, "mu"),
        gap: real(case, "Delta"),
        growth: real(case, "B"),
        floor: real(case, "b"),
        target: real(case, "eps"),
    };
    cases("pl_recipe", |case, out| {
        let plan = recipe(case).plan().unwrap();
        check_schedule(&plan, out);
        assert_eq!(fixed(plan.schedule.large), 1);
    });
    cases("pl_complexity", |case, out| {
        assert_eq!(recipe(case).plan().unwrap().cost.exact, out.as_u64().map(u128::from));
    });
}

#[test]
fn theorem_9_matches_the_reference() {
    let recipe = |case: &Value| StarConvex {
        smoothness: real(case, "L"),
        mu: real(case, "mu"),
        gap: real(case, "Delta"),
        growth: real(case, "B"),
        floor: real(case, "b"),
        target: real(case, "eps"),
    };
    cases("star_recipe", |case, out| check_schedule(&recipe(case).plan().unwrap(), out));
    cases("star_complexity", |case, out| {
        assert_eq!(recipe(case).plan().unwrap().cost.exact, out.as_u64().map(u128::from));
    });
}

#[test]
fn theorem_10_matches_the_reference_in_both_versions() {
    for (section, formulas) in
        [("weak_recipe_printed", Formulas::AsPrinted), ("weak_recipe_corrected", Formulas::Corrected)]
    {
        cases(section, |case, out| {
            let recipe = WeaklyConvex {
                rho: real(case, "rho"),
                lambda: real(case, "lam"),
                lipschitz: real(case, "G"),
                gap: real(case, "Delta"),
                growth: real(case, "B"),
                floor: real(case, "b"),
                target: real(case, "eps"),
                formulas,
            };
            let plan = recipe.plan().unwrap();
            check_schedule(&plan, out);
            assert_eq!(fixed(plan.schedule.first), out["N0"].as_u64().unwrap());
            assert_eq!(fixed(plan.schedule.large), out["N"].as_u64().unwrap());
            assert_eq!(plan.cost.exact, out["queries_exact"].as_u64().map(u128::from));
        });
    }
}

#[test]
fn horizon_tuned_sgd_matches_the_reference() {
    cases("tuned_sgd_n1_recipe_extra", |case, out| {
        let recipe = HorizonSgd {
            smoothness: real(case, "L"),
            gap: real(case, "Delta"),
            growth: real(case, "B"),
            floor: real(case, "b"),
            target: real(case, "eps"),
        };
        let plan = recipe.plan().unwrap();
        assert_eq!(plan.schedule.steps, out["K"].as_u64().unwrap());
        assert_eq!(constant(plan.schedule.eta), real(out, "eta"));
    });
}

#[test]
fn dynamic_batches_match_the_reference() {
    cases("dynamic_batch", |case, out| {
        let rule = BatchRule::Drift {
            growth: real(case, "B"),
            floor: real(case, "b"),
            target_variance: real(case, "sigma2"),
            at_least: 1,
        };
        assert_eq!(rule.size(real(case, "dist2")).ok(), out.as_u64());
    });
    cases("mss_Nt", |case, out| {
        let eps = real(case, "eps");
        let rule = BatchRule::Drift {
            growth: real(case, "B"),
            floor: real(case, "b"),
            target_variance: eps * eps / 2.0,
            at_least: case["N_ref"].as_u64().unwrap(),
        };
        assert_eq!(rule.size(real(case, "dist2")).ok(), out.as_u64());
    });
}

fn check_lower(bound: &LowerBound, out: &Value) {
    assert_eq!(bound.admissible, out["admissible"].as_bool().unwrap());
    assert_eq!(bound.chain, out["T"].as_u64().unwrap());
    for (ours, key) in [
        (bound.eps_max, "eps_max"),
        (bound.distance, "D"),
        (bound.lambda, "lam"),
        (bound.p, "p"),
        (bound.terms[0], "term_B"),
        (bound.terms[1], "term_b"),
        (bound.bound.unwrap(), "bound"),
        (bound.sharp_bound.unwrap(), "Tm1_over_2p"),
        (bound.scale, "scale"),
    ] {
        close(ours, real(out, key));
    }
}

#[test]
fn the_lower_bounds_match_the_reference() {
    cases("lower_smooth", |case, out| {
        let limit = LowerSmooth {
            smoothness: real(case, "L"),
            gap: real(case, "Delta"),
            growth: real(case, "B"),
            floor: real(case, "b"),
            target: real(case, "eps"),
        };
        check_lower(&limit.evaluate().unwrap(), out);
    });
    cases("lower_mss", |case, out| {
        let limit = LowerMeanSquareSmooth {
            ms_smoothness: real(case, "Lbar"),
            gap: real(case, "Delta"),
            growth: real(case, "B"),
            floor: real(case, "b"),
            target: real(case, "eps"),
        };
        let bound = limit.evaluate().unwrap();
        check_lower(&bound, out);
        close(bound.effective_smoothness, real(out, "L_eff"));
        close(limit.growth_limit(), real(out, "B_max"));
        close(limit.statistical_floor(), real(out, "stat_floor"));
    });
}

/// A quadratic whose answers are perturbed by a fixed cycle of vectors, one a step.
fn scripted(curvature: Vec<f64>, cycle: Vec<Vec<f64>>) -> impl Oracle {
    let about = About { trusted: true, ..About::stream(curvature.len(), "scripted") };
    let answer = move |request: &Request<'_>, answer: &mut Answer<'_>| {
        let (Draw::Batch(batch), Form::Sums) = (&request.draw, request.form) else {
            return Err(OracleError::new("p = 1 never corrects"));
        };
        let (x, noise) = (request.points[0], &cycle[batch.step as usize % cycle.len()]);
        for i in 0..x.len() {
            answer.gradients[i] = batch.count() as f64 * (curvature[i] * x[i] + noise[i]);
        }
        Ok(())
    };
    Made { about, answer }
}

#[test]
fn the_scripted_trace_matches_the_reference() {
    let golden = golden();
    let list =
        |value: &Value| value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>();
    let near = |ours: &[f64], reference: &Value| {
        for (a, b) in ours.iter().zip(list(reference)) {
            // A step is a handful of roundings of numbers of order one, fifteen steps contract.
            assert!((a - b).abs() <= 4e-15, "{a} is not {b}");
        }
    };
    for trace in golden["traces"].as_array().unwrap() {
        let cycle = trace["noise_cycle"].as_array().unwrap().iter().map(list).collect();
        let mut gate = Gate::new(scripted(list(&trace["hess_diag"]), cycle), 1);
        let parameters = &trace["params"];
        let schedule = Schedule {
            epochs: parameters["S"].as_u64().unwrap(),
            steps: parameters["K"].as_u64().unwrap(),
            eta: Sequence::Constant(real(parameters, "eta")),
            beta: Sequence::Constant(real(parameters, "beta")),
            estimator: Estimator::Page {
                refresh: Sequence::Constant(real(parameters, "p")),
                small: parameters["small_b"].as_u64().unwrap(),
            },
            first: BatchRule::Fixed(10),
            large: BatchRule::Fixed(7),
            output: Output::Average,
        };
        let mut run = Pasta::start(&gate, schedule, &list(&trace["x0"])).unwrap();
        let mut anchors = trace["anchors"].as_array().unwrap().iter();
        for line in trace["log"].as_array().unwrap() {
            assert_eq!(
                (run.state().epoch, run.state().t),
                (line["s"].as_u64().unwrap(), line["t"].as_u64().unwrap())
            );
            near(&run.state().x, &line["x"]);
            if run.state().t == 0 {
                near(&run.state().x, anchors.next().unwrap());
            }
            assert!(matches!(run.advance(&mut gate).unwrap(), Advance::Step(_)));
            near(&run.state().g, &line["g"]);
        }
        near(&run.state().x, anchors.next().unwrap());
        let end = run.finish(&mut gate).unwrap();
        near(&end.point, &trace["ergodic_average_last_epoch"]);
        assert_eq!(end.ledger.samples(), u128::from(trace["samples"].as_u64().unwrap()));
        assert_eq!(end.ledger.evaluations(), u128::from(trace["gradient_evaluations"].as_u64().unwrap()));
        assert_eq!(end.stop, Stop::PlannedEnd);
    }
}

fn hard_instance(case: &Value) -> HardInstance {
    let settings = &case["settings"];
    let [l, gap, growth, floor, target] = ["L", "Delta", "B", "b", "eps"].map(|key| real(settings, key));
    let instance = match case["kind"].as_str().unwrap() {
        "smooth" => HardInstance::smooth(LowerSmooth { smoothness: l, gap, growth, floor, target }),
        _ => HardInstance::mean_square_smooth(LowerMeanSquareSmooth {
            ms_smoothness: l,
            gap,
            growth,
            floor,
            target,
        }),
    };
    instance.unwrap()
}

fn list(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Equal to 1e-12 of the largest entry. The first entry holds a difference of numbers of the size of the chain's
/// supremum; the reference says how many digits that leaves.
fn near_gradient(ours: &[f64], reference: &Value, first_tolerance: f64) {
    let reference = list(reference);
    let largest = reference.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    assert_eq!(ours.len(), reference.len());
    for (i, (a, b)) in ours.iter().zip(&reference).enumerate() {
        let tolerance = if i == 0 { first_tolerance.max(1e-12 * largest) } else { 1e-12 * largest };
        assert!((a - b).abs() <= tolerance, "entry {i}: {a:?} is not {b:?}");
    }
}

#[test]
fn the_hard_instances_match_the_reference() {
    for case in golden()["hard_instances"].as_array().unwrap() {
        let instance = hard_instance(case);
        let bound = instance.bound();
        assert_eq!(bound.chain, case["T"].as_u64().unwrap());
        close(bound.p, real(case, "p"));
        close(bound.lambda, real(case, "lam"));
        close(bound.effective_smoothness, real(case, "L_eff"));
        close(instance.shift(), real(case, "shift_sup"));
        for point in case["points"].as_array().unwrap() {
            let y = list(&point["y"]);
            let x: Vec<f64> = std::iter::once(real(point, "u")).chain(y.iter().copied()).collect();
            let tolerance = real(point, "abs_tol_u");
            let mut out = vec![0.0; x.len()];
            close(instance.base_value(&y), real(point, "Fbar"));
            assert!((instance.value(&x) - real(point, "value")).abs() <= 1e-13);
            instance.gradient(&x, &mut out);
            near_gradient(&out, &point["grad"], tolerance);
            for (z, key) in [(0.0, "stoch_z0"), (1.0, "stoch_z1"), (0.375, "stoch_zbar_0p375")] {
                instance.stochastic_gradient(&x, z, &mut out);
                near_gradient(&out, &point[key], tolerance);
            }
            for (ours, reference) in instance.mask_at(&y).iter().zip(list(&point["mask"])) {
                // The smooth step has slope up to 6 and is itself a quotient of integrals.
                assert!((ours - reference).abs() <= 1e-13, "{ours} is not {reference}");
            }
            for (threshold, key) in [(0.25, "prog_quarter"), (0.5, "prog_half"), (1.0, "prog_one")] {
                assert_eq!(instance.progress(&y, threshold) as u64, point[key].as_u64().unwrap());
            }
        }
        let rotation = &case["rotation"];
        let (d, t) = (rotation["d"].as_u64().unwrap() as usize, bound.chain as usize);
        // U = the first T columns of I - 2 w w'/|w|^2, w = (1, 2, .., d).
        let w = |i: usize| i as f64 + 1.0;
        let norm2: f64 = (0..d).map(|i| w(i) * w(i)).sum();
        let columns = (0..t).flat_map(|j| (0..d).map(move |i| (i, j)));
        let entries = columns.map(|(i, j)| f64::from(u8::from(i == j)) - 2.0 * w(i) * w(j) / norm2).collect();
        let rotated = instance.rotated(Rotation::from_columns(d, t, entries).unwrap()).unwrap();
        let x = list(&rotation["x"]);
        let mut out = vec![0.0; x.len()];
        rotated.gradient(&x, &mut out);
        assert!((rotated.value(&x) - real(rotation, "value")).abs() <= 1e-13);
        near_gradient(&out, &rotation["grad"], 3e-13);
    }
}
