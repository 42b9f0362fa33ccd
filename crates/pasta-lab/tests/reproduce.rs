//! `pasta-lab reproduce`, from outside.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Output};
use std::sync::OnceLock;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// Runs `pasta-lab reproduce` in a folder.
fn reproduce(folder: &Path, arguments: &[&str]) -> Output {
    Command::cargo_bin("pasta-lab")
        .unwrap()
        .current_dir(folder)
        .arg("reproduce")
        .args(arguments)
        .output()
        .unwrap()
}

/// The whole quick run, once for all tests.
struct Whole {
    folder: TempDir,
    output: Output,
    results: Value,
}

fn whole() -> &'static Whole {
    static WHOLE: OnceLock<Whole> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        let output = reproduce(folder.path(), &["--quick"]);
        let results = fs::read(folder.path().join("pasta-reproduce/results.json")).unwrap();
        Whole { folder, output, results: serde_json::from_slice(&results).unwrap() }
    })
}

impl Whole {
    fn pages(&self) -> PathBuf {
        self.folder.path().join("pasta-reproduce")
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.pages().join(name)).unwrap()
    }

    fn claims(&self) -> &[Value] {
        self.results["claims"].as_array().unwrap()
    }
}

fn checks(claim: &Value) -> &[Value] {
    claim["checks"].as_array().unwrap()
}

const NAMES: [&str; 9] = [
    "smooth",
    "mss",
    "convex",
    "curvature",
    "weakly-convex",
    "guarantees",
    "uncertainty",
    "lower",
    "corrections",
];

