//! The constants that each problem states about itself hold, and none can be improved.
//!
//! Every law runs over every row of the table; a new row needs only its settings in `settings`.

use pasta_opt::draws::{Address, Role, Stream};
use pasta_opt::objective::Objective;
use pasta_opt::problems::{
    Clover, KinkedWell, Parameters, ProblemError, Ramp, SineBowl, TABLE, Value, build,
};

type Problem = Box<dyn Objective>;

/// A few parameter settings of one problem.
fn settings(name: &str) -> Vec<Parameters> {
    let dimensions = |list: [f64; 2]| list.map(|d| Parameters::from([("dimension", d.into())])).to_vec();
    let ramp = |slope: f64, reach: f64, curvature: f64| {
        Parameters::from([("slope", slope.into()), ("reach", reach.into()), ("curvature", curvature.into())])
    };
    let huber = |d: f64, h: f64, g: f64| {
        Parameters::from([("dimension", d.into()), ("curvature", h.into()), ("lipschitz", g.into())])
    };
    match name {
        "quadratic" => [
            vec![1.0],
            vec![4.0, 1.0, 0.25],
            vec![2.0, 0.0, 1.0],
            (1..=20).map(|i| 0.1 * f64::from(i)).collect(),
        ]
        .map(|spectrum| Parameters::from([("spectrum", spectrum.into())]))
        .to_vec(),
        "ramp" => vec![ramp(0.2, 2.5, 0.5), ramp(3.0, 0.0, 4.0)],
        "huber" => vec![huber(1.0, 16.0, 1.0), huber(4.0, 0.5, 2.0)],
        "clover" => [0.05, 0.3, 0.9].map(|a| Parameters::from([("depth", a.into())])).to_vec(),
        "sine-bowl" | "soft-absolute" | "kinked-well" | "wells" | "absolute" | "flat" => {
            dimensions([1.0, 3.0])
        }
        other => panic!("the tests have no settings for {other}"),
    }
}

/// Every problem of the table in every setting.
fn problems() -> Vec<Problem> {
    TABLE
        .iter()
        .flat_map(|row| {
            settings(row.name).into_iter().map(|given| row.build(&given).expect("the settings are in range"))
        })
        .collect()
}

fn stream(step: u64) -> Stream {
    Address { seed: 20, role: Role::Setup, step, sample: 0 }.stream()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

/// x + t v.
fn along(x: &[f64], t: f64, v: &[f64]) -> Vec<f64> {
    x.iter().zip(v).map(|(x, v)| x + t * v).collect()
}

fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    along(x, -1.0, y)
}

fn gradient(f: &Problem, x: &[f64]) -> Vec<f64> {
    let mut g = vec![f64::NAN; x.len()];
    f.gradient(x, &mut g);
    g
}

fn nearest(f: &Problem, x: &[f64]) -> Vec<f64> {
    let mut out = vec![f64::NAN; x.len()];
    assert!(f.nearest_minimiser(x, &mut out), "{}", f.identity());
    out
}

/// A direction of length one: any, or along an axis.
fn direction(d: usize, draws: &mut Stream) -> Vec<f64> {
    let v: Vec<f64> = if draws.bernoulli(0.5) {
        (0..d).map(|_| draws.normal()).collect()
    } else {
        let axis = draws.below(d as u64) as usize;
        let sign = if draws.bernoulli(0.5) { 1.0 } else { -1.0 };
        (0..d).map(|i| if i == axis { sign } else { 0.0 }).collect()
    };
    let length = norm(&v);
    v.iter().map(|v| v / length).collect()
}

/// Between 10^-3 and 10^3, evenly in the logarithm.
fn scale(draws: &mut Stream) -> f64 {
    1e-3 * 1e6f64.powf(draws.uniform())
}

