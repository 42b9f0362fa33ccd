//! Every kind of term: its prox against an independent minimiser, the laws of proxes, its domain, its form in files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, SolverStatus,
    SupportedConeT::{self, NonnegativeConeT, SecondOrderConeT, ZeroConeT},
};
use pasta_opt::term::{
    KINDS, Numbers, Outside, Steps, Term, TermError, TermSpec, check_laws, metric_prox, of_specs,
};

/// Splitmix64: plain numbers, the same on every machine.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Often a round number, so that ties and points on boundaries occur.
    fn number(&mut self, size: f64) -> f64 {
        match self.below(4) {
            0 => (self.below(5) as f64 - 2.0) * size / 2.0,
            1 if self.below(2) == 0 => -0.0,
            _ => self.uniform(-size, size),
        }
    }

    fn numbers(&mut self, n: usize, size: f64) -> Vec<f64> {
        (0..n).map(|_| self.number(size)).collect()
    }

    /// One weight or n of them, some 0.
    fn weights(&mut self, n: usize, least: f64) -> Numbers {
        let n = if self.below(2) == 0 { 1 } else { n.max(1) };
        let mut one = || if self.below(4) == 0 { least } else { self.uniform(least, 2.0) };
        Numbers((0..n).map(|_| one()).collect())
    }

    /// A spec of a kind for `dim` coordinates.
    fn spec(&mut self, kind: &str, dim: usize) -> TermSpec {
        let mut spec = TermSpec { kind: kind.into(), ..TermSpec::default() };
        match kind {
            "box" => {
                let lower: Vec<f64> = self.numbers(dim, 1.0);
                let upper = lower.iter().map(|l| l + [0.0, 0.5, f64::INFINITY][self.below(3)]).collect();
                let open = |l: &f64, n: usize| if n == 0 { f64::NEG_INFINITY } else { *l };
                spec.lower = Some(Numbers(lower.iter().map(|l| open(l, self.below(4))).collect()));
                spec.upper = Some(Numbers(upper));
            }
            "l1" => spec.weight = Some(self.weights(dim, 0.0)),
            "elastic-net" => {
                spec.l1 = Some(self.weights(dim, 0.0));
                spec.l2 = Some(self.weights(dim, 0.0));
            }
            "log" => spec.weight = Some(self.weights(dim, 0.1)),
            "ball" => {
                spec.radius = Some([0.0, 0.5, 2.0][self.below(3)]);
                spec.centre = (self.below(2) == 0).then(|| Numbers(self.numbers(dim, 2.0)));
            }
            "simplex" => spec.total = Some([0.01, 1.0, 7.5][self.below(3)]),
            "group-l2" => {
                let mut groups = vec![Vec::new(); 1 + self.below(3)];
                let n = groups.len() + 1;
                // Some coordinates in no group, some groups empty.
                (0..dim).for_each(|i| {
                    if let Some(group) = groups.get_mut(self.below(n)) {
                        group.push(i);
                    }
                });
                spec.weight = Some(self.weights(groups.len(), 0.0));
                spec.groups = Some(groups);
            }
            "total-variation" => spec.weight = Some(self.weights(dim - 1, 0.0)),
            "polyhedron" => {
                // Around a point, so that it is not empty.
                let inside = self.numbers(dim, 1.0);
                let at = |row: &Vec<f64>| row.iter().zip(&inside).map(|(a, x)| a * x).sum::<f64>();
                let mut rows =
                    |n: usize| -> Vec<Vec<f64>> { (0..n).map(|_| self.numbers(dim, 1.0)).collect() };
                let a = rows(4);
                let equal = rows(usize::from(dim > 2));
                spec.b = Some(a.iter().map(|row| at(row) + [0.0, 0.5][self.below(2)]).collect());
                spec.b_equal = Some(equal.iter().map(at).collect());
                (spec.a, spec.a_equal) = (Some(a), Some(equal));
            }
            _ => {}
        }
        spec
    }
}

