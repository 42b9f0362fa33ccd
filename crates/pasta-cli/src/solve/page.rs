//! The page of a run: the verdict, how bound and estimates came down, the forecast and the run within it, the noise, the ledger, the settings. As long as
//! the run goes on, the same file shows how far it is, and asks the browser to read it again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pasta_opt::certificate::{Basis, Certificate, Verdict};
use pasta_opt::draws::Role;
use pasta_opt::forecast::Said;
use pasta_opt::trace::Standing;
use pasta_opt::walk::Glimpse;
use pasta_report::answer::{Besides, Words, money};
use pasta_report::console::{Failure, say};
use pasta_report::number::{grouped, real, significant};
use pasta_report::{
    Axis, Chart, Column, Page, Part, Reference, Section, Series, Shape, Table, Tone, write_file,
};
use serde::Deserialize;

use super::{Live, Outcome, Spec, folder};

/// The name of the page in a folder.
const IN_FOLDER: &str = "page.html";
/// Seconds from one reading of a live page to the next.
const AGAIN: u32 = 2;

/// What a page shows of a run that the run itself does not keep.
pub(super) struct LivePage {
    path: PathBuf,
    /// Samples, and |grad f| where formulas know it.
    truths: Vec<(f64, f64)>,
    /// Samples, the bound of an attempt, and whether it certified.
    tries: Vec<(f64, f64, bool)>,
    forecasts: Vec<Said>,
    /// True if a page of the run that goes on could not be written, which is said once.
    has_failed: bool,
}

/// A line of an earlier trace, as far as a page shows it.
#[derive(Deserialize)]
struct Line {
    samples: Option<f64>,
    gradient_squared: Option<f64>,
    certificate: Option<Tried>,
}

#[derive(Deserialize)]
struct Tried {
    verdict: Verdict,
    bound: Option<f64>,
}

impl LivePage {
    /// The page of a run, which may be resumed from its folder. A path that is the folder means a file in it.
    pub(super) fn of(path: &Path, folder: Option<&Path>) -> Self {
        let is_folder = folder == Some(path) || path.is_dir();
        let path = if is_folder { path.join(IN_FOLDER) } else { path.to_owned() };
        let mut page =
            Self { path, truths: Vec::new(), tries: Vec::new(), forecasts: Vec::new(), has_failed: false };
        // What cannot be read is missing on the page, and nowhere else.
        let trace = folder.and_then(|folder| std::fs::read_to_string(folder::trace_file(folder)).ok());
        for line in trace.unwrap_or_default().lines() {
            let Ok(Line { samples: Some(samples), gradient_squared, certificate }) =
                serde_json::from_str(line)
            else {
                continue;
            };
            page.truths.extend(gradient_squared.map(|squared| (samples, squared.sqrt())));
            if let Some(Tried { verdict, bound: Some(bound) }) = certificate {
                page.tries.push((samples, bound, verdict == Verdict::Certified));
            }
        }
        page
    }

    /// A milestone was passed.
    pub(super) fn passed(&mut self, at: &Standing) {
        self.truths.extend(at.gradient_squared.map(|squared| (at.samples as f64, squared.sqrt())));
    }

    /// A certificate came to its end.
    pub(super) fn tried(&mut self, samples: u128, certificate: &Certificate) {
        let is_certified = certificate.verdict == Verdict::Certified;
        self.tries.extend(certificate.bound.map(|bound| (samples as f64, bound, is_certified)));
    }

    /// Keeps the run's forecasts, each once.
    fn keep_forecasts(&mut self, live: &Live) {
        let outlook = live.run.outlook();
        for said in [outlook.first, outlook.latest].into_iter().flatten() {
            if self.forecasts.last().is_none_or(|last| last.after < said.after) {
                self.forecasts.push(said);
            }
        }
    }