/// Points near and far, on the axes and the diagonals, the origin and minimisers (where the kinks are).
fn points(f: &Problem, step: u64) -> Vec<Vec<f64>> {
    let (d, mut draws) = (f.dim(), stream(step));
    let mut points = vec![vec![0.0; d]];
    for _ in 0..1500 {
        let size = scale(&mut draws);
        points.push(direction(d, &mut draws).iter().map(|v| size * v).collect());
    }
    for i in 1..800 {
        let t = 0.0125 * f64::from(i - 400);
        points.push(vec![t; d]);
        points.extend((0..d).map(|axis| (0..d).map(|j| if j == axis { t } else { 0.0 }).collect()));
    }
    let minimisers: Vec<_> = points.iter().step_by(40).map(|x| nearest(f, x)).collect();
    points.extend(minimisers);
    points
}

/// Pairs of points, near to each other and far.
fn pairs(f: &Problem, step: u64) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut draws = stream(step + 1_000_000);
    points(f, step)
        .into_iter()
        .map(|x| {
            let size = scale(&mut draws);
            let y = along(&x, size, &direction(f.dim(), &mut draws));
            (x, y)
        })
        .collect()
}

/// Rounding allowance for a sum of terms of these sizes: a thousand roundings of the largest.
fn slack(sizes: &[f64]) -> f64 {
    2e-13 * sizes.iter().fold(1e-10, |largest: f64, size| largest.max(size.abs()))
}

#[test]
fn gradients_agree_with_central_differences_away_from_kinks() {
    for (k, f) in problems().iter().enumerate() {
        let (mut checked, mut draws) = (0, stream(k as u64 + 500));
        // A slope that moves at rate L puts a central difference off by at most L h/2. The problems with
        // kinks have curvatures up to 1 beside them.
        let (h, rate) = (1e-6, f.facts().smoothness.unwrap_or(1.0));
        for x in points(f, k as u64) {
            let v = direction(f.dim(), &mut draws);
            let (ahead, behind) = (along(&x, h, &v), along(&x, -h, &v));
            if norm(&difference(&gradient(f, &ahead), &gradient(f, &behind))) > 1e-3 {
                continue;
            }
            let (above, below) = (f.value(&ahead), f.value(&behind));
            let slope = (above - below) / (2.0 * h);
            // Rounding of x + h v moves f by |grad f| eps |x|; rounding of f by eps |f|.
            let g = gradient(f, &x);
            let rounding = 1e-15 * (above.abs() + norm(&g) * norm(&x)) / h;
            checked += 1;
            let off = (slope - dot(&g, &v)).abs();
            assert!(off <= 0.5 * rate * h + rounding + 1e-12, "{} at {x:?}: off by {off}", f.identity());
        }
        assert!(checked > 1000, "{}: only {checked} points are away from kinks", f.identity());
    }
}

#[test]
fn subgradients_support_f_plus_rho_half_x_squared() {
    for (k, f) in problems().iter().enumerate() {
        let rho = f.facts().weak_convexity.expect("every problem of the table is weakly convex");
        for (x, y) in pairs(f, k as u64) {
            let (g, step) = (gradient(f, &x), difference(&y, &x));
            let (fx, fy, line, bend) =
                (f.value(&x), f.value(&y), dot(&g, &step), 0.5 * rho * dot(&step, &step));
            // The last two sizes: g and the step are themselves rounded, relative to g and to x.
            let sizes = [fx, fy, line, bend, norm(&g) * norm(&step), norm(&g) * norm(&x)];
            assert!(fy + bend >= fx + line - slack(&sizes), "{} at {x:?}, {y:?}", f.identity());
        }
    }
}

#[test]
fn no_smaller_rho_makes_the_others_convex() {
    let mut stated = 0;
    for (k, f) in problems().iter().enumerate() {
        let rho = f.facts().weak_convexity.unwrap();
        if rho == 0.0 {
            continue;
        }
        stated += 1;
        let broken = pairs(f, k as u64).into_iter().any(|(x, y)| {
            let step = difference(&y, &x);
            let bent = f.value(&y) + 0.45 * rho * dot(&step, &step);
            let line = f.value(&x) + dot(&gradient(f, &x), &step);
            // For steps of this size |step|^2 is far above rounding.
            norm(&step) > 1e-3 * norm(&x) && line > bent + 1e-3 * rho * dot(&step, &step)
        });
        assert!(broken, "{}", f.identity());
    }
    assert_eq!(stated, 2 + 2 + 2 + 2, "sine-bowl, kinked-well, wells and the two deep clovers");
}