/// h(z) + sum (z_i - v_i)^2/(2 gamma_i).
fn objective(term: &dyn Term, gammas: &[f64], v: &[f64], z: &[f64]) -> f64 {
    let squares = z.iter().zip(v).zip(gammas).map(|((z, v), gamma)| (z - v).powi(2) / (2.0 * gamma));
    term.value(z) + squares.sum::<f64>()
}

/// A conic program, row by row.
#[derive(Default)]
struct Program {
    curvature: Vec<f64>,
    cost: Vec<f64>,
    rows: Vec<(Vec<(usize, f64)>, f64)>,
    cones: Vec<SupportedConeT<f64>>,
}

impl Program {
    fn variable(&mut self, cost: f64) -> usize {
        self.curvature.push(0.0);
        self.cost.push(cost);
        self.cost.len() - 1
    }

    /// side - row z is in the cone.
    fn row(&mut self, row: Vec<(usize, f64)>, side: f64) {
        self.rows.push((row, side));
    }

    fn at_most(&mut self, row: Vec<(usize, f64)>, side: f64) {
        self.row(row, side);
        self.cones.push(NonnegativeConeT(1));
    }

    /// A variable at the given cost that is at least |row z|.
    fn absolute(&mut self, row: Vec<(usize, f64)>, cost: f64) {
        let t = self.variable(cost);
        for sign in [1.0, -1.0] {
            let mut row: Vec<_> = row.iter().map(|&(i, a)| (i, sign * a)).collect();
            row.push((t, -1.0));
            self.at_most(row, 0.0);
        }
    }

    fn solve(self) -> Vec<f64> {
        let (m, n) = (self.rows.len(), self.cost.len());
        let (mut starts, mut at, mut values) = (vec![0], Vec::new(), Vec::new());
        for j in 0..n {
            for (i, (row, _)) in self.rows.iter().enumerate() {
                let sum: f64 = row.iter().filter(|(k, _)| *k == j).map(|(_, a)| a).sum();
                if sum != 0.0 {
                    at.push(i);
                    values.push(sum);
                }
            }
            starts.push(at.len());
        }
        let a = CscMatrix::new(m, n, starts, at, values);
        let p = CscMatrix::new(n, n, (0..=n).collect(), (0..n).collect(), self.curvature);
        let b: Vec<f64> = self.rows.iter().map(|(_, side)| *side).collect();
        // Tight tolerances give digits, and fail now and then.
        for tolerance in [1e-11, 1e-10, 1e-9, 1e-8] {
            let settings = DefaultSettings {
                verbose: false,
                tol_gap_abs: tolerance,
                tol_gap_rel: tolerance,
                tol_feas: tolerance,
                ..DefaultSettings::default()
            };
            let mut solver = DefaultSolver::new(&p, &self.cost, &a, &b, &self.cones, settings).unwrap();
            solver.solve();
            if solver.solution.status == SolverStatus::Solved {
                return solver.solution.x.clone();
            }
        }
        panic!("the reference has no answer");
    }
}