    /// The page of a run that goes on. Where it cannot be written the run goes on all the same.
    pub(super) fn show(&mut self, spec: &Spec, live: &Live, progress: &str) {
        self.keep_forecasts(live);
        let lead = format!("{progress}. This page is read again every {AGAIN} seconds until the run ends.");
        let page = Page {
            title: format!("Running: {} on {}", live.run.chosen().name, live.run.problem().words),
            lead,
            sections: self.sections(spec, live, Vec::new()),
        };
        self.write(page.live_html(AGAIN));
    }

    /// The page of a run whose oracle failed.
    pub(super) fn fail(&mut self, spec: &Spec, live: &Live, why: &str) {
        let page = Page {
            title: "Stopped".into(),
            lead: why.into(),
            sections: self.sections(spec, live, Vec::new()),
        };
        self.write(page.html());
    }

    fn write(&mut self, html: Result<String, Failure>) {
        if let Err(failure) = html.and_then(|html| write_file(&self.path, html))
            && !std::mem::replace(&mut self.has_failed, true)
        {
            say(&format!("warning: no page: {failure}"));
        }
    }

    /// The page of a run that ended. The same run has the same page, always.
    pub(super) fn finish(&mut self, spec: &Spec, live: &Live, outcome: &Outcome) -> Result<(), Failure> {
        self.keep_forecasts(live);
        let besides = Besides { price: spec.price.as_ref(), is_standardised: spec.problem.is_standardised() };
        let Words { answer, details } = Words::of(&outcome.report, besides);
        let mut rows = answer.into_iter();
        let (verdict, claim) = rows.next().unwrap_or_default();
        let title = format!("{}{}", verdict[..1].to_uppercase(), &verdict[1..]);
        let rest: Vec<_> = rows.chain(details).collect();
        let page = Page { title, lead: claim, sections: self.sections(spec, live, rest) };
        write_file(&self.path, page.html()?).map(drop)
    }

    fn sections(&self, spec: &Spec, live: &Live, words: Vec<(String, String)>) -> Vec<Section> {
        let glimpses: Vec<Glimpse> =
            live.run.view().certification.map_or_else(Vec::new, |log| log.glimpses().collect());
        let target = spec.task.certify.map(|_| live.run.task().certify.map_or(f64::NAN, |rule| rule.target));
        let mut sections = Vec::new();
        if !words.is_empty() {
            let rows = words.into_iter().map(|(name, text)| vec![name, text]).collect();
            let columns = Column::all(b"ll", ["", ""]);
            let table = Table { caption: String::new(), columns, rows };
            sections.push(Section::new("The answer", vec![Part::Table(table)]));
        }
        let mut way = Vec::new();
        way.extend(self.gradients(&glimpses, target).map(Part::Figure));
        way.extend(self.forecast(live).map(Part::Figure));
        way.extend(distance(live).map(Part::Figure));
        if !way.is_empty() {
            sections.push(Section::new("On the way", way));
        }
        if let Some(chart) = noise(live, &glimpses) {
            sections.push(Section::new("The noise", vec![Part::Figure(chart)]));
        }
        sections.push(Section::new("Where the samples went", vec![Part::Table(ledger(spec, live))]));
        let file = Part::Command(spec.effective.trim_end().to_owned());
        let text = Part::Text("The problem file, with the flags of the command line in it. A seed and a file give the same run, bit for bit.".into());
        sections.push(Section::new("Settings", vec![Part::Table(settings(live)), text, file]));
        sections
    }

