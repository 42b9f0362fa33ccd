//! `pasta-lab reproduce`: every rate of the paper, measured, on one page.

mod convex;
mod corrections;
mod curvature;
mod finding;
pub(crate) mod fit;
mod guarantees;
mod lower;
mod mss;
mod rate;
mod runs;
mod smooth;
mod uncertainty;
mod verdicts;
mod weakly_convex;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use clap::builder::PossibleValuesParser;

use finding::{Claim, Finding};
use pasta_report as report;
use pasta_report::console::{Bar, Exit, Failure, answer, say};
use verdicts::Findings;

/// Measure every rate of the paper and write a page of verdicts
///
/// Runs the recipes on problems with known constants over many seeds, counts every sample, fits the slopes
/// and compares them with the theory. Writes index.html, the figures as SVG, all measured points as CSV
/// and results.json, anew after every claim: a run that is cut off leaves what it has decided, and
/// results.json names what is undecided. The same seed gives the same files, byte for byte. Exit code 1 if a claim fails.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which claims; all if none is named
    #[arg(value_name = "CLAIM", value_parser = PossibleValuesParser::new(CLAIMS.iter().map(|claim| claim.name)))]
    claims: Vec<String>,

    /// A few minutes on two cores; the default
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// More seeds and smaller targets, in half an hour
    #[arg(long)]
    full: bool,

    /// Seed of all randomness: another one gives other runs, independent of these
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Folder for the page and its files; made if it is not there
    #[arg(long, short, value_name = "DIR", default_value = "pasta-reproduce")]
    output: PathBuf,

    /// Print results.json instead of the table
    #[arg(long)]
    json: bool,
}

/// In the order of the page.
const CLAIMS: &[Claim] = &[
    smooth::CLAIM,
    mss::CLAIM,
    convex::CLAIM,
    curvature::CLAIM,
    weakly_convex::CLAIM,
    guarantees::CLAIM,
    uncertainty::CLAIM,
    lower::CLAIM,
    corrections::CLAIM,
];

/// How a measurement is made.
#[derive(Debug, Clone, Copy)]
struct Setting {
    effort: Effort,
    seed: u64,
    /// How many times as noisy as the recipes are told the oracles of the claim on guarantees are; 1 is honest.
    sabotage: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Quick,
    Full,
}

impl Setting {
    /// As many seeds as the effort allows. No two seeds of the program share one.
    fn seeds(&self, quick: u64, full: u64) -> Vec<u64> {
        (0..effort(self, quick, full)).map(|run| self.seed.wrapping_mul(1 << 24).wrapping_add(run)).collect()
    }
}

