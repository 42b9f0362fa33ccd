use pasta_opt::recipe::{Constant, Constants, RecipeError, TABLE, best_target, find};

/// A value for every constant that every recipe admits.
fn all() -> Constants {
    let mut constants = Constants::default();
    for &constant in Constant::ALL {
        constants.set(constant, 1.0);
    }
    constants.set(Constant::Mu, 0.5);
    constants.set(Constant::Rho, 0.5);
    constants.set(Constant::Target, 0.5);
    constants
}

#[test]
fn the_theorem_page_lists_exactly_the_recipes_that_exist() {
    let page = include_str!("../../../../docs/theorems.md");
    let listed: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let recipes = TABLE.iter().map(|row| row.name);
    let others = ["universal", "uncertainty", "lower-smooth", "lower-mss"];
    let expected: Vec<&str> = recipes.chain(others).collect();
    assert_eq!(listed, expected);
}

#[test]
fn every_recipe_plans_from_its_constants_and_names_the_one_that_is_missing() {
    for row in TABLE {
        let constants = row.relevant(&all());
        let plan = row.plan(&constants).unwrap();
        assert_eq!(plan.recipe, row.name);
        plan.schedule.check().unwrap();
        for &missing in row.needs {
            let mut fewer = Constants::default();
            constants.known().filter(|(c, _)| *c != missing).for_each(|(c, value)| fewer.set(c, value));
            let error = row.plan(&fewer).unwrap_err();
            assert_eq!(error, RecipeError::Missing { recipe: row.name, constant: missing });
            assert!(error.to_string().contains(missing.name()));
        }
        for &constant in row.needs.iter().chain(row.takes) {
            for bad in [-1.0, f64::NAN, f64::INFINITY] {
                let mut worse = constants;
                worse.set(constant, bad);
                let error = row.plan(&worse).unwrap_err();
                assert_eq!(error.constant(), Some(constant.name()), "{error}");
            }
        }
    }
}

#[test]
fn a_constant_that_a_recipe_does_not_use_is_refused_by_name() {
    let smooth = find("smooth").unwrap();
    let mut constants = smooth.relevant(&all());
    constants.set(Constant::Lambda, 1.0);
    let error = smooth.plan(&constants).unwrap_err();
    assert_eq!(
        error.to_string(),
        "smooth: does not use lambda; it uses smoothness, gap, growth, floor, target, variance"
    );
}

#[test]
fn zero_constants_drop_their_term() {
    for row in TABLE.iter().filter(|row| row.name != "horizon-sgd") {
        let mut constants = row.relevant(&all());
        for constant in [
            Constant::Growth,
            Constant::Floor,
            Constant::Gap,
            Constant::Distance,
            Constant::Lipschitz,
            Constant::Rho,
        ] {
            if row.uses(constant) {
                constants.set(constant, 0.0);
            }
        }
        let plan = row.plan(&constants).unwrap();
        assert!(plan.cost.samples.is_finite(), "{plan:?}");
        plan.schedule.check().unwrap();
    }
}

#[test]
fn counts_beyond_two_to_the_63_are_refused_with_the_number() {
    for row in TABLE.iter().filter(|row| !row.name.starts_with("weakly-convex")) {
        let mut constants = row.relevant(&all());
        constants.set(Constant::Target, 1e-30);
        let error = row.plan(&constants).unwrap_err();
        assert!(matches!(error, RecipeError::TooMany { .. }), "{error}");
        assert!(error.to_string().contains("more than 2^63"));
    }
}

#[test]
fn the_best_target_of_a_budget_costs_at_most_the_budget_and_no_smaller_one_does() {
    for row in TABLE {
        let mut constants = row.relevant(&all());
        let price = row.plan(&constants).unwrap().cost.samples;
        for budget in [price, 3.0 * price, 1e6 * price] {
            let (target, plan) = best_target(row, &constants, budget).unwrap();
            assert!(plan.cost.samples <= budget);
            constants.set(Constant::Target, target);
            assert_eq!(row.plan(&constants).unwrap(), plan);
            constants.set(Constant::Target, 0.98 * target);
            let smaller = row.plan(&constants);
            assert!(smaller.is_err() || smaller.unwrap().cost.samples > budget, "{} at {target}", row.name);
        }
    }
    let horizon = find("horizon-sgd").unwrap();
    let error = best_target(horizon, &horizon.relevant(&all()), 0.0).unwrap_err();
    assert_eq!(error.to_string(), "horizon-sgd: no target costs at most 0 samples");
}

#[test]
fn the_algorithm_page_quotes_the_code_that_runs() {
    let page = include_str!("../../../../docs/algorithm.md");
    let code = include_str!("../../src/algorithm.rs");
    let lines = page.lines().filter(|line| line.starts_with("| **"));
    let quoted: Vec<_> =
        lines.map(|line| line.rsplit('`').nth(1).expect("each line of the table quotes code")).collect();
    assert_eq!(quoted.len(), 5);
    for line in quoted {
        assert!(code.contains(line), "{line}");
    }
}

#[test]
fn the_readme_shows_the_example_that_runs() {
    let readme = include_str!("../../../../README.md");
    let shown = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(include_str!("../../examples/own_oracle.rs").ends_with(shown));
}
