//! Value stability: the random streams and the first steps of a run on every problem, pinned. A change here changes the
//! result of every run, so it needs a line under "Random stream" in the changelog.

use pasta_opt::draws::{Address, Role};
use pasta_opt::prelude::*;
use pasta_opt::problems::{self, Parameters, Value};

fn stream(seed: u64, role: Role, step: u64, sample: u64) -> Stream {
    Address { seed, role, step, sample }.stream()
}

#[test]
fn the_streams_give_the_pinned_values() {
    use rand_core::Rng;
    let mut words = stream(1, Role::Large, 2, 3);
    let first: Vec<u64> = (0..5).map(|_| words.next_u64()).collect();
    assert_eq!(first, PINNED_WORDS);
    let mut xi = stream(7, Role::Setup, 0, 0);
    let drawn = [
        xi.uniform(),
        xi.open_uniform(),
        xi.normal(),
        xi.normal(),
        xi.binomial(1000, 0.3) as f64,
        xi.binomial(1 << 62, 0.5) as f64,
        xi.poisson(4.5) as f64,
        xi.poisson(1e6) as f64,
        xi.below(1000) as f64,
        f64::from(u8::from(xi.bernoulli(0.5))),
        xi.sample(&rand_distr::StudentT::new(3.0).unwrap()),
    ];
    assert_eq!(drawn, PINNED_DRAWS);
}

#[test]
fn every_address_has_a_stream_of_its_own() {
    // Among these addresses a common first word would be a coincidence of 2^-64.
    let mut words = Vec::new();
    for seed in [0, 1, u64::MAX] {
        for role in [Role::Large, Role::Small, Role::Coin, Role::Output, Role::Setup] {
            for step in [0, 1, 1 << 40] {
                for sample in [0, 1, Address::WHOLE_BATCH] {
                    words.push(rand_core::Rng::next_u64(&mut stream(seed, role, step, sample)));
                }
            }
        }
    }
    let drawn = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), drawn);
}

#[test]
fn the_first_steps_on_every_problem_are_pinned() {
    let number = |name, value| (name, Value::Number(value));
    let mut reached = Vec::new();
    for row in problems::TABLE {
        let parameters = match row.name {
            "quadratic" => Parameters::from([("spectrum", Value::List(vec![1.0, 4.0]))]),
            "ramp" => {
                Parameters::from([number("slope", 0.5), number("reach", 1.0), number("curvature", 2.0)])
            }
            "huber" => Parameters::from([number("curvature", 2.0), number("lipschitz", 1.0)]),
            "clover" => Parameters::from([number("depth", 0.3)]),
            _ => Parameters::default(),
        };
        let objective = row.build(&parameters).unwrap();
        let start = vec![0.75; objective.dim()];
        let noise = Noise { growth: 1.0, floor: 0.5, tail: Tail::Gaussian };
        let oracle = Noisy::new(objective, noise, start.clone()).unwrap();
        let schedule = Schedule {
            estimator: Estimator::Page { refresh: Sequence::Constant(0.5), small: 2 },
            ..Schedule::plain(Sequence::Constant(0.1), 6, 4)
        };
        let mut gate = Gate::new(oracle, 1);
        let end = Pasta::start(&gate, schedule, &start).unwrap().finish(&mut gate).unwrap();
        reached.push((row.name, end.last[0]));
    }
    assert_eq!(reached, PINNED_STEPS);
}

const PINNED_WORDS: [u64; 5] = [
    12159206244714703180,
    13884973069335729616,
    18322672755521783841,
    3243289963188295506,
    13340205042940711710,
];
const PINNED_DRAWS: [f64; 11] = [
    0.4808488224703247,
    0.4702728671131523,
    -0.36658135892369803,
    0.643031333996065,
    293.0,
    2.305843007817681e18,
    5.0,
    1001797.0,
    340.0,
    1.0,
    0.6280349203994579,
];
const PINNED_STEPS: [(&str, f64); 10] = [
    ("quadratic", 0.38438126239911896),
    ("sine-bowl", 0.09874061334844224),
    ("soft-absolute", 0.4223395643372735),
    ("ramp", 1.0290006905409077),
    ("huber", 0.21671024768460842),
    ("kinked-well", 0.4664222966581908),
    ("wells", 0.4664222966581908),
    ("absolute", 0.1278854341891957),
    ("clover", 0.47539086037585765),
    ("flat", 0.7292519415227262),
];