/// What the effort allows.
fn effort<T>(setting: &Setting, quick: T, full: T) -> T {
    match setting.effort {
        Effort::Quick => quick,
        Effort::Full => full,
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let effort = if arguments.full { Effort::Full } else { Effort::Quick };
    let setting = Setting { effort, seed: arguments.seed, sabotage: 1.0 };
    report::folder_for_page(&arguments.output)?;
    let mut findings = Findings::new();
    let all = arguments.claims.is_empty();
    let asked = |claim: &&Claim| all || arguments.claims.iter().any(|name| name == claim.name);
    let claims: Vec<&'static Claim> = CLAIMS.iter().filter(asked).collect();
    let mut path = arguments.output.join(verdicts::PAGE);
    for (i, claim) in claims.iter().enumerate() {
        findings.push((claim, measured(claim, &setting)?));
        // What is decided is written at once: a run that is cut off leaves it.
        path = write(&arguments.output, &findings, &claims[i + 1..], &setting)?;
    }
    answer(&if arguments.json {
        verdicts::results(&findings, &[], &setting).to_string()
    } else {
        format!("{}\n\nThe page: {}", verdicts::summary(&findings, |claim| claim.name).text(), path.display())
    })?;
    Ok(verdict(&findings, &path))
}

/// Measures one claim, and says on stderr which and how long it took.
fn measured(claim: &Claim, setting: &Setting) -> Result<Finding, Failure> {
    let started = Instant::now();
    let bar = Bar::endless(&format!("{}: measuring", claim.name));
    let finding = (claim.measure)(setting);
    drop(bar);
    let finding = finding
        .map_err(|cause| Failure::system(format!("the claim {} cannot be measured: {cause}", claim.name)))?;
    let outcome = if finding.holds() { "holds" } else { "FAILS" };
    say(&format!("{}: {outcome}, {:.1} s", claim.name, started.elapsed().as_secs_f64()));
    Ok(finding)
}

/// Writes the files of the last claim, the results and the page, and gives the path of the page, which comes last: what it names is there.
fn write(
    folder: &Path,
    findings: &Findings,
    undecided: &[&Claim],
    setting: &Setting,
) -> Result<PathBuf, Failure> {
    if let Some((claim, finding)) = findings.last() {
        report::write(folder, &format!("{}.csv", claim.name), verdicts::csv(&finding.points))?;
        for chart in &finding.figures {
            report::write(folder, &format!("{}.svg", chart.id), &chart.svg()?)?;
        }
    }
    let results = serde_json::to_string_pretty(&verdicts::results(findings, undecided, setting))
        .map_err(|cause| Failure::system(format!("cannot write the results as JSON: {cause}")))?;
    report::write(folder, "results.json", &(results + "\n"))?;
    report::write(folder, verdicts::PAGE, &verdicts::page(findings, undecided, setting).html()?)
}

/// The answer is printed already: what is wrong with it is said besides.
fn verdict(findings: &Findings, page: &Path) -> Exit {
    let failed: Vec<&str> =
        findings.iter().filter(|(_, finding)| !finding.holds()).map(|(claim, _)| claim.name).collect();
    if failed.is_empty() {
        return Exit::Done;
    }
    let message = format!("{} of {} claims fail: {}", failed.len(), findings.len(), failed.join(", "));
    say(&format!("error: {message}\n\nhint: the checks that fail are marked on {}", page.display()));
    Exit::System
}

#[cfg(test)]
mod tests {
    use super::{CLAIMS, Effort, Exit, Finding, Setting, guarantees, verdict, write};

    #[test]
    fn a_recipe_that_was_told_too_little_noise_fails_and_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let setting = Setting { effort: Effort::Quick, seed: 1, sabotage: 30.0 };
        let finding = (guarantees::CLAIM.measure)(&setting).expect("it can be measured");
        let failed = finding.checks.iter().filter(|check| !check.holds).count();
        assert!(failed >= 4 && !finding.holds(), "{failed}");
        let claim = CLAIMS.iter().find(|claim| claim.name == "guarantees").expect("it is a claim");
        let findings = vec![(claim, finding)];
        let page = write(folder.path(), &findings, &[], &setting).expect("it can be written");
        let text = std::fs::read_to_string(&page).expect("it was written");
        assert!(text.contains("✗ fails") && text.contains("0 of 1 claims hold"));
        assert_eq!(verdict(&findings, &page), Exit::System);
    }

    #[test]
    fn a_run_that_is_cut_off_leaves_what_it_has_decided_and_names_what_it_has_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let setting = Setting { effort: Effort::Quick, seed: 1, sabotage: 1.0 };
        let mut findings = vec![(&CLAIMS[0], Finding::default())];
        let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it was written");
        write(folder.path(), &findings, &[&CLAIMS[1], &CLAIMS[2]], &setting).expect("it can be written");
        assert!(text("results.json").contains("\"undecided\": [\n    \"mss\",\n    \"convex\"\n  ]"));
        assert!(text("index.html").contains("undecided: mss, convex"));
        assert!(!text("smooth.csv").is_empty());
        findings.push((&CLAIMS[1], Finding::default()));
        write(folder.path(), &findings, &[], &setting).expect("it can be written");
        assert!(!text("results.json").contains("undecided") && !text("index.html").contains("undecided"));
        assert!(!text("mss.csv").is_empty());
    }
}
