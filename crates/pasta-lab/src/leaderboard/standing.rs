//! What the runs come to: who is ahead where, and over all.

use std::fmt::Write as _;

use pasta_report::console::Report;
use pasta_report::number::short;
use pasta_report::{Column, Table, fitted, significant};
use serde::Serialize;

use super::goals::{self, Goal};
use super::problems::{Kind, Problem, Set};
use super::race::{Entry, Limits, MARKS, geometric_mean, geometric_mean_of};

/// The whole race.
#[derive(Debug, Serialize)]
pub(super) struct Standing {
    #[serde(flatten)]
    limits: Limits,
    /// Who is compared with the others.
    champion: String,
    problems: Vec<ProblemRow>,
    totals: Vec<Total>,
    goals: Vec<Goal>,
    entries: Vec<Entry>,
}

/// One problem.
#[derive(Debug, Serialize)]
struct ProblemRow {
    problem: &'static str,
    about: &'static str,
    set: &'static str,
    kind: &'static str,
    /// The champion's final gradient over the initial one, the geometric mean over seeds.
    mean: Option<f64>,
    /// The standard error of its logarithm.
    uncertainty: Option<f64>,
    bad_ends: usize,
    /// The best of the others here, at its better batch.
    peer: Option<Peer>,
    /// The champion's mean over the peer's.
    ratio: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
struct Peer {
    method: String,
    batch: Option<u64>,
    mean: f64,
    bad_ends: usize,
}

/// One kind of problems together.
#[derive(Debug, Serialize)]
struct Total {
    kind: &'static str,
    problems: usize,
    /// Geometric means over the problems, each method at its better batch of each problem, best first.
    methods: Vec<Together>,
    /// The champion's over that of the best other.
    ratio: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Together {
    method: String,
    mean: f64,
    bad_ends: usize,
    runs: usize,
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Stream => "stream",
        Kind::Table => "table",
    }
}

/// A peer that is this many times better is a loss.
const LOSS: f64 = 1.5;

impl Standing {
    pub(super) fn new(
        limits: Limits,
        champion: &str,
        problems: &[&'static Problem],
        methods: &[String],
        entries: Vec<Entry>,
    ) -> Self {
        let rows = problems.iter().map(|problem| ProblemRow::new(problem, champion, &entries)).collect();
        let totals = [Kind::Stream, Kind::Table]
            .into_iter()
            .filter_map(|kind| Total::new(kind, champion, problems, methods, &entries))
            .collect();
        let goals = Vec::new();
        let mut standing =
            Self { limits, champion: champion.to_owned(), problems: rows, totals, goals, entries };
        standing.goals = standing.goals_of_the_race();
        standing
    }

    /// Where the champion loses, worst first.
    fn losses(&self) -> Vec<(&ProblemRow, f64)> {
        let mut losses: Vec<_> = self
            .problems
            .iter()
            .filter_map(|row| row.ratio.map(|ratio| (row, ratio)))
            .filter(|(_, ratio)| *ratio > LOSS)
            .collect();
        losses.sort_by(|a, b| b.1.total_cmp(&a.1));
        losses
    }
}

/// The better batch of a method on a problem.
fn better<'e>(entries: &'e [Entry], problem: &str, method: &str) -> Option<&'e Entry> {
    let of = entries.iter().filter(|entry| entry.problem == problem && entry.method == method);
    of.min_by(|a, b| a.mean().total_cmp(&b.mean()))
}

impl ProblemRow {
    fn new(problem: &'static Problem, champion: &str, entries: &[Entry]) -> Self {
        let own = better(entries, problem.name, champion);
        let peer = entries
            .iter()
            .filter(|entry| entry.problem == problem.name && entry.method != champion)
            .min_by(|a, b| a.mean().total_cmp(&b.mean()))
            .map(|entry| Peer {
                method: entry.method.clone(),
                batch: entry.batch,
                mean: entry.mean(),
                bad_ends: entry.bad(),
            });
        let ratio = own.zip(peer.as_ref()).map(|(own, peer)| own.mean() / peer.mean);
        Self {
            problem: problem.name,
            about: problem.about,
            set: match problem.set {
                Set::Development => "development",
                Set::KeptBack => "kept-back",
            },
            kind: kind_name(problem.kind),
            mean: own.map(Entry::mean),
            uncertainty: own.map(Entry::uncertainty),
            bad_ends: own.map_or(0, Entry::bad),
            peer,
            ratio,
        }
    }

