//! The page, the summary and the files.

use serde_json::{Value, json};

use super::finding::{Check, Claim, Finding, Point, Predicted};
use super::fit::CONFIDENCE;
use super::rate::{LIMIT, SLACK};
use super::{Setting, effort};
use pasta_report::{Column, Page, Part, Section, Table, given, significant};

/// The name of the page.
pub(super) const PAGE: &str = "index.html";

/// Claims with what came of them, in the order of the page.
pub(super) type Findings = Vec<(&'static Claim, Finding)>;

fn verdict(holds: bool) -> &'static str {
    if holds { "✓ holds" } else { "✗ fails" }
}

/// The command that measures one claim again, or all of them.
fn command(claim: &str, setting: &Setting) -> String {
    format!("pasta-lab reproduce{claim} --seed {}{}", setting.seed, effort(setting, "", " --full"))
}

/// The check that says most: the first that fails, or the first.
fn headline(finding: &Finding) -> Option<&Check> {
    finding.checks.iter().find(|check| !check.holds).or_else(|| finding.checks.first())
}

/// All verdicts, one row a claim.
pub(super) fn summary(findings: &Findings, label: fn(&Claim) -> &'static str) -> Table {
    let row = |(claim, finding): &(&'static Claim, Finding)| {
        let kept = finding.checks.iter().filter(|check| check.holds).count();
        let (name, measured, predicted) = match headline(finding) {
            Some(check) => (check.name.clone(), measured(check), predicted(check.predicted)),
            None => Default::default(),
        };
        let checks = format!("{kept} of {}", finding.checks.len());
        vec![label(claim).into(), verdict(finding.holds()).into(), checks, measured, predicted, name]
    };
    Table {
        caption: "Claims, and the first number of each".into(),
        columns: Column::all(b"llrrrl", ["claim", "verdict", "checks", "measured", "theory", "what"]),
        rows: findings.iter().map(row).collect(),
    }
}

fn measured(check: &Check) -> String {
    // A count is a count.
    if check.measured.fract() == 0.0 { given(check.measured) } else { significant(check.measured, 4) }
}

fn predicted(predicted: Predicted) -> String {
    match predicted {
        Predicted::Is(value) => given(value),
        Predicted::AtMost(value) => format!("<= {}", given(value)),
        Predicted::AtLeast(value) => format!(">= {}", given(value)),
    }
}

fn checks_table(finding: &Finding) -> Table {
    let predicted_slopes = finding.checks.iter().filter(|check| check.on_this_grid.is_some()).count();
    let sharper = 2 * predicted_slopes >= finding.checks.len();
    let mut columns = Column::all(b"lrrr", ["what", "measured", "interval", "theory"]);
    if sharper {
        columns.push(Column::right("without noise"));
    }
    columns.push(Column::left("verdict"));
    let row = |check: &Check| {
        let name = format!("{} ({})", check.name, check.setting);
        let mut row = vec![name, measured(check), interval(check), predicted(check.predicted)];
        if sharper {
            row.push(check.on_this_grid.map_or_else(|| "–".into(), |slope| significant(slope, 4)));
        }
        row.push(format!("{}: {}", verdict(check.holds), check.reason));
        row
    };
    Table {
        caption: format!("Checks, with intervals at {CONFIDENCE}"),
        columns,
        rows: finding.checks.iter().map(row).collect(),
    }
}

fn interval(check: &Check) -> String {
    let Some((low, high)) = check.interval else { return "–".into() };
    let digits = digits(low, high);
    format!("{} to {}", significant(low, digits), significant(high, digits))
}

/// Enough to tell the ends of an interval apart, unless a power of ten makes them too long for a table.
fn digits(low: f64, high: f64) -> usize {
    let size = high.abs().max(low.abs());
    let most = if (1e-4..1e7).contains(&size) { 7.0 } else { 4.0 };
    let apart = ((high - low) / size).log10();
    if apart.is_finite() { (2.0 - apart).clamp(3.0, most) as usize } else { 4 }
}