#[test]
fn gradients_move_at_most_at_rate_l_and_some_pair_at_nine_tenths_of_it() {
    for (k, f) in problems().iter().enumerate() {
        let Some(smoothness) = f.facts().smoothness else { continue };
        let mut steepest: f64 = 0.0;
        for (x, y) in pairs(f, k as u64) {
            let (gx, gy) = (gradient(f, &x), gradient(f, &y));
            let (moved, distance) = (norm(&difference(&gx, &gy)), norm(&difference(&x, &y)));
            // The points are doubles, but y - x and the gradients round.
            let rounding = slack(&[norm(&gx), norm(&gy), smoothness * norm(&x)]);
            assert!(moved <= smoothness * distance + rounding, "{} at {x:?}, {y:?}", f.identity());
            steepest = steepest.max((moved - rounding) / distance);
        }
        assert!(steepest >= 0.9 * smoothness || smoothness == 0.0, "{}: {steepest}", f.identity());
    }
}

#[test]
fn problems_without_l_have_gradients_that_jump() {
    let mut kinked = 0;
    for f in problems().iter().filter(|f| f.facts().smoothness.is_none()) {
        // All of them jump across a minimiser: by at least 1/2 over d, in a distance of 10^-6.
        let x = nearest(f, &vec![1.0; f.dim()]);
        let mut e = vec![0.0; f.dim()];
        e[0] = 1e-6;
        let jump = norm(&difference(&gradient(f, &along(&x, 1.0, &e)), &gradient(f, &along(&x, -1.0, &e))));
        assert!(jump > 0.1, "{}: {jump}", f.identity());
        kinked += 1;
    }
    assert_eq!(kinked, 6, "kinked-well, wells and absolute, two settings each");
}

#[test]
fn subgradients_are_at_most_g_and_some_reach_nine_tenths_of_it() {
    for (k, f) in problems().iter().enumerate() {
        let longest = points(f, k as u64)
            .iter()
            .map(|x| norm(&gradient(f, x)))
            .fold(0.0, |longest: f64, g| longest.max(g));
        match f.facts().lipschitz {
            Some(g) => assert!(
                longest <= g * (1.0 + 1e-15 * 4.0) && longest >= 0.9 * g,
                "{}: {longest}",
                f.identity()
            ),
            // Quadratic growth: far out the gradient passes any bound.
            None => assert!(norm(&gradient(f, &vec![1e6; f.dim()])) > 1e4, "{}", f.identity()),
        }
    }
}

#[test]
fn the_pl_inequality_holds_and_is_within_two_percent_of_tight() {
    let mut stated = 0;
    for (k, f) in problems().iter().enumerate() {
        let Some(mu) = f.facts().pl else { continue };
        stated += 1;
        let ratios = points(f, k as u64).into_iter().filter(|x| norm(x) > 0.0).map(|x| {
            let g = gradient(f, &x);
            dot(&g, &g) / (2.0 * f.gap(&x))
        });
        let smallest = ratios.fold(f64::INFINITY, f64::min);
        // Ten roundings of a quotient of order mu.
        assert!(smallest >= mu * (1.0 - 2e-15) && smallest <= 1.02 * mu, "{}: {smallest}", f.identity());
    }
    assert_eq!(stated, 3 + 2 + 3, "three quadratics, two sine bowls, three clovers");
}

#[test]
fn star_convexity_holds_and_is_within_two_percent_of_tight() {
    let mut stated = 0;
    for (k, f) in problems().iter().enumerate() {
        let Some(mu) = f.facts().star else { continue };
        stated += 1;
        let ratios = points(f, k as u64).into_iter().filter(|x| norm(x) > 0.0).map(|x| {
            let step = difference(&x, &nearest(f, &x));
            2.0 * (dot(&gradient(f, &x), &step) - f.gap(&x)) / dot(&step, &step)
        });
        let smallest = ratios.fold(f64::INFINITY, f64::min);
        // The difference is of order L |x|^2 and L <= 73 mu here.
        assert!(smallest >= mu * (1.0 - 1e-13) && smallest <= 1.02 * mu, "{}: {smallest}", f.identity());
    }
    assert_eq!(stated, 3 + 3, "three quadratics and three clovers");
}