#[test]
fn all_nine_claims_hold() {
    let whole = whole();
    let errors = String::from_utf8_lossy(&whole.output.stderr);
    assert!(whole.output.status.success(), "{errors}");
    assert_eq!(whole.results["holds"], true);
    let names: Vec<&str> = whole.claims().iter().map(|claim| claim["claim"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    let text = String::from_utf8(whole.output.stdout.clone()).unwrap();
    for name in NAMES {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("pasta-reproduce/index.html"), "{text}");
}

#[test]
fn every_slope_contains_the_theorys_exponent_or_that_of_the_noiseless_run() {
    let mut slopes = 0;
    for check in whole().claims().iter().flat_map(checks) {
        let name = check["name"].as_str().unwrap().to_lowercase();
        if !name.contains("slope") {
            continue;
        }
        slopes += 1;
        let exponent = check["predicted"]["is"].as_f64().unwrap();
        let measured = check["measured"].as_f64().unwrap();
        let (low, high) = match check["interval"].as_array() {
            Some(ends) => (ends[0].as_f64().unwrap(), ends[1].as_f64().unwrap()),
            // A count that is not random: up to the rounding of its whole numbers.
            None => (measured - 0.05, measured + 0.05),
        };
        // The slack is that of the page: noise moves the iterates a little.
        let near = |slope: f64| (low - 0.05..=high + 0.05).contains(&slope);
        let here = check["on_this_grid"].as_f64();
        assert!((low..=high).contains(&exponent) || here.is_some_and(near), "{check}");
        // Neighbouring exponents are at least one apart.
        assert!((measured - exponent).abs() < 0.2, "{check}");
    }
    assert_eq!(slopes, 11, "four smooth, one mean-square smooth, two convex, two with curvature, two more");
}

#[test]
fn every_guarantee_is_measured_over_at_least_twenty_seeds() {
    let guarantees = &whole().claims()[5];
    let promises: Vec<&Value> = checks(guarantees)
        .iter()
        .filter(|check| check["name"].as_str().unwrap().contains("over its bound"))
        .collect();
    for theorem in [3, 4, 5, 7, 8, 9, 10] {
        let name = format!("Theorem {theorem} ");
        let check = promises.iter().find(|check| check["name"].as_str().unwrap().starts_with(&name)).unwrap();
        assert!(check["interval"][1].as_f64().unwrap() <= 1.0, "{check}");
        let setting = check["setting"].as_str().unwrap();
        let seeds: u32 = setting.rsplit(' ').nth(1).unwrap().parse().unwrap();
        assert!(seeds >= 20, "{setting}");
    }
}

#[test]
fn every_file_that_the_results_name_is_there_and_no_other() {
    let whole = whole();
    let mut named = vec!["index.html".to_string(), "results.json".to_string()];
    for claim in whole.claims() {
        named.push(claim["points"].as_str().unwrap().into());
        named.extend(claim["figures"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_string()));
    }
    for name in &named {
        assert!(whole.text(name).len() > 100, "{name}");
    }
    assert_eq!(fs::read_dir(whole.pages()).unwrap().count(), named.len());
}

#[test]
fn every_measured_point_is_a_line_of_numbers() {
    for claim in whole().claims() {
        let points = whole().text(claim["points"].as_str().unwrap());
        let mut lines = points.lines();
        assert_eq!(lines.next(), Some("series,parameter,at,seed,quantity,value"));
        for line in lines {
            let value = line.rsplit(',').next().unwrap();
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
        }
    }
}

#[test]
fn the_page_asks_for_nothing_and_links_only_to_itself() {
    let page = whole().text("index.html");
    for outside in ["http:", "https:", "<script", "<link", "@import", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    let targets: Vec<&str> =
        page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(targets.len(), NAMES.len());
    for target in targets {
        assert!(page.contains(&format!("<section id=\"{target}\">")), "{target}");
    }
    for name in NAMES {
        assert!(page.contains(&format!("pasta-lab reproduce {name} --seed 1")), "{name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let folder = TempDir::new().unwrap();
    let output = reproduce(folder.path(), &["convex", "uncertainty", "--seed", "1", "-o", "again"]);
    assert!(output.status.success());
    for name in ["convex.csv", "uncertainty.csv", "convex-samples.svg", "uncertainty-flat.svg"] {
        assert!(
            fs::read_to_string(folder.path().join("again").join(name)).unwrap() == whole().text(name),
            "{name}"
        );
    }
}

#[test]
fn json_is_the_results_file() {
    let folder = TempDir::new().unwrap();
    let output = reproduce(folder.path(), &["mss", "--json"]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let written: Value =
        serde_json::from_slice(&fs::read(folder.path().join("pasta-reproduce/results.json")).unwrap())
            .unwrap();
    assert_eq!(printed, written);
    assert_eq!(printed["claims"].as_array().unwrap().len(), 1);
}

#[test]
fn an_unknown_claim_is_refused_with_the_list() {
    let folder = TempDir::new().unwrap();
    let output = reproduce(folder.path(), &["smoth"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    for name in NAMES {
        assert!(errors.contains(name), "{errors}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The browser of this machine.
fn chromium() -> &'static str {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Program::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))
        .expect(
            "this test looks at the pages with chromium or google-chrome (Debian: apt-get install chromium)",
        )
}

/// What the browser is started with: no window, no network, no chatter.
const QUIET: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
];

#[test]
#[ignore = "needs a browser, chromium or google-chrome: cargo xtask browser runs it, and fails without one"]
fn a_browser_shows_every_figure_and_complains_about_nothing() {
    let browser = chromium();
    let scratch = TempDir::new().unwrap();
    // A script of the test's own, in a copy of the page, writes down what the browser made of it.
    let probe = "<script>addEventListener('load', () => { const sizes = [...document.querySelectorAll('svg')].map(s => \
                 s.getBoundingClientRect()); document.title = JSON.stringify({ figures: sizes.length, flat: \
                 sizes.filter(r => !(r.width > 0 && r.height > 0)).length, requests: \
                 performance.getEntriesByType('resource').length, wide: document.documentElement.scrollWidth > innerWidth, \
                 cut: [...document.querySelectorAll('.table')].filter(t => t.scrollWidth > t.clientWidth).length }); });</script></body>";
    let page = scratch.path().join("page.html");
    fs::write(&page, whole().text("index.html").replace("</body>", probe)).unwrap();
    for width in [1100, 500] {
        let output = Program::new(browser)
            .args(QUIET)
            .arg(format!("--user-data-dir={}", scratch.path().join("profile").display()))
            .arg(format!("--window-size={width},900"))
            .args(["--virtual-time-budget=5000", "--dump-dom"])
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("CONSOLE"), "{errors}");
        let dom = String::from_utf8_lossy(&output.stdout);
        let title = dom.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
        let seen: Value = serde_json::from_str(title).unwrap();
        assert!(seen["figures"].as_u64().unwrap() >= 9, "{seen}");
        assert!(width < 1100 || seen["cut"] == 0, "{seen}");
        assert_eq!((&seen["flat"], &seen["requests"], &seen["wide"]), (&0.into(), &0.into(), &false.into()));
    }
}