    /// How large the gradient was seen, proved and known to be.
    fn gradients(&self, glimpses: &[Glimpse], target: Option<f64>) -> Option<Chart> {
        let before = |squared: f64| squared.max(0.0).sqrt();
        // Two standard errors to each side of the norm; below a noise that hides it, down to nothing that can be drawn.
        let band = glimpses.iter().map(|look| {
            let (norm, error) = (before(look.gradient_squared), 2.0 * look.error_squared.sqrt());
            (look.samples as f64, (norm - error).max(0.05 * (norm + error)), norm + error)
        });
        let looks = glimpses.iter().map(|look| (look.samples as f64, before(look.gradient_squared)));
        let bounds = |wanted: bool| {
            self.tries
                .iter()
                .filter(|(.., good)| *good == wanted)
                .map(|&(samples, bound, _)| (samples, bound))
                .collect()
        };
        let all = [
            Series::new("two standard errors", Tone::Blue, Shape::Band(band.collect())),
            Series::new("estimates by a few samples", Tone::Blue, Shape::Points(looks.collect())),
            Series::new("known by formulas", Tone::Grey, Shape::Line(self.truths.clone())),
            Series::new("bounds that were not enough", Tone::Red, Shape::Crosses(bounds(false))),
            Series::new("certified bound", Tone::Green, Shape::Crosses(bounds(true))),
        ];
        let series: Vec<Series> = all.into_iter().filter(|series| !is_empty(&series.shape)).collect();
        (!series.is_empty()).then(|| Chart {
            id: "gradient",
            title: "|grad f| over the samples".into(),
            caption: "Estimates decide when a certificate is worth its samples, and are claimed by nobody; a bound holds with the confidence that was \
                      asked for."
                .into(),
            x: Axis::log("samples"),
            y: Axis::log("|grad f|"),
            series,
            references: target.into_iter().map(|target| Reference::y("target", target)).collect(),
        })
    }

    /// What the run forecast of its own cost, and what it had drawn then.
    fn forecast(&self, live: &Live) -> Option<Chart> {
        let (first, last) = (self.forecasts.first()?, self.forecasts.last()?);
        let drawn = live.run.gate().ledger().samples() as f64;
        // The last forecast stands until the end.
        let ends = self.forecasts.iter().map(|said| (said.after as f64, said.forecast));
        let ends: Vec<_> = ends.chain([(drawn, last.forecast)]).collect();
        let begin = first.after as f64;
        let series = vec![
            Series::new(
                "forecast range",
                Tone::Blue,
                Shape::Band(ends.iter().map(|(x, f)| (*x, f.low, f.high)).collect()),
            ),
            Series::new(
                "its middle",
                Tone::Blue,
                Shape::Line(ends.iter().map(|(x, f)| (*x, f.middle)).collect()),
            ),
            Series::new("the run", Tone::Green, Shape::Line(vec![(begin, begin), (drawn, drawn)])),
        ];
        Some(Chart {
            id: "forecast",
            title: "What the run would cost, by its own forecasts".into(),
            caption: "A run within its forecast ends where its line is inside the band.".into(),
            x: Axis::log("samples drawn"),
            y: Axis::log("samples of the whole run"),
            series,
            references: live
                .run
                .gate()
                .budget()
                .map(|budget| Reference::y("budget", budget as f64))
                .into_iter()
                .collect(),
        })
    }
}

fn is_empty(shape: &Shape) -> bool {
    match shape {
        Shape::Line(data) | Shape::Points(data) | Shape::Crosses(data) => {
            data.len() < usize::from(matches!(shape, Shape::Line(_))) + 1
        }
        Shape::Band(data) => data.len() < 2,
    }
}

/// How far from the start the run stood at its milestones.
fn distance(live: &Live) -> Option<Chart> {
    let trail = live.run.trail();
    let points: Vec<_> = trail.iter().map(|mark| (mark.samples as f64, mark.distance)).collect();
    (points.len() > 2).then(|| Chart {
        id: "distance",
        title: "Distance from the start".into(),
        caption: "A run that still moves away has not arrived.".into(),
        x: Axis::log("samples"),
        y: Axis::linear("|x - x_0|"),
        series: vec![Series::new("last iterate", Tone::Green, Shape::Line(points))],
        references: Vec::new(),
    })
}