#[test]
fn the_sine_bowl_is_not_star_convex() {
    let (bowl, x) = (SineBowl { dimension: 1 }, [2.1]);
    let mut g = [0.0];
    bowl.gradient(&x, &mut g);
    // Star-convexity needs x f' >= f + mu/2 x^2 for some mu > 0.
    assert!(x[0] * g[0] < 0.9 * bowl.value(&x));
}

#[test]
fn the_pl_constant_of_the_sine_bowl_is_the_stated_four_digits() {
    // 40-digit arithmetic: the minimum .2525794464399920840 at x = 2.1646915325079594.
    let bowl = SineBowl { dimension: 1 };
    let mut smallest = f64::INFINITY;
    for i in 1..=400_000 {
        let (x, mut g) = ([1e-5 * f64::from(i)], [0.0]);
        bowl.gradient(&x, &mut g);
        smallest = smallest.min(g[0] * g[0] / (2.0 * bowl.value(&x)));
    }
    // The grid misses the minimiser by at most 5e-6, where the quotient (curvature 1.5) is off by 2e-11.
    assert!((smallest - 0.252_579_446_44).abs() < 1e-10, "{smallest}");
    assert!(bowl.facts().pl.unwrap() <= smallest);
}

#[test]
fn a_deep_clover_is_not_convex_and_a_shallow_one_is() {
    assert!(Clover { depth: 0.14 }.facts().is_convex());
    let clover = Clover { depth: 0.3 };
    assert!(!clover.facts().is_convex());
    // Across the axis, where the Hessian is 1 - 7a.
    let (middle, ends) = (clover.value(&[1.0, 0.0]), clover.value(&[1.0, 0.1]) + clover.value(&[1.0, -0.1]));
    assert!(middle > 0.5 * ends);
}

#[test]
fn the_clover_is_stationary_at_the_origin_and_scales_without_overflow() {
    let clover = Clover { depth: 0.5 };
    let at = |x: [f64; 2]| {
        let mut g = [f64::NAN; 2];
        clover.gradient(&x, &mut g);
        g
    };
    assert_eq!(at([0.0, 0.0]), [0.0, 0.0]);
    let unit = at([1.0, 0.5]);
    // Homogeneous of degree one, and powers of two scale without rounding.
    for power in [-1000, -500, 500, 1000] {
        let size = 2f64.powi(power);
        assert_eq!(at([size, 0.5 * size]), unit.map(|g| g * size), "2^{power}");
    }
}

#[test]
fn the_infimum_is_below_every_value_and_the_nearest_minimiser_attains_it() {
    for (k, f) in problems().iter().enumerate() {
        for x in points(f, k as u64) {
            assert!(f.gap(&x) >= 0.0, "{} at {x:?}", f.identity());
            let x_star = nearest(f, &x);
            // A point on the sphere of kinks is rounded, and f falls to it at slope 1/2.
            assert!(f.gap(&x_star) <= 2e-16, "{}: {x_star:?}", f.identity());
        }
    }
}

#[test]
fn no_other_minimiser_is_nearer() {
    for (k, f) in problems().iter().enumerate() {
        let all = points(f, k as u64);
        let mut minimisers: Vec<_> = all.iter().step_by(20).map(|x| nearest(f, x)).collect();
        // And those that were not found by asking.
        minimisers.extend(all.iter().filter(|x| f.gap(x) == 0.0).step_by(20).cloned());
        for x in all.iter().step_by(7) {
            let distance = f.distance_to_minimiser(x).unwrap();
            for other in &minimisers {
                assert!(
                    distance <= norm(&difference(x, other)) + slack(&[norm(x), norm(other)]),
                    "{} at {x:?}",
                    f.identity()
                );
            }
        }
    }
}

/// lambda just above rho, and from there to a thousand times as much.
fn lambdas(rho: f64) -> [f64; 6] {
    [rho + 1e-6, rho + 1e-2, rho + 0.5, 1.5 * rho + 1.0, 6.0 * rho + 3.0, 1000.0 * rho + 1000.0]
}

