//! How a duel is told: its tables, and what they cannot say.

use pasta_opt::bounds::LowerBound;

use super::instance::{Instance, Safe};
use super::run::{End, Limits};
use super::score::{Findings, Outcome, Quartiles, Score, Verdict};
use pasta_report::console::Report;
use pasta_report::number::{digits, given, grouped, real, rough, significant};
use pasta_report::{Column, Table, fitted};

impl Report for Findings {
    fn text(&self) -> String {
        let mut parts = vec![self.instance.sentences().join("\n")];
        match &self.methods[..] {
            [only] => parts.push(only.lines(&self.instance)),
            _ => parts.extend([
                format!("{}\n{LEGEND}", self.comparison().text()),
                format!("{}\n{PROGRESS}\n{}", self.checks().text(), self.instance.limit()),
                self.settings().text(),
            ]),
        }
        let remarks = self.remarks();
        if !remarks.is_empty() {
            parts.push(remarks.join("\n"));
        }
        parts.extend(self.surprise());
        parts.extend(self.page.as_ref().map(|page| format!("Page with the curves: {}", page.display())));
        fitted(&parts.join("\n\n"))
    }
}

impl Findings {
    /// What a reader who knows the recipe's promise will wonder about.
    fn surprise(&self) -> Option<String> {
        let ((sgd, single), (_, batched)) = self.one_sample_and_batches()?;
        let enough = match sgd.leap {
            Some(leap) if leap > 1.0 => "one lucky sample a coordinate is enough",
            _ => "one sample a step is good enough to go by",
        };
        let page = if self.page.is_some() { "the page" } else { "--output DIR writes a page that" };
        Some(format!(
            "smooth took {} times the samples of sgd: on this instance {enough}.\n\
             That is not what the recipe's batches are for; {page} says more.",
            count(batched.samples.median / single.samples.median)
        ))
    }

    /// The samples that the methods took.
    pub(super) fn comparison(&self) -> Table {
        let over = match self.seeds {
            1 => format!("seed {}", self.seed),
            seeds => format!("median over {seeds} seeds"),
        };
        Table {
            caption: format!("Samples until |grad F| <= eps, {over}"),
            columns: Column::all(
                b"lrrrrl",
                ["method", "samples", "quartiles", "/ sharp", "/ closed", "reached"],
            ),
            rows: self.methods.iter().map(Outcome::cells).collect(),
        }
    }

    /// What else they took, and what was checked.
    pub(super) fn checks(&self) -> Table {
        Table {
            caption: "What it took besides, and what was checked".into(),
            columns: Column::all(
                b"lrrrrll",
                ["method", "prog_1", "steps", "evals", "fastest", "limit", "verdict"],
            ),
            rows: self.methods.iter().filter_map(|outcome| outcome.checked(&self.instance)).collect(),
        }
    }

    pub(super) fn settings(&self) -> Table {
        let set = self.methods.iter().filter(|outcome| !outcome.settings.is_empty());
        Table {
            caption: "Settings".into(),
            columns: Column::all(b"ll", ["method", "settings"]),
            rows: set.map(|outcome| vec![outcome.method.into(), outcome.spelled()]).collect(),
        }
    }

    /// What a table cannot say.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.methods.iter().filter_map(|outcome| outcome.remark(self.limits)).collect()
    }
}

/// The columns of the comparison that do not explain themselves.
pub(super) const LEGEND: &str = "/ sharp, / closed: samples in units of the two forms of the bound. The recipes would \
                                 go on: what they promise is about all the steps that they plan.";

/// The same of the checks.
pub(super) const PROGRESS: &str = "prog_1: the last coordinate of the chain beyond lambda, at the end.";