/// The variance of one sample where the run looked, over the distance from the start.
fn noise(live: &Live, glimpses: &[Glimpse]) -> Option<Chart> {
    let trail = live.run.trail();
    let distance = |step: u64| {
        let at = trail.partition_point(|mark| mark.step <= step).checked_sub(1);
        at.map_or(0.0, |at| trail[at].distance)
    };
    let seen = glimpses.iter().filter(|look| look.variance > 0.0);
    let points: Vec<_> = seen.map(|look| (distance(look.step), look.variance)).collect();
    if points.len() < 2 {
        return None;
    }
    let far = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let mut series = vec![Series::new("where the run looked", Tone::Blue, Shape::Points(points))];
    let declared = live.run.task().certify.map(|rule| rule.basis);
    if let (Some(Basis::Growth { growth, floor, .. }), true) = (declared, far > 0.0) {
        let curve = (0..=48).map(|i| far * f64::from(i) / 48.0);
        let curve = curve.map(|r| (r, (growth * r).powi(2) + floor * floor)).collect();
        series.push(Series::new("B^2 |x - x_0|^2 + b^2, declared", Tone::Grey, Shape::Line(curve)));
    }
    Some(Chart {
        id: "noise",
        title: "Variance of one sample over the distance from the start".into(),
        caption: "Each point is an estimate from the samples of one look. pasta calibrate measures how the noise grows.".into(),
        x: Axis::linear("|x - x_0|"),
        y: Axis::log("E|g - grad f|^2"),
        series,
        references: Vec::new(),
    })
}

/// What the samples of a role are for.
fn purpose(role: Role) -> &'static str {
    match role {
        Role::Large => "steps: fresh batches",
        Role::Small => "steps: corrections",
        Role::Certificate => "certificates",
        Role::Pilot => "pilots of certificates",
        Role::Look => "looks whether to try a certificate",
        Role::Search => "search for points of Moreau certificates",
        Role::Check => "check of the oracle",
        Role::Slopes => "comparison of losses and gradients at the point",
        Role::Calibration => "calibration",
        Role::Forecast => "forecast",
        Role::Coin | Role::Output | Role::Setup => "random choices",
        _ => "other",
    }
}

fn ledger(spec: &Spec, live: &Live) -> Table {
    let ledger = live.run.gate().ledger();
    let all = ledger.samples();
    let mut by_purpose: BTreeMap<&str, (u128, u128)> = BTreeMap::new();
    for (role, entry) in ledger.by_role() {
        let sum = by_purpose.entry(purpose(role)).or_default();
        *sum = (sum.0 + entry.samples, sum.1 + entry.evaluations);
    }
    let mut entries: Vec<(&str, (u128, u128))> = by_purpose.into_iter().collect();
    entries.sort_by_key(|(_, (samples, _))| std::cmp::Reverse(*samples));
    entries.push(("in all", (all, ledger.evaluations())));
    let row = |(what, (samples, evaluations)): (&str, (u128, u128))| {
        let share = format!("{} %", significant(100.0 * samples as f64 / (all as f64).max(1.0), 2));
        let price = spec.price.as_ref().map(|price| money(price, samples as f64));
        [what.to_owned(), grouped(samples), share, grouped(evaluations)].into_iter().chain(price).collect()
    };
    let mut columns = Column::all(b"lrrr", ["samples for", "samples", "share", "gradients evaluated"]);
    columns.extend(spec.price.as_ref().map(|_| Column::all(b"r", ["cost"])).into_iter().flatten());
    Table { caption: String::new(), columns, rows: entries.into_iter().map(row).collect() }
}

fn settings(live: &Live) -> Table {
    let task = live.run.task();
    let mut rows = vec![
        ("method", live.run.chosen().name.to_owned()),
        ("problem", live.run.problem().words.clone()),
        ("seed", task.seed.to_string()),
        ("budget", task.budget.map_or("none".into(), |budget| format!("{} samples", grouped(budget)))),
    ];
    if let Some(rule) = task.certify {
        rows.push(("target", format!("|grad f| <= {}", real(rule.target))));
        rows.push(("confidence", format!("{} %", real(100.0 * (1.0 - rule.delta)))));
        rows.push((
            "share of certificates",
            format!("at most {} % of all samples", real(100.0 * rule.share)),
        ));
        rows.extend(rule.basis.assumption().map(|assumption| ("assumed", assumption)));
    }
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    Table { caption: String::new(), columns: Column::all(b"ll", ["", ""]), rows }
}