/// Everything on one page.
pub(super) fn page(findings: &Findings, undecided: &[&Claim], setting: &Setting) -> Page {
    let kept = findings.iter().filter(|(_, finding)| finding.holds()).count();
    let contents = Part::Contents {
        table: summary(findings, |claim| claim.title),
        headings: findings.iter().map(|(claim, _)| claim.title.to_string()).collect(),
    };
    let again = Part::Text("All of it again:".into());
    let mut sections = vec![
        Section::new("All verdicts", vec![contents, again, Part::Command(command("", setting))]),
        method(),
    ];
    sections.extend(findings.iter().map(|(claim, finding)| section(claim, finding, setting)));
    Page {
        title: "The rates of PASTA, measured".into(),
        lead: format!(
            "{kept} of {} claims hold, decided by {} checks.{} Each is a statement about stochastic optimisation when the variance \
             of a sample may grow like B^2 |x - x_0|^2 + b^2, measured by running the recipes and counting every sample.",
            findings.len(),
            findings.iter().map(|(_, finding)| finding.checks.len()).sum::<usize>(),
            if undecided.is_empty() {
                String::new()
            } else {
                format!(" The run has not come to its end; undecided: {}.", names(undecided).join(", "))
            }
        ),
        sections,
    }
}

fn method() -> Section {
    Section::new("How a verdict is reached", vec![
            Part::Text(format!(
                "Slopes are those of least-squares lines through the means over the seeds, on doubly logarithmic axes. \
                 Their intervals are those of the jackknife, which leaves out one seed after another. All intervals are \
                 at {CONFIDENCE}, by Student's law, because there are many of them on this page. A number that is \
                 counted or computed has no interval; where the number of samples is not random, the text says so."
            )),
            Part::Text(format!(
                "A slope agrees with the theory if its interval contains the exponent. At targets that a run can \
                 reach, lower powers of 1/eps are still felt. Then the sharper prediction counts: the same recipe, run with \
                 exact gradients on the same targets, draws a number of samples that is not random; its slope must \
                 agree with the measured interval to within {SLACK} (noise moves the iterates a little), and must come \
                 within {LIMIT} of the exponent at smaller targets."
            )),
            Part::Text(
                "A bound is kept if the whole interval is on its right side. Expectations are means over the seeds; \
                 batches of Gaussian noise, of coins and of chain samples are drawn from their exact law, so \
                 that 10^17 samples can be counted without being drawn one by one."
                    .into(),
            ),
    ])
}

fn section(claim: &Claim, finding: &Finding, setting: &Setting) -> Section {
    let number = headline(finding).map_or_else(String::new, |check| {
        let (measured, predicted) = (measured(check), predicted(check.predicted));
        let interval = check
            .interval
            .map_or_else(String::new, |_| format!(" ({CONFIDENCE} interval {})", interval(check)));
        format!(" {}: measured {measured}{interval}, theory {predicted}.", check.name)
    });
    let mut parts = vec![
        Part::Text(claim.statement.into()),
        Part::Text(format!("{}.{number}", verdict(finding.holds()))),
        Part::Command(command(&format!(" {}", claim.name), setting)),
    ];
    parts.extend(finding.figures.iter().cloned().map(Part::Figure));
    parts.extend(finding.text.iter().cloned().map(Part::Text));
    parts.push(Part::Table(checks_table(finding)));
    parts.extend(finding.tables.iter().cloned().map(Part::Table));
    Section::new(claim.title, parts)
}

/// results.json.
pub(super) fn results(findings: &Findings, undecided: &[&Claim], setting: &Setting) -> Value {
    let claims: Vec<Value> = findings
        .iter()
        .map(|(claim, finding)| {
            json!({
                "claim": claim.name,
                "title": claim.title,
                "statement": claim.statement,
                "verdict": if finding.holds() { "holds" } else { "fails" },
                "checks": finding.checks,
                "command": command(&format!(" {}", claim.name), setting),
                "points": format!("{}.csv", claim.name),
                "figures": finding.figures.iter().map(|chart| format!("{}.svg", chart.id)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let mut results = json!({
        "program": concat!("pasta ", env!("CARGO_PKG_VERSION")),
        "effort": effort(setting, "quick", "full"),
        "seed": setting.seed,
        "confidence": 0.999,
        "holds": findings.iter().all(|(_, finding)| finding.holds()),
        "claims": claims,
    });
    // Only while the run goes on.
    if !undecided.is_empty() {
        results["undecided"] = names(undecided).into();
    }
    results
}

fn names(claims: &[&Claim]) -> Vec<&'static str> {
    claims.iter().map(|claim| claim.name).collect()
}

/// All points of a claim, one line each.
pub(super) fn csv(points: &[Point]) -> String {
    let line = |point: &Point| {
        let Point { parameter, at, quantity, value, .. } = point;
        let series = point.series.replace('"', "\"\"");
        let seed = point.seed.map_or_else(String::new, |seed| seed.to_string());
        format!("\"{series}\",\"{parameter}\",{at},{seed},\"{quantity}\",{value}\n")
    };
    std::iter::once("series,parameter,at,seed,quantity,value\n".to_string())
        .chain(points.iter().map(line))
        .collect()
}