impl Instance {
    /// What the instance is, and what it proves.
    pub(super) fn sentences(&self) -> [String; 3] {
        let constants = self.constants.0.known();
        let constants: Vec<_> =
            constants.map(|(constant, value)| format!("{} = {}", constant.symbol(), real(value))).collect();
        let LowerBound { chain, p, distance, .. } = self.bound;
        let (chain, [p, distance]) = (grouped(chain), [p, distance].map(|value| significant(value, 3)));
        let [sharp, closed] = [self.sharp, self.closed].map(count);
        [
            format!("The hard instance of {}: {}.", self.theorem, constants.join(", ")),
            format!(
                "A chain of T = {chain} coordinates, D = {distance} away; a sample reveals the next one with probability p = {p}."
            ),
            format!(
                "A zero-respecting method needs (T - 1)/(2p) = {sharp} samples in expectation (closed form: {closed})."
            ),
        ]
    }

    /// What the check of the fastest run means.
    pub(super) fn limit(&self) -> String {
        let Safe { delta, runs, samples } = self.safe;
        let level = (1.0 - delta) * 100.0;
        let formula = format!("(T - log({}))/(2p)", given(runs as f64 / delta));
        let whose = if runs == 1 { "a run".to_owned() } else { format!("each of {runs} runs") };
        let first =
            format!("limit: with probability {level} % {whose} of a zero-respecting method needs more than");
        let second = if samples > 0.0 {
            format!("{formula} = {} samples; kept if the fastest did.", count(samples))
        } else {
            format!("{formula} samples, which says nothing here: the chain is too short for so many runs.")
        };
        format!("{first} {second}")
    }
}

impl Outcome {
    fn cells(&self) -> Vec<String> {
        let numbers = match &self.score {
            None => ["-"; 4].map(str::to_owned),
            Some(score) => {
                let Quartiles { lower, median, upper, .. } = score.samples;
                let range = format!("{} to {}", rough(lower), rough(upper));
                [count(median), range, self.ratio(score.ratio_to_sharp), self.ratio(score.ratio_to_closed)]
            }
        };
        [self.method.to_owned()].into_iter().chain(numbers).chain([self.reached()]).collect()
    }

    /// In how many runs it reached the target.
    fn reached(&self) -> String {
        let (reached, runs) = (self.reached, self.runs.len());
        match self.verdict {
            Verdict::NotRun => "not run".into(),
            Verdict::Diverged => format!("{reached} of {runs}, {} diverged", self.diverged),
            _ => format!("{reached} of {runs}"),
        }
    }

    /// A run that was stopped would have needed more; one that diverged says nothing.
    fn ratio(&self, ratio: f64) -> String {
        match self.verdict {
            Verdict::Diverged | Verdict::NotRun => "-".into(),
            Verdict::Reached => count(ratio),
            Verdict::ReachedInPart | Verdict::NotReached => format!(">{}", count(ratio)),
        }
    }

    fn checked(&self, instance: &Instance) -> Option<Vec<String>> {
        let score = self.score.as_ref()?;
        Some(vec![
            self.method.into(),
            format!("{}/{}", count(score.progress.median), instance.bound.chain),
            count(score.steps.median),
            count(score.evaluations.median),
            score.fastest.map_or_else(|| "-".into(), count),
            score.limit(instance).into(),
            score.zero_respecting_verdict.into(),
        ])
    }

    /// Everything about one method, a line each.
    fn lines(&self, instance: &Instance) -> String {
        let mut lines = vec![("method", self.method.to_owned()), ("settings", self.spelled())];
        if let Some(score) = &self.score {
            let [sharp, closed] =
                [score.ratio_to_sharp, score.ratio_to_closed].map(|ratio| self.ratio(ratio));
            lines.extend([
                ("reached", format!("|grad F| <= eps in {} runs", self.reached())),
                ("samples", score.samples.words()),
                ("evaluations", score.evaluations.words()),
                ("steps", score.steps.words()),
                ("prog_1", format!("{} of {}", score.progress.words(), instance.bound.chain)),
                ("samples/bound", format!("{sharp} (sharp form), {closed} (closed form)")),
                ("verdict", score.zero_respecting_verdict.to_owned()),
            ]);
            if let Some(fastest) = score.fastest.map(count) {
                let limit = score.limit(instance);
                lines.push(("fastest run", format!("{fastest} samples: limit {limit}")));
                lines.push(("", instance.limit()));
            }
        }
        Table::labelled(lines).text()
    }