#[test]
fn the_prox_minimises_its_strongly_convex_function() {
    for (k, f) in problems().iter().enumerate() {
        let rho = f.facts().weak_convexity.unwrap();
        let mut draws = stream(k as u64 + 700);
        for lambda in lambdas(rho) {
            for x in points(f, k as u64).iter().step_by(5) {
                let mut p = vec![f64::NAN; x.len()];
                assert!(f.prox(lambda, x, &mut p), "{} for lambda = {lambda}", f.identity());
                let penalised = |y: &[f64]| {
                    let step = difference(y, x);
                    f.value(y) + 0.5 * lambda * dot(&step, &step)
                };
                let lowest = penalised(&p);
                let mut others: Vec<_> =
                    (0..4).map(|_| along(&p, scale(&mut draws), &direction(f.dim(), &mut draws))).collect();
                others.push(x.clone());
                for z in &others {
                    let away = difference(z, &p);
                    let rise = 0.5 * (lambda - rho) * dot(&away, &away);
                    // An error e of p costs (lambda + rho or L) e |z - p|, and e is rounding of p and x.
                    let bend = lambda + f.facts().smoothness.unwrap_or(rho);
                    let sizes = [lowest, penalised(z), bend * norm(&away) * norm(x)];
                    assert!(
                        penalised(z) >= lowest + rise - slack(&sizes),
                        "{} for lambda = {lambda} at {x:?}: {p:?} against {z:?}",
                        f.identity()
                    );
                }
            }
        }
    }
}

#[test]
fn the_prox_of_a_smooth_problem_solves_its_equation_to_rounding() {
    for (k, f) in problems().iter().enumerate() {
        let (Some(smoothness), Some(rho)) = (f.facts().smoothness, f.facts().weak_convexity) else {
            continue;
        };
        for lambda in lambdas(rho) {
            for x in points(f, k as u64).iter().step_by(3) {
                let mut p = vec![f64::NAN; x.len()];
                assert!(f.prox(lambda, x, &mut p));
                let residual = along(&gradient(f, &p), lambda, &difference(&p, x));
                // p is rounded relative to itself, to x, and to the minimiser that it is drawn to.
                let rounding = 1e-15 * (lambda + smoothness) * (norm(x) + norm(&p) + norm(&nearest(f, &p)));
                assert!(
                    norm(&residual) <= rounding,
                    "{}, lambda = {lambda}, {x:?}: {residual:?}",
                    f.identity()
                );
            }
        }
    }
}

#[test]
fn there_is_no_prox_for_lambda_up_to_rho() {
    for f in problems() {
        let rho = f.facts().weak_convexity.unwrap();
        let (x, mut out) = (vec![0.3; f.dim()], vec![0.0; f.dim()]);
        for lambda in [rho, 0.5 * rho, 0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!f.prox(lambda, &x, &mut out), "{} for lambda = {lambda}", f.identity());
        }
    }
}

#[test]
fn nan_in_is_nan_out() {
    for f in problems() {
        for i in 0..f.dim() {
            let mut x = vec![0.3; f.dim()];
            x[i] = f64::NAN;
            let mut p = vec![0.0; f.dim()];
            assert!(f.prox(100.0, &x, &mut p));
            let answers = [f.value(&x), gradient(&f, &x)[i], p[i]];
            assert!(answers.iter().all(|a| a.is_nan()), "{}: {answers:?}", f.identity());
        }
    }
}

#[test]
fn huge_and_tiny_points_give_numbers() {
    for f in problems() {
        let lambda = f.facts().weak_convexity.unwrap() + 1.0;
        for size in [1e300, 1e160, 1e-160, 1e-300, 5e-324] {
            for sign in [1.0, -1.0] {
                let x = vec![sign * size; f.dim()];
                let mut p = vec![f64::NAN; f.dim()];
                assert!(f.prox(lambda, &x, &mut p));
                let g = gradient(&f, &x);
                let finite = g.iter().chain(&p).chain(&nearest(&f, &x)).all(|a| a.is_finite());
                // A quadratic value overflows to infinity; it is never NaN.
                assert!(finite && !f.value(&x).is_nan(), "{} at {x:?}: {g:?}, {p:?}", f.identity());
                if let Some(bound) = f.facts().lipschitz {
                    assert!(norm(&g) <= bound * (1.0 + 4e-15), "{} at {x:?}: {g:?}", f.identity());
                }
            }
        }
    }
}