    fn cells(&self) -> Vec<String> {
        let shown = |value: Option<f64>| value.map_or_else(String::new, |value| significant(value, 2));
        let peer = self.peer.as_ref().map_or_else(String::new, |peer| match peer.batch {
            Some(batch) => format!("{} ({batch})", peer.method),
            None => peer.method.clone(),
        });
        vec![
            self.problem.to_owned(),
            self.kind.to_owned(),
            shown(self.mean),
            shown(self.uncertainty.map(|u| u.exp() - 1.0)),
            self.bad_ends.to_string(),
            peer,
            shown(self.peer.as_ref().map(|peer| peer.mean)),
            shown(self.ratio),
        ]
    }
}

impl Total {
    fn new(
        kind: Kind,
        champion: &str,
        problems: &[&'static Problem],
        methods: &[String],
        entries: &[Entry],
    ) -> Option<Self> {
        let problems: Vec<_> = problems.iter().filter(|problem| problem.kind == kind).collect();
        if problems.is_empty() {
            return None;
        }
        let mean_of = |method: &String| {
            // A method that cannot run somewhere, for want of losses, has stood still there.
            let ratios = problems.iter().map(|p| better(entries, p.name, method).map_or(1.0, Entry::mean));
            let own = entries
                .iter()
                .filter(|e| e.method == *method && problems.iter().any(|p| p.name == e.problem));
            let (bad_ends, runs) = own.fold((0, 0), |(bad, runs), e| (bad + e.bad(), runs + e.ends.len()));
            Together { method: method.clone(), mean: geometric_mean(ratios), bad_ends, runs }
        };
        let mut means: Vec<Together> = methods.iter().map(mean_of).collect();
        means.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        let own = means.iter().find(|mean| mean.method == champion).map(|mean| mean.mean);
        let peer = means.iter().find(|mean| mean.method != champion).map(|mean| mean.mean);
        let ratio = own.zip(peer).map(|(own, peer)| own / peer);
        Some(Self { kind: kind_name(kind), problems: problems.len(), methods: means, ratio })
    }
}

impl Standing {
    pub(super) fn champion(&self) -> &str {
        &self.champion
    }

    /// The goals that the race itself measures.
    fn goals_of_the_race(&self) -> Vec<Goal> {
        let own: Vec<&Entry> = self.entries.iter().filter(|entry| entry.method == self.champion).collect();
        let (bad, runs) = own.iter().fold((0, 0), |(bad, runs), e| (bad + e.bad(), runs + e.ends.len()));
        let mut goals = vec![Goal::new("bad ends", bad as f64, 0.0, format!("of {runs} runs"))];
        for total in &self.totals {
            if let Some(ratio) = total.ratio {
                let most = if total.kind == kind_name(Kind::Stream) { 0.8 } else { 0.25 };
                let peer = total.methods.iter().find(|mean| mean.method != self.champion);
                let note =
                    peer.map_or_else(String::new, |peer| format!("{} over {}", self.champion, peer.method));
                goals.push(Goal::new(
                    format!("{}s together over the best peer", total.kind),
                    ratio,
                    most,
                    note,
                ));
            }
        }
        let worst = self.problems.iter().filter_map(|row| Some((row.problem, row.ratio?)));
        if let Some((problem, ratio)) = worst.max_by(|a, b| a.1.total_cmp(&b.1)) {
            let note = format!("{problem}; {} of {} are above", self.losses().len(), self.problems.len());
            goals.push(Goal::new("worst problem over its best peer", ratio, LOSS, note));
        }
        for (name, most) in [("quad-0", 0.002), ("quad-1", 0.015), ("quad-10", 0.075), ("quad-30", 0.15)] {
            if let Some(mean) = self.problems.iter().find(|row| row.problem == name).and_then(|row| row.mean)
            {
                goals.push(Goal::new(format!("final gradient of {name}"), mean, most, ""));
            }
        }
        goals
    }