/// The prox by an interior point method, from the spec alone.
fn reference(spec: &TermSpec, gammas: &[f64], v: &[f64]) -> Vec<f64> {
    let dim = v.len();
    let of = |numbers: &Option<Numbers>, i: usize, default: f64| {
        numbers.as_ref().map_or(default, |n| if n.0.len() == 1 { n.0[0] } else { n.0[i] })
    };
    if spec.kind == "log" {
        // Its exponential cones are good for 4 digits only; a bisection of the derivative is good for all.
        let least = |i: usize| {
            let derivative = |z: f64| (z - v[i]) / gammas[i] - of(&spec.weight, i, 1.0) / z;
            let (mut low, mut high) = (0.0, 1e3);
            for _ in 0..200 {
                let middle = (low + high) / 2.0;
                *(if derivative(middle) < 0.0 { &mut low } else { &mut high }) = middle;
            }
            low
        };
        return (0..dim).map(least).collect();
    }
    let mut program = Program::default();
    for (v, gamma) in v.iter().zip(gammas) {
        let i = program.variable(-v / gamma);
        program.curvature[i] = 1.0 / gamma;
    }
    for i in 0..dim {
        let (lower, upper) = match spec.kind.as_str() {
            "box" => (of(&spec.lower, i, f64::NEG_INFINITY), of(&spec.upper, i, f64::INFINITY)),
            "non-negative" | "simplex" => (0.0, f64::INFINITY),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        };
        if upper.is_finite() {
            program.at_most(vec![(i, 1.0)], upper);
        }
        if lower.is_finite() {
            program.at_most(vec![(i, -1.0)], -lower);
        }
    }
    match spec.kind.as_str() {
        "l1" => (0..dim).for_each(|i| program.absolute(vec![(i, 1.0)], of(&spec.weight, i, 0.0))),
        "elastic-net" => (0..dim).for_each(|i| {
            program.absolute(vec![(i, 1.0)], of(&spec.l1, i, 0.0));
            program.curvature[i] += of(&spec.l2, i, 0.0);
        }),
        "ball" => {
            program.row(vec![], spec.radius.unwrap());
            (0..dim).for_each(|i| program.row(vec![(i, -1.0)], -of(&spec.centre, i, 0.0)));
            program.cones.push(SecondOrderConeT(dim + 1));
        }
        "simplex" => {
            program.row((0..dim).map(|i| (i, 1.0)).collect(), spec.total.unwrap());
            program.cones.push(ZeroConeT(1));
        }
        "group-l2" => {
            for (g, group) in spec.groups.as_ref().unwrap().iter().enumerate() {
                let t = program.variable(of(&spec.weight, g, 0.0));
                program.row(vec![(t, -1.0)], 0.0);
                group.iter().for_each(|&i| program.row(vec![(i, -1.0)], 0.0));
                program.cones.push(SecondOrderConeT(group.len() + 1));
            }
        }
        "total-variation" => (0..dim - 1)
            .for_each(|i| program.absolute(vec![(i + 1, 1.0), (i, -1.0)], of(&spec.weight, i, 0.0))),
        "polyhedron" => {
            let rows = |a: &Option<Vec<Vec<f64>>>, b: &Option<Vec<f64>>| -> Vec<(Vec<(usize, f64)>, f64)> {
                let entries = |row: &Vec<f64>| row.iter().copied().enumerate().collect();
                a.iter().flatten().map(entries).zip(b.iter().flatten().copied()).collect()
            };
            for (row, side) in rows(&spec.a, &spec.b) {
                program.at_most(row, side);
            }
            for (row, side) in rows(&spec.a_equal, &spec.b_equal) {
                program.row(row, side);
                program.cones.push(ZeroConeT(1));
            }
        }
        _ => {}
    }
    let mut z = program.solve();
    z.truncate(dim);
    z
}