#[test]
fn a_million_coordinates_are_no_trouble() {
    let d = 1_000_000;
    for row in TABLE.iter().filter(|row| row.parameters.iter().any(|p| p.name == "dimension")) {
        let mut given = settings(row.name).remove(0);
        given.insert("dimension", d as f64);
        let f = row.build(&given).unwrap();
        let x = vec![0.75; d];
        assert!(f.dim() == d && f.value(&x).is_finite());
        assert!(gradient(&f, &x).iter().all(|g| g.is_finite()), "{}", row.name);
    }
}

#[test]
fn the_kinked_well_takes_zero_on_its_kink_and_at_its_centre() {
    let f: Problem = Box::new(KinkedWell { dimension: 2 });
    assert_eq!(gradient(&f, &[0.0, 0.5]), [0.0, 0.0]);
    assert_eq!(gradient(&f, &[0.0, 0.0]), [0.0, 0.0]);
    assert_eq!(nearest(&f, &[0.0, 0.0]), [0.5, 0.0]);
    assert_eq!(nearest(&f, &[0.0, -3.0]), [0.0, -0.5]);
}

#[test]
fn the_ramp_family_gains_its_gap_and_four_eps_squared_over_l() {
    for (smoothness, gap, target) in [(1.0, 1.0, 0.3), (4.0, 0.5, 0.025)] {
        let ramp = Ramp::family(smoothness, gap, target);
        let expected = gap + 4.0 * target * target / smoothness;
        // Three roundings.
        assert!((ramp.gap(&[0.0]) - expected).abs() <= 1e-15 * expected);
        assert_eq!(ramp.facts().smoothness, Some(0.5 * smoothness));
        assert_eq!(ramp.value(&[0.0]), 0.0);
        // The whole reach is farther than eps from stationary.
        let mut g = [0.0];
        ramp.gradient(&[ramp.reach], &mut g);
        assert_eq!(g, [-2.0 * target]);
    }
}

#[test]
fn different_problems_have_different_identities() {
    let mut identities: Vec<_> = problems().iter().map(|f| f.identity()).collect();
    // Parameters one rounding apart, in full and behind a checksum.
    for last in [0.1, 0.1f64.next_up()] {
        identities.push(build("clover", &Parameters::from([("depth", last.into())])).unwrap().identity());
        for length in [2, 100] {
            let mut spectrum = vec![1.0; length];
            spectrum[length - 1] = last;
            let given = Parameters::from([("spectrum", spectrum.into())]);
            identities.push(build("quadratic", &given).unwrap().identity());
        }
    }
    let count = identities.len();
    identities.sort();
    identities.dedup();
    assert_eq!(identities.len(), count);
}

#[test]
fn every_row_is_named_in_kebab_case_and_says_what_it_is() {
    for row in TABLE {
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", row.name);
        assert!(!row.formula.is_empty() && !row.formula.contains('\n'));
        assert!(row.parameters.iter().all(|p| !p.meaning.is_empty() && !p.needs.is_empty()));
        let built = row.build(&settings(row.name)[0]).unwrap();
        assert!(built.identity().starts_with(&format!("{}(", row.name)), "{}", built.identity());
    }
}

fn refusal(name: &str, given: Parameters) -> ProblemError {
    build(name, &given).expect_err("the request is wrong")
}

#[test]
fn an_unknown_problem_is_refused_with_the_known_names() {
    let known = "the problems are quadratic, sine-bowl, soft-absolute, ramp, huber, kinked-well, wells, \
                 absolute, clover, flat";
    let near = refusal("sine_bowl", Parameters::default());
    assert_eq!(
        near.to_string(),
        format!("no problem is called \"sine_bowl\" (did you mean \"sine-bowl\"?); {known}")
    );
    assert_eq!(near.parameter(), None);
    let far = refusal("rosenbrock", Parameters::default());
    assert_eq!(far.to_string(), format!("no problem is called \"rosenbrock\"; {known}"));
    let empty = refusal("", Parameters::default());
    assert_eq!(empty.to_string(), format!("no problem is called \"\"; {known}"));
}

