//! What the runs come to: who is ahead where, and over all.

use pasta_report::console::Report;
use pasta_report::{Column, Table, significant};
use serde::Serialize;

use super::problems::{Kind, Problem, Set};
use super::race::{Entry, Limits, geometric_mean};

/// The whole race.
#[derive(Debug, Serialize)]
pub(super) struct Standing {
    #[serde(flatten)]
    limits: Limits,
    /// Who is compared with the others.
    champion: String,
    problems: Vec<Row>,
    totals: Vec<Total>,
    entries: Vec<Entry>,
}

/// One problem.
#[derive(Debug, Serialize)]
struct Row {
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
    methods: Vec<Mean>,
    /// The champion's over that of the best other.
    ratio: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Mean {
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
        let rows = problems.iter().map(|problem| Row::new(problem, champion, &entries)).collect();
        let totals = [Kind::Stream, Kind::Table]
            .into_iter()
            .filter_map(|kind| Total::new(kind, champion, problems, methods, &entries))
            .collect();
        Self { limits, champion: champion.to_owned(), problems: rows, totals, entries }
    }

    /// Where the champion loses, worst first.
    fn losses(&self) -> Vec<(&Row, f64)> {
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

impl Row {
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
            Mean { method: method.clone(), mean: geometric_mean(ratios), bad_ends, runs }
        };
        let mut means: Vec<Mean> = methods.iter().map(mean_of).collect();
        means.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        let own = means.iter().find(|mean| mean.method == champion).map(|mean| mean.mean);
        let peer = means.iter().find(|mean| mean.method != champion).map(|mean| mean.mean);
        let ratio = own.zip(peer).map(|(own, peer)| own / peer);
        Some(Self { kind: kind_name(kind), problems: problems.len(), methods: means, ratio })
    }
}

impl Report for Standing {
    fn text(&self) -> String {
        let Limits { budget, seeds, .. } = self.limits;
        let table = Table {
            caption: format!(
                "Final over initial gradient after {} samples, geometric mean of {seeds} seeds; the best untuned peer at its better batch",
                pasta_report::grouped(budget)
            ),
            columns: Column::all(
                b"llrrrlrr",
                ["problem", "kind", "own", "+-", "bad", "best peer (batch)", "peer", "ratio"],
            ),
            rows: self.problems.iter().map(Row::cells).collect(),
        };
        let mut text = table.text();
        for total in &self.totals {
            let rows = total.methods.iter().map(|mean| {
                vec![
                    mean.method.clone(),
                    significant(mean.mean, 3),
                    format!("{} of {}", mean.bad_ends, mean.runs),
                ]
            });
            let table = Table {
                caption: format!(
                    "{} {}s together, each method at its better batch of each problem",
                    total.problems, total.kind
                ),
                columns: Column::all(b"lrr", ["method", "mean", "bad ends"]),
                rows: rows.collect(),
            };
            text.push_str(&format!("\n\n{}", table.text()));
            if let Some(ratio) = total.ratio {
                text.push_str(&format!("\n{} / best peer: {}", self.champion, significant(ratio, 3)));
            }
        }
        let losses = self.losses();
        text.push_str(&format!(
            "\n\n{} loses by more than {LOSS} on {} of {} problems",
            self.champion,
            losses.len(),
            self.problems.len()
        ));
        for (row, ratio) in losses {
            let peer = row.peer.as_ref().map_or("", |peer| peer.method.as_str());
            text.push_str(&format!("\n  {} by {} to {peer}", row.problem, significant(ratio, 2)));
        }
        text
    }
}
