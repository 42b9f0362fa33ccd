//! Every oracle against its truth: nothing here runs a method.

use pasta_opt::draws::Role;
use pasta_opt::gate::Gate;
use pasta_opt::oracle::{Answer, Request, Source};

use super::{Instance, Kind, PROBLEMS, Problem, Set, norm, normals, setup};

/// A point near the start, the same every time.
fn nearby(instance: &Instance, problem: u64) -> Vec<f64> {
    let mut xi = setup(900 + problem);
    let scale = 0.05 * (1.0 + norm(&instance.start) / (instance.start.len() as f64).sqrt());
    let steps = normals(&mut xi, instance.start.len());
    instance.start.iter().zip(steps).map(|(x, step)| x + scale * step).collect()
}

fn problems() -> impl Iterator<Item = (u64, &'static Problem, Instance)> {
    (0..).zip(PROBLEMS).map(|(i, problem)| (i, problem, problem.instance()))
}

#[test]
fn there_are_as_many_problems_of_every_kind_as_the_race_needs() {
    let count = |set, kind| PROBLEMS.iter().filter(|p| p.set == set && p.kind == kind).count();
    for set in [Set::Development, Set::KeptBack] {
        assert!(count(set, Kind::Stream) >= 4 && count(set, Kind::Table) >= 4);
    }
    assert!(PROBLEMS.len() >= 24);
    assert!(PROBLEMS.iter().filter(|problem| problem.set == Set::KeptBack).count() >= 8);
    let mut names: Vec<_> = PROBLEMS.iter().map(|problem| problem.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), PROBLEMS.len());
}

#[test]
fn a_problem_is_of_the_kind_that_it_says() {
    for (_, problem, instance) in problems() {
        let about = instance.oracle.about();
        let kind = match about.source {
            Source::Table { .. } => Kind::Table,
            Source::Stream | Source::Formula => Kind::Stream,
        };
        assert_eq!((kind, about.dim), (problem.kind, instance.start.len()), "{}", problem.name);
        let (error, value) = (instance.truth.error(&instance.start), instance.truth.value(&instance.start));
        assert!(error > 0.0 && error.is_finite() && value.is_finite(), "{}", problem.name);
    }
}

/// Gradient and loss of one sample.
fn sample(gate: &mut Gate, x: &[f64], number: u64) -> (Vec<f64>, f64) {
    let mut gradient = vec![0.0; x.len()];
    let mut losses = [0.0];
    let points = [x];
    let batch = gate.batch(Role::Large, number, 1);
    let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
    gate.ask(Request { losses: true, ..Request::sums(batch, &points) }, &mut answer).unwrap();
    (gradient, losses[0])
}

#[test]
fn the_gradient_of_a_sample_is_the_slope_of_its_loss() {
    // quad-losses-*: their losses have the right mean, not the right slope.
    let with_losses =
        problems().filter(|(_, p, i)| i.oracle.about().losses && !p.name.starts_with("quad-losses"));
    for (number, problem, instance) in with_losses {
        let x = nearby(&instance, number);
        let mut gate = Gate::over(instance.oracle.clone(), 1);
        let direction = normals(&mut setup(800 + number), x.len());
        let mut wrong = 0;
        for sampled in 0..20 {
            let step = 1e-6 / norm(&direction);
            let moved = |sign: f64| -> Vec<f64> {
                x.iter().zip(&direction).map(|(x, d)| x + sign * step * d).collect()
            };
            let (gradient, loss) = sample(&mut gate, &x, sampled);
            let [up, down] = [1.0, -1.0].map(|sign| sample(&mut gate, &moved(sign), sampled).1);
            let slope = (up - down) / (2.0 * step);
            let along: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
            // Rounding of the losses over the step, and curvature times its square.
            let scale = norm(&gradient) * norm(&direction);
            let tolerance = 1e-5 * scale + 1e-14 * (1.0 + loss.abs()) / step;
            wrong += u32::from((slope - along).abs() > tolerance);
        }
        // A kink within 1e-6 of a sample is rare.
        assert!(wrong <= 1, "{}: {wrong} of 20", problem.name);
    }
}

#[test]
fn the_mean_of_samples_is_the_gradient_that_judges() {
    for (number, problem, instance) in problems().filter(|(_, p, _)| p.name != "phase") {
        let x = nearby(&instance, number);
        let mut gate = Gate::over(instance.oracle.clone(), 2);
        // |mean| - |grad f| is below |mean - grad f|, whose square is V/n on average: five of its roots are passed with a
        // probability far below 1e-4 even for skewed samples.
        let (blocks, size) = (64, 512);
        let mut means = Vec::new();
        let points = [x.as_slice()];
        for block in 0..blocks {
            let mut sum = vec![0.0; x.len()];
            let batch = gate.batch(Role::Large, block, size);
            gate.ask(Request::sums(batch, &points), &mut Answer::new(&mut sum)).unwrap();
            means.push(sum.iter().map(|g| g / size as f64).collect::<Vec<_>>());
        }
        let mean: Vec<f64> =
            (0..x.len()).map(|i| means.iter().map(|m| m[i]).sum::<f64>() / blocks as f64).collect();
        let scatter: f64 =
            means.iter().map(|m| m.iter().zip(&mean).map(|(m, mean)| (m - mean).powi(2)).sum::<f64>()).sum();
        let deviation = (scatter / (blocks as f64 * (blocks as f64 - 1.0))).sqrt();
        let (truth, seen) = (instance.truth.error(&x), norm(&mean));
        assert!(
            (truth - seen).abs() <= 5.0 * deviation + 1e-9,
            "{}: {seen} for {truth}, deviation {deviation}",
            problem.name
        );
    }
}

#[test]
fn the_value_that_judges_falls_along_the_gradient_as_fast_as_it_says() {
    // phase is judged by a distance, and the mean over a reference has the slope of its own samples.
    for (number, problem, instance) in problems().filter(|(_, p, _)| p.name != "phase") {
        let x = nearby(&instance, number);
        // Slopes of the value along every axis make a gradient again.
        let small = 1e-5 * (1.0 + norm(&x) / x.len() as f64);
        let slopes: Vec<f64> = (0..x.len().min(60))
            .map(|i| {
                let at = |sign: f64| {
                    let mut y = x.clone();
                    y[i] += sign * small;
                    instance.truth.value(&y)
                };
                (at(1.0) - at(-1.0)) / (2.0 * small)
            })
            .collect();
        if x.len() <= 60 {
            let (seen, truth) = (norm(&slopes), instance.truth.error(&x));
            let rounding = 1e-15 * instance.truth.value(&x).abs() / small * (x.len() as f64).sqrt();
            assert!(
                (seen / truth - 1.0).abs() < 1e-4 + rounding / truth,
                "{}: {seen} for {truth}",
                problem.name
            );
        }
    }
}