/// Calls `law` for `times` random specs of every kind, 1 to 8 coordinates, with steps of both forms.
fn over_all_kinds(
    seed: u64,
    times: usize,
    mut law: impl FnMut(&mut Random, &TermSpec, &dyn Term, &[f64], Steps<'_>),
) {
    for kind in KINDS {
        let mut random = Random(seed);
        for _ in 0..times {
            let dim = 1 + random.below(8);
            let spec = random.spec(kind.name, dim);
            let term = spec.term(dim).unwrap_or_else(|error| panic!("{spec:?}: {error}"));
            let one = 10f64.powf(random.uniform(-2.0, 1.5));
            let each: Vec<f64> = (0..dim).map(|_| 10f64.powf(random.uniform(-2.0, 1.5))).collect();
            if random.below(2) == 0 {
                law(&mut random, &spec, &*term, &vec![one; dim], Steps::One(one));
            } else {
                law(&mut random, &spec, &*term, &each, Steps::Each(&each));
            }
        }
    }
}

fn proxed(term: &dyn Term, steps: Steps<'_>, v: &[f64]) -> Vec<f64> {
    let mut z = v.to_vec();
    term.prox(steps, &mut z);
    z
}

#[test]
fn every_prox_agrees_with_an_interior_point_method() {
    over_all_kinds(1, 400, |random, spec, term, gammas, steps| {
        let v = random.numbers(gammas.len(), 4.0);
        let z = proxed(term, steps, &v);
        let other = reference(spec, gammas, &v);
        let size = 1.0 + v.iter().chain(gammas).fold(0.0, |most: f64, v| most.max(v.abs()));
        for (z, other) in z.iter().zip(&other) {
            // Its gap of 1e-8 or less leaves the square root of that in the point, times the steps' size.
            assert!((z - other).abs() <= 1e-4 * size, "{spec:?} {steps:?} v {v:?}: {z} or {other}");
        }
        if term.outside(&other).is_none() {
            let (ours, theirs) = (objective(term, gammas, &v, &z), objective(term, gammas, &v, &other));
            assert!(
                ours <= theirs + 1e-9 * (1.0 + theirs.abs()),
                "{spec:?} {steps:?} v {v:?}: {ours} above {theirs}"
            );
        }
    });
}

#[test]
fn every_prox_ends_in_the_domain_and_is_finite() {
    let extremes = [0.0, -0.0, 1e300, -1e300, 1e-300, f64::MAX, f64::MIN, 1.0, 1e16, -1e16];
    let steps = [1e-300, 1e-12, 1.0, 1e12, 1e300];
    over_all_kinds(2, 1_000, |random, spec, term, gammas, usual| {
        let dim = gammas.len();
        let v: Vec<f64> = match random.below(3) {
            0 => (0..dim).map(|_| extremes[random.below(extremes.len())]).collect(),
            1 => vec![extremes[random.below(extremes.len())]; dim],
            _ => random.numbers(dim, 1e3),
        };
        // A quadratic program has no answer for points 1e300 away.
        let v = if spec.kind == "polyhedron" { v.iter().map(|v| v.clamp(-1e8, 1e8)).collect() } else { v };
        let extreme: Vec<f64> = (0..dim).map(|_| steps[random.below(steps.len())]).collect();
        let one = Steps::One(extreme[0]);
        let each = Steps::Each(&extreme);
        let all = if spec.kind == "polyhedron" { [one, usual, usual] } else { [one, each, usual] };
        for steps in all {
            let z = proxed(term, steps, &v);
            assert!(z.iter().all(|z| z.is_finite()), "{spec:?} {steps:?} v {v:?}: {z:?}");
            assert_eq!(term.outside(&z), None, "{spec:?} {steps:?} v {v:?}: {z:?}");
            assert!(term.value(&z) < f64::INFINITY || v.iter().any(|v| v.abs() > 1e100), "{spec:?}: {z:?}");
        }
    });
}

#[test]
fn proxes_are_firmly_non_expansive() {
    over_all_kinds(3, 1_000, |random, spec, term, gammas, steps| {
        let [v, w] = [3.0, 3.0].map(|size| random.numbers(gammas.len(), size));
        let (z, y) = (proxed(term, steps, &v), proxed(term, steps, &w));
        let (mut lhs, mut rhs, mut scale) = (0.0, 0.0, 0.0);
        for (i, gamma) in gammas.iter().enumerate() {
            lhs += (z[i] - y[i]).powi(2) / gamma;
            rhs += (z[i] - y[i]) * (v[i] - w[i]) / gamma;
            scale += (1.0 + v[i] * v[i] + w[i] * w[i]) / gamma;
        }
        // Polyhedra are exact to 1e-9, all others to rounding.
        let tolerance = if spec.kind == "polyhedron" { 1e-7 } else { 1e-12 };
        assert!(lhs <= rhs + tolerance * scale, "{spec:?} {steps:?}: {v:?} {w:?}: {lhs} {rhs}");
    });
}

#[test]
fn the_residual_of_a_prox_is_a_subgradient() {
    over_all_kinds(4, 1_000, |random, spec, term, gammas, steps| {
        let dim = gammas.len();
        let v = random.numbers(dim, 3.0);
        let z = proxed(term, steps, &v);
        let g: Vec<f64> = (0..dim).map(|i| (v[i] - z[i]) / gammas[i]).collect();
        for size in [3.0, 0.1] {
            // Another point of the domain.
            let near: Vec<f64> = z.iter().map(|z| z + random.number(size)).collect();
            let y = proxed(term, steps, &near);
            let slope: f64 = (0..dim).map(|i| g[i] * (y[i] - z[i])).sum();
            let scale: f64 = 1.0 + g.iter().zip(&y).map(|(g, y)| g.abs() * (1.0 + y.abs())).sum::<f64>();
            let tolerance = if spec.kind == "polyhedron" { 1e-7 } else { 1e-11 };
            let short = term.value(&z) + slope - term.value(&y);
            assert!(short <= tolerance * scale, "{short} {scale}: {spec:?} {steps:?} v {v:?}: {z:?} {y:?}");
        }
        // The same subgradient with another step leads to the same point.
        let other: Vec<f64> = gammas.iter().map(|gamma| gamma * 0.5).collect();
        let w: Vec<f64> = (0..dim).map(|i| z[i] + other[i] * g[i]).collect();
        for (a, b) in z.iter().zip(proxed(term, Steps::Each(&other), &w)) {
            let size = 1.0 + v.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
            let tolerance = if spec.kind == "polyhedron" { 1e-6 } else { 1e-10 };
            assert!((a - b).abs() <= tolerance * size, "{a} {b}: {spec:?} {steps:?} v {v:?}");
        }
    });
}

#[test]
fn points_of_a_set_stay_where_they_are() {
    over_all_kinds(5, 500, |random, spec, term, gammas, steps| {
        if !["box", "non-negative", "ball", "polyhedron"].contains(&spec.kind.as_str()) {
            return;
        }
        let z = proxed(term, steps, &random.numbers(gammas.len(), 3.0));
        assert_eq!(z, proxed(term, steps, &z), "{spec:?}");
    });
}

#[test]
fn equal_steps_are_one_step() {
    over_all_kinds(6, 500, |random, spec, term, gammas, _| {
        let gamma = gammas[0];
        let v = random.numbers(gammas.len(), 3.0);
        let one = proxed(term, Steps::One(gamma), &v);
        let each = proxed(term, Steps::Each(&vec![gamma; v.len()]), &v);
        for (one, each) in one.iter().zip(&each) {
            // The ball takes a bisection for the second.
            assert!((one - each).abs() <= 1e-13 * (1.0 + one.abs()), "{spec:?} {v:?}: {one} {each}");
        }
    });
}

#[test]
fn total_variation_of_many_points_is_optimal_and_exact_in_its_ties() {
    let mut random = Random(7);
    let n = 2_000;
    let v: Vec<f64> = (0..n).map(|i| (i / 400) as f64 + random.uniform(-0.3, 0.3)).collect();
    let gammas: Vec<f64> = (0..n).map(|_| random.uniform(0.5, 2.0)).collect();
    let weight = 3.0;
    let spec =
        TermSpec { kind: "total-variation".into(), weight: Some(weight.into()), ..TermSpec::default() };
    let z = proxed(&*spec.term(n).unwrap(), Steps::Each(&gammas), &v);
    // The dual variable: sums of (v - z)/gamma, within +-weight, and at an end where z jumps.
    let mut dual = 0.0;
    for i in 0..n - 1 {
        dual += (v[i] - z[i]) / gammas[i];
        // 2,000 terms of size 1 add up to an error of at most 2,000 * 1e-15.
        assert!(dual.abs() <= weight + 1e-10);
        if z[i + 1] != z[i] {
            assert!((dual + weight * (z[i + 1] - z[i]).signum()).abs() <= 1e-10, "{i}: {dual}");
        }
    }
    let levels = 1 + z.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((5..60).contains(&levels), "{levels} levels for 5 steps");
}

fn specs(json: &str) -> Vec<TermSpec> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn refusal(json: &str, dim: usize) -> String {
    match serde_json::from_str::<Vec<TermSpec>>(json) {
        Err(error) => error.to_string(),
        Ok(specs) => of_specs(&specs, dim).expect_err(json).to_string(),
    }
}

#[test]
fn the_examples_of_all_kinds_are_terms_and_survive_a_round_trip() {
    for kind in KINDS {
        let spec: TermSpec = serde_json::from_str(kind.example).unwrap();
        assert_eq!(spec.kind, kind.name);
        let term = spec.term(6).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        assert_eq!(term.outside(&proxed(&*term, Steps::One(1.0), &[2.0; 6])), None);
        let again: TermSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(again, spec);
        assert!(KINDS.iter().filter(|other| other.name == kind.name).count() == 1);
    }
}

#[test]
fn a_lasso_with_bounds_is_one_term() {
    let term = of_specs(
        &specs(
            r#"[{"kind": "l1", "weight": 1, "coordinates": "0..3"}, {"kind": "non-negative", "coordinates": [1, 2, 3]}]"#,
        ),
        5,
    );
    let term = term.unwrap().unwrap();
    assert_eq!(proxed(&*term, Steps::One(0.5), &[-2.0, -2.0, 2.0, -2.0, -2.0]), [-1.5, 0.0, 1.5, 0.0, -2.0]);
    assert_eq!(term.outside(&[-1.0, 0.0, 0.0, -1.0, 0.0]).unwrap().words, "x3 = -1 is below 0");
    assert_eq!(term.value(&[-1.0, 0.0, 2.0, 7.0, 9.0]), 3.0);
}

#[test]
fn sums_of_separable_kinds_have_an_exact_prox() {
    // Against a fine search: every pair of kinds that can be added, in one dimension.
    let mut random = Random(8);
    let kinds = ["box", "non-negative", "l1", "elastic-net", "log"];
    for first in kinds {
        for second in kinds {
            for _ in 0..100 {
                let both = [random.spec(first, 1), random.spec(second, 1)];
                let Ok(term) = of_specs(&both, 1) else {
                    assert!([first, second].contains(&"box"), "only bounds can contradict");
                    continue;
                };
                let term = term.unwrap();
                let (v, gamma) = (random.number(3.0), random.uniform(0.1, 3.0));
                let z = proxed(&*term, Steps::One(gamma), &[v]);
                let least = objective(&*term, &[gamma], &[v], &z);
                assert!(least.is_finite());
                for exponent in -20..2 {
                    for sign in [-1.0, 1.0] {
                        let other = [z[0] + sign * 2f64.powi(exponent)];
                        let value = objective(&*term, &[gamma], &[v], &other);
                        assert!(
                            value >= least - 1e-13 * (1.0 + least.abs()),
                            "{both:?} {gamma} {v}: {z:?} {other:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn blocks_leave_other_coordinates_alone() {
    let json = r#"[{"kind": "simplex", "coordinates": [4, 0]}, {"kind": "ball", "radius": 1, "coordinates": "1..3"}]"#;
    let term: Arc<dyn Term> = of_specs(&specs(json), 6).unwrap().unwrap();
    let gammas = [1.0, 1.0, 4.0, 1.0, 2.0, 1.0];
    let v = [3.0, 0.0, 5.0, -9.0, -3.0, 7.0];
    assert_eq!(proxed(&*term, Steps::Each(&gammas), &v), [1.0, 0.0, 1.0, -9.0, 0.0, 7.0]);
    assert_eq!(term.outside(&[-1.0, 0.0, 0.0, 0.0, 2.0, 0.0]).unwrap().coordinate, Some(0));
    assert!(of_specs(&[], 3).unwrap().is_none());
}

#[test]
fn what_cannot_be_is_refused_with_its_numbers() {
    for (json, dim, words) in [
        (r#"[{"kind": "ridge"}]"#, 2, "there is no kind \"ridge\"; the kinds are box, non-negative, "),
        (r#"[{"kind": "l1"}]"#, 2, "term 1 (l1): l1 needs weight"),
        (r#"[{"kind": "l1", "weight": -1}]"#, 2, "weight must be finite and at least 0, but is -1"),
        (r#"[{"kind": "l1", "weight": "inf"}]"#, 2, "but is inf"),
        (r#"[{"kind": "l1", "weight": 1, "radius": 2}]"#, 2, "l1 has no key radius; its keys: weight"),
        (r#"[{"kind": "l1", "wieght": 1}]"#, 2, "unknown field `wieght`"),
        (r#"[{"kind": "box"}]"#, 2, "give lower, upper or both"),
        (r#"[{"kind": "box", "lower": [0, 1, 2]}]"#, 2, "lower has 3 numbers for 2 coordinates"),
        (
            r#"[{"kind": "box", "lower": 2, "upper": 1}]"#,
            2,
            "coordinate 0 lies nowhere: lower = 2, upper = 1",
        ),
        (r#"[{"kind": "box", "lower": "low"}]"#, 2, "\"low\" is no number"),
        (
            r#"[{"kind": "box", "lower": [0, 1, 2], "upper": 1, "coordinates": "4..7"}]"#,
            9,
            "coordinate 6 lies nowhere",
        ),
        (
            r#"[{"kind": "box", "lower": 0, "coordinates": "1..9"}]"#,
            4,
            "there is no coordinate 4: there are 4",
        ),
        (r#"[{"kind": "box", "lower": 0, "coordinates": "1-9"}]"#, 4, "give a range such as"),
        (r#"[{"kind": "box", "lower": 0, "coordinates": "3..3"}]"#, 4, "coordinates are empty"),
        (
            r#"[{"kind": "box", "lower": 0, "coordinates": [1, 1]}]"#,
            4,
            "coordinate 1 is in two blocks, or twice in one",
        ),
        (
            r#"[{"kind": "simplex", "coordinates": "0..3"}, {"kind": "l1", "weight": 1}]"#,
            4,
            "coordinate 0 is in term 1 (simplex) and in term 2 (l1): simplex must have its coordinates to itself",
        ),
        (
            r#"[{"kind": "box", "lower": 3}, {"kind": "box", "upper": [9, 2], "coordinates": "1..3"}]"#,
            4,
            "coordinate 2 lies nowhere: lower = 3, upper = 2",
        ),
        (r#"[{"kind": "box", "upper": 0}, {"kind": "log"}]"#, 1, "coordinate 0 lies nowhere"),
        (r#"[{"kind": "ball", "radius": -1}]"#, 2, "radius must be finite and at least 0"),
        (r#"[{"kind": "simplex", "total": 0}]"#, 2, "total must be finite and above 0"),
        (r#"[{"kind": "group-l2", "weight": 1}]"#, 4, "give either groups or size"),
        (r#"[{"kind": "group-l2", "weight": 1, "size": 3}]"#, 4, "size 3 does not divide 4 coordinates"),
        (
            r#"[{"kind": "group-l2", "weight": 1, "groups": [[0, 9]]}]"#,
            4,
            "a group has coordinate 9, but there are only 4",
        ),
        (r#"[{"kind": "polyhedron", "a": [[1, 1]], "b": [1, 2]}]"#, 2, "a has 1 rows and b 2 numbers"),
        (
            r#"[{"kind": "polyhedron", "a": [[1, 0], [-1, 0]], "b": [0, -1]}]"#,
            2,
            "no point satisfies all rows",
        ),
        (
            r#"[{"kind": "polyhedron", "a_equal": [[0, 0]], "b_equal": [1]}]"#,
            2,
            "no point satisfies all rows",
        ),
    ] {
        let said = refusal(json, dim);
        assert!(said.contains(words), "{json}: {said}");
    }
}

#[test]
fn the_words_of_a_point_outside_name_it() {
    for (json, x, words) in [
        (r#"[{"kind": "simplex"}]"#, [0.5, 0.2], "the coordinates sum to 0.7, not to 1"),
        (r#"[{"kind": "ball", "radius": 1}]"#, [3.0, 4.0], "x is 5 from the centre, more than the radius 1"),
        (r#"[{"kind": "log"}]"#, [3.0, 0.0], "x1 = 0 is not above 0"),
        (r#"[{"kind": "l1", "weight": 1}]"#, [3.0, f64::NAN], "x1 is not a number"),
        (
            r#"[{"kind": "polyhedron", "a": [[1, 1]], "b": [1]}]"#,
            [1.0, 1.0],
            "row 0 of a: a x = 2 is above 1",
        ),
    ] {
        let term = of_specs(&specs(json), 2).unwrap().unwrap();
        assert_eq!(term.outside(&x).unwrap().words, words);
        assert_eq!(term.value(&x), f64::INFINITY);
    }
}

/// l1 of weight 1 with a slip.
#[derive(Debug)]
struct Slipped(&'static str);

impl Term for Slipped {
    fn identity(&self) -> String {
        self.0.into()
    }
    fn check(&self, _: usize) -> Result<(), TermError> {
        Ok(())
    }
    fn value(&self, x: &[f64]) -> f64 {
        let weight = if self.0 == "value" { 2.0 } else { 1.0 };
        weight * x.iter().map(|x| x.abs()).sum::<f64>()
    }
    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        for (i, v) in v.iter_mut().enumerate() {
            let gamma = match self.0 {
                "weight" => 0.8 * steps.at(i),
                "sign" => -steps.at(i),
                "no gamma" => 1.0,
                _ => steps.at(i),
            };
            *v = v.signum() * (v.abs() - gamma).max(0.0);
            match self.0 {
                "longer" => *v *= 1.01,
                "nan" => *v = f64::NAN,
                "shift" => *v += 0.01,
                _ => {}
            }
        }
    }
    fn outside(&self, x: &[f64]) -> Option<Outside> {
        let is_out = self.0 == "domain" && x[0] < 0.0;
        is_out.then(|| Outside { coordinate: Some(0), words: "x0 is negative".into() })
    }
}

#[test]
fn a_term_that_breaks_a_law_is_told_from_all_that_keep_them() {
    let start = [0.2, -0.4, 0.9, 0.1, 0.5, -0.3];
    for kind in KINDS {
        let spec: TermSpec = serde_json::from_str(kind.example).unwrap();
        let term = spec.term(6).unwrap();
        for seed in 1..=5 {
            check_laws(&*term, &start, seed).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        }
    }
    check_laws(&Slipped("none"), &start, 1).unwrap();
    for (slip, words) in [
        ("value", "not that of the value"),
        ("weight", "not that of the value"),
        ("no gamma", "not that of the value"),
        ("sign", "is not"),
        ("longer", "is not"),
        ("shift", "not that of the value"),
        ("nan", "NaN"),
        ("domain", "outside of the domain: x0 is negative"),
    ] {
        let error = check_laws(&Slipped(slip), &start, 1).unwrap_err().to_string();
        assert!(error.contains(words), "{slip}: {error}");
    }
}

/// The prox by many of one length, against the closed form.
#[test]
fn a_prox_in_a_metric_follows_from_those_of_one_length() {
    let mut random = Random(7);
    for kind in KINDS {
        let spec: TermSpec = serde_json::from_str(kind.example).unwrap();
        let term = spec.term(6).unwrap();
        let gammas: Vec<f64> = (0..6).map(|_| random.uniform(0.2, 5.0)).collect();
        let v = random.numbers(6, 3.0);
        let exact = proxed(&*term, Steps::Each(&gammas), &v);
        let mut z = v.clone();
        metric_prox(&*term, &gammas, &mut z);
        assert_eq!(term.outside(&z), None, "{}", kind.name);
        // Polyhedra are projected to seven digits or so, and a proximal step adds its errors up.
        for (z, exact) in z.iter().zip(&exact) {
            assert!((z - exact).abs() < 1e-6 * (1.0 + exact.abs()), "{}: {z} for {exact}", kind.name);
        }
    }
}
