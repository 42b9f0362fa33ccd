//! `pasta solve --page`: the page of a run.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::{BOWL, TestDir, with};
use predicates::str::contains;

/// A run that is certified after a few thousand samples.
fn certified() -> String {
    with(
        &with(BOWL, "growth = 9.0", "growth = 1.0"),
        "[recipe]\nname = \"smooth\"\ntarget = 0.5\nconstants = \"problem\"\n",
        "[certificate]\ntarget = 0.1\n",
    )
}

#[test]
fn the_page_shows_verdict_curves_forecast_noise_ledger_and_settings() {
    let place = TestDir::holding(&certified());
    place.pasta("solve p.toml --seed 7 --page run.html").assert().code(0);
    let page = place.read("run.html");
    for part in [
        "<h1>Certified</h1>",
        "gradient-title",
        "forecast-title",
        "distance-title",
        "noise-title",
        "Where the samples went",
        "looks whether to try a certificate",
        "certified bound",
        "known by formulas",
        "seed = 7",
        ">target</text>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // The end is no live page.
    assert!(!page.contains("http-equiv"), "{page}");
}

#[test]
fn the_page_of_a_run_that_was_resumed_begins_where_the_run_began() {
    // A recipe, whose plan does not depend on the budget.
    let page = |commands: &[(&str, i32)]| {
        let place = TestDir::holding(&format!("{BOWL}\n[certificate]\ntarget = 0.3\n"));
        for (command, code) in commands {
            place.pasta(command).assert().code(*code);
        }
        place.read("run/page.html")
    };
    // The points of the curve of what formulas know, which is drawn in grey.
    let points = |page: &str| {
        let curve = page.split("line tone-grey\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        curve.split([' ', 'L']).count()
    };
    let whole = page(&[("solve p.toml --output run --page run", 0)]);
    let resumed =
        page(&[("solve p.toml --budget 3000 --output run", 4), ("resume run --budget 1e12 --page run", 0)]);
    let (whole_points, points) = (points(&whole), points(&resumed));
    assert!(whole_points > 50 && points >= whole_points, "{points} of {whole_points}");
    assert!(resumed.contains("certified bound") && resumed.contains("budget = 1000000000000"), "{resumed}");
}

#[test]
fn a_run_that_only_has_a_budget_has_a_page_too() {
    let place = TestDir::holding(&with(&certified(), "[certificate]\ntarget = 0.1\n", ""));
    place.pasta("solve p.toml --budget 2000 --page out/page.html").assert().code(0);
    let page = place.read("out/page.html");
    assert!(page.contains("distance-title") && !page.contains("noise-title"), "{page}");
}

#[test]
fn a_run_goes_on_without_a_live_page_and_says_that_the_last_one_cannot_be_written() {
    let place = TestDir::holding(&certified());
    place.write("file", "");
    let run = place.pasta("solve p.toml --page file/page.html").assert();
    run.code(1).stdout(contains("certified  |grad f|")).stderr(contains("warning: no page"));
}