#[test]
fn an_unknown_parameter_is_refused_with_the_accepted_ones() {
    let error = refusal("ramp", Parameters::from([("slop", 1.0.into())]));
    assert_eq!(error.to_string(), "ramp has no parameter \"slop\": it takes slope, reach, curvature");
    assert_eq!(error.parameter(), Some("slop"));
}

#[test]
fn a_missing_parameter_is_named_with_its_range() {
    let error = refusal("huber", Parameters::from([("curvature", 1.0.into())]));
    assert_eq!(
        error.to_string(),
        "huber needs lipschitz (G, the slope of the conical part), a finite number above 0"
    );
    assert_eq!(error.parameter(), Some("lipschitz"));
}

#[test]
fn a_parameter_out_of_range_is_refused_with_its_value() {
    let message = |name: &str, parameter: &str, value: Value| {
        let mut given = settings(name).remove(0);
        given.insert(parameter, value);
        let error = refusal(name, given);
        assert_eq!(error.parameter(), Some(parameter));
        error.to_string()
    };
    assert_eq!(
        message("ramp", "slope", (-1.0).into()),
        "ramp: slope must be a finite number above 0, but is -1.0"
    );
    assert_eq!(
        message("ramp", "reach", f64::NAN.into()),
        "ramp: reach must be a finite number, at least 0, but is NaN"
    );
    assert_eq!(
        message("clover", "depth", 1.0.into()),
        "clover: depth must be a number strictly between 0 and 1, but is 1.0"
    );
    for (wrong, shown) in [
        (Value::from(2.5), "2.5"),
        (0.0.into(), "0.0"),
        (1e300.into(), "1e300"),
        (f64::INFINITY.into(), "inf"),
    ] {
        assert_eq!(
            message("flat", "dimension", wrong),
            format!("flat: dimension must be a whole number from 1 to 1e9, but is {shown}")
        );
    }
}

#[test]
fn a_list_for_a_number_and_a_number_for_a_list_are_refused() {
    let list = refusal("wells", Parameters::from([("dimension", vec![1.0, 2.0].into())]));
    assert_eq!(
        list.to_string(),
        "wells: dimension must be a whole number from 1 to 1e9, but is the list [1.0, 2.0]"
    );
    let needs = "quadratic: spectrum must be a list of finite numbers, none below 0 and at least one above 0";
    let spectrum = |value: Value| refusal("quadratic", Parameters::from([("spectrum", value)])).to_string();
    assert_eq!(spectrum(3.0.into()), format!("{needs}, but is 3.0"));
    assert_eq!(spectrum(vec![].into()), format!("{needs}, but is the list []"));
    assert_eq!(spectrum(vec![0.0, 0.0].into()), format!("{needs}, but is the list [0.0, 0.0]"));
    let mut long = vec![1.0; 100];
    long[7] = -0.5;
    assert_eq!(
        spectrum(long.clone().into()),
        format!("{needs}, but is a list of 100 numbers from -0.5 to 1.0")
    );
    long[8] = f64::NAN;
    assert_eq!(spectrum(long.into()), format!("{needs}, but is a list of 100 numbers from -0.5 to NaN"));
}

#[test]
fn parameters_read_from_json_as_numbers_and_lists() {
    let given: Parameters =
        serde_json::from_str(r#"{"dimension": 2, "curvature": 0.5, "lipschitz": 1}"#).unwrap();
    assert_eq!(
        build("huber", &given).unwrap().identity(),
        "huber(dimension = 2, curvature = 0.5, lipschitz = 1.0)"
    );
    let given: Parameters = serde_json::from_str(r#"{"spectrum": [1, 0.5]}"#).unwrap();
    assert_eq!(build("quadratic", &given).unwrap().identity(), "quadratic(spectrum = [1.0, 0.5])");
}