    /// Adds what was measured beside the race.
    pub(super) fn add(&mut self, goals: Vec<Goal>) {
        self.goals.extend(goals);
    }

    pub(super) fn goal_table(&self) -> Table {
        goals::table(&self.goals)
    }

    /// Ends of the best other and of the champion on every problem of a kind.
    pub(super) fn pairs(&self, kind: &str) -> Vec<(f64, f64)> {
        let rows = self.problems.iter().filter(|row| row.kind == kind);
        rows.filter_map(|row| Some((row.peer.as_ref()?.mean, row.mean?))).collect()
    }

    /// Who is ahead, and where the champion loses, in a paragraph.
    pub(super) fn summary(&self) -> String {
        let met = self.goals.iter().filter(|goal| goal.met).count();
        let mut text = format!("{} meets {met} of {} goals.", self.champion, self.goals.len());
        let losses = self.losses();
        let all = self.problems.len();
        if losses.is_empty() {
            let _ = write!(text, " No peer is more than {LOSS} times better on any of {all} problems.");
        } else {
            let words: Vec<String> = losses
                .iter()
                .map(|(row, ratio)| {
                    let peer = row.peer.as_ref().map_or("", |peer| peer.method.as_str());
                    format!("{} by {} to {peer}", row.problem, significant(*ratio, 2))
                })
                .collect();
            let (count, list) = (losses.len(), words.join(", "));
            let _ = write!(text, " It loses by more than {LOSS} on {count} of {all} problems: {list}.");
        }
        text
    }

    pub(super) fn problem_table(&self) -> Table {
        let Limits { budget, seeds, .. } = self.limits;
        Table {
            caption: format!(
                "Final over initial gradient of {} after {} samples, geometric mean of {seeds} seeds, with its relative standard error; \
                 and of the best untuned peer of the problem",
                self.champion,
                pasta_report::grouped(budget)
            ),
            columns: Column::all(
                b"llrrrlrr",
                ["problem", "kind", "own", "+-", "bad", "best peer (batch)", "peer", "ratio"],
            ),
            rows: self.problems.iter().map(ProblemRow::cells).collect(),
        }
    }

    pub(super) fn total_tables(&self) -> Vec<Table> {
        let of = |total: &Total| {
            let rows = total.methods.iter().map(|mean| {
                let bad = format!("{} of {}", mean.bad_ends, mean.runs);
                vec![mean.method.clone(), significant(mean.mean, 3), bad]
            });
            let (count, kind) = (total.problems, total.kind);
            Table {
                caption: format!("{count} {kind}s together, each method at its better batch of each problem"),
                columns: Column::all(b"lrr", ["method", "mean", "bad ends"]),
                rows: rows.collect(),
            }
        };
        self.totals.iter().map(of).collect()
    }

    /// Samples until the champion held a checked point, over the problems: geometric mean, and how many runs got there.
    fn checked_table(&self) -> Table {
        let ends = || self.entries.iter().filter(|entry| entry.method == self.champion).flat_map(|e| &e.ends);
        let row = |(place, mark): (usize, &f64)| {
            let samples: Vec<f64> = ends().filter_map(|end| end.checked[place].map(|n| n as f64)).collect();
            let there = format!("{} of {}", samples.len(), ends().count());
            let mean = if samples.is_empty() { String::new() } else { short(geometric_mean_of(samples)) };
            vec![format!("{} %", 100.0 * mark), there, mean]
        };
        Table {
            caption: format!(
                "Samples until {} held a checked point with this part of the initial gradient",
                self.champion
            ),
            columns: Column::all(b"rrr", ["part", "runs", "geometric mean"]),
            rows: MARKS.iter().enumerate().map(row).collect(),
        }
    }
}

impl Report for Standing {
    fn text(&self) -> String {
        let mut parts = vec![self.problem_table().text()];
        parts.extend(self.total_tables().iter().map(Table::text));
        parts.push(self.checked_table().text());
        parts.push(self.goal_table().text());
        parts.push(fitted(&self.summary()));
        parts.join("\n\n")
    }
}