    /// "eta = 1/L = 1, batch = 1".
    fn spelled(&self) -> String {
        let settings = self.settings.iter().map(|setting| {
            let formula = setting.formula.map_or_else(String::new, |formula| format!("{formula} = "));
            format!("{} = {formula}{}", setting.name, digits(setting.value, 3))
        });
        let planned = self.planned_steps.map(|steps| format!("{} steps planned", count(steps as f64)));
        settings.chain(planned).collect::<Vec<_>>().join(", ")
    }

    /// What is unusual about it.
    fn remark(&self, limits: Limits) -> Option<String> {
        let (method, runs) = (self.method, self.runs.len());
        match self.verdict {
            Verdict::Reached => None,
            Verdict::NotRun => Some(format!("{method} was not run: {}.", self.reason.as_deref()?)),
            Verdict::Diverged => Some(format!("{method} diverged in {} of {runs} runs.", self.diverged)),
            Verdict::ReachedInPart | Verdict::NotReached => {
                let mut stops: Vec<(String, usize)> = Vec::new();
                for why in self.runs.iter().filter_map(|run| run.end.limit(limits)) {
                    match stops.iter_mut().find(|(other, _)| *other == why) {
                        Some((_, number)) => *number += 1,
                        None => stops.push((why, 1)),
                    }
                }
                let stops: Vec<_> = stops
                    .iter()
                    .map(|(why, number)| format!("{number} of {runs} runs stopped {why}"))
                    .collect();
                Some(format!("{method}: {}.", stops.join(", ")))
            }
        }
    }
}

impl End {
    /// What stopped a run that neither reached its target nor diverged.
    fn limit(&self, limits: Limits) -> Option<String> {
        match self {
            Self::Reached | Self::Diverged { .. } => None,
            Self::OutOfSteps => Some(format!("after {} steps (--steps)", real(limits.steps as f64))),
            Self::OutOfBudget => {
                let budget = limits.budget.map_or(f64::INFINITY, |budget| budget as f64);
                Some(format!("before drawing more than {} samples (--budget)", real(budget)))
            }
            Self::PlanFinished => Some("at the end of their plan".into()),
            Self::BatchTooLarge { .. } => Some("before a batch of more than 2^63 samples".into()),
        }
    }
}

impl Score {
    fn limit(&self, instance: &Instance) -> &'static str {
        match self.limit_kept {
            Some(true) if instance.safe.samples > 0.0 => "kept",
            Some(false) => "BEATEN",
            _ => "-",
        }
    }
}

impl Quartiles {
    /// "5.48e5 (quartiles 4.3e5 to 7.4e5, all from 3.0e5 to 1.1e6)".
    fn words(&self) -> String {
        let Self { least, lower, median, upper, greatest } = *self;
        if least == greatest {
            return count(median);
        }
        let [least, lower, upper, greatest] = [least, lower, upper, greatest].map(rough);
        format!("{} (quartiles {lower} to {upper}, all within {least} to {greatest})", count(median))
    }
}

/// A number of samples or steps, or a ratio of them: three digits where there are many or few.
pub(super) fn count(number: f64) -> String {
    match number {
        whole if whole.fract() == 0.0 && whole < 1e5 => grouped(whole as u128),
        few if few < 1e5 => significant(few, 3),
        many => format!("{many:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn numbers_are_short() {
        assert_eq!([99_999.0, 258_459.0, 21.4321, 7.0].map(count), ["99,999", "2.58e5", "21.4", "7"]);
    }
}
