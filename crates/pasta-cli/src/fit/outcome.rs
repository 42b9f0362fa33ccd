//! What a fit came to, for people and programs.

use pasta_opt::cross::CrossValidation;
use pasta_opt::inference::{Caution, Summary};
use pasta_opt::score::{Roc, Score};
use pasta_opt::stop::Stop;
use pasta_report::console::{Exit, Failure, Report, Tone};
use pasta_report::number::{given, real, upward};
use pasta_report::{Table, fitted, grouped};
use serde::Serialize;
use serde::ser::SerializeMap;

use super::arguments::{AUTO, EXACT};
use super::words;
use crate::table::{ModelFile, Verdict, score_words};

/// What a fit came to.
pub(super) struct Outcome {
    pub(super) model: ModelFile,
    pub(super) stop: Stop,
    /// True if weights have an l1 penalty or bounds.
    pub(super) has_term: bool,
    /// Whether a budget was given.
    pub(super) budgeted: bool,
    /// Another method that ends by itself.
    pub(super) other: Option<&'static str>,
    pub(super) passes: f64,
    pub(super) training: Score,
    /// How well scores tell two classes apart on the rows that were fitted, where everything is told.
    pub(super) roc: Option<Roc>,
    pub(super) validation: Option<Validation>,
    /// The coefficients, and what they explain.
    pub(super) summary: Summary,
    /// Predictions and labels of some rows, for a page.
    pub(super) pairs: Vec<(f64, f64)>,
    /// Scores by cross-validation.
    pub(super) crossed: Option<CrossValidation>,
    /// Why a penalty was added that nobody asked for.
    pub(super) rescued: Option<&'static str>,
    /// Why there is no minimiser.
    pub(super) no_minimiser: Option<(&'static str, &'static str)>,
    pub(super) output: Option<String>,
    /// Which columns were left out, and why.
    pub(super) left_out: Option<String>,
    /// Words with which the other words of their column are compared.
    pub(super) references: Vec<String>,
    /// Reasons to doubt it.
    pub(super) cautions: Vec<Caution>,
    /// Every setting as it was resolved.
    pub(super) settings: String,
    /// True if everything is to be told.
    pub(super) details: bool,
}

/// How well the model does on rows that it was not fitted to.
#[derive(Serialize)]
pub(super) struct Validation {
    pub(super) of: String,
    #[serde(flatten)]
    pub(super) score: Score,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) roc: Option<Roc>,
}

impl Outcome {
    /// Why there is no model, if there is none.
    pub(super) fn failure(&self) -> Option<Failure> {
        let certificate = &self.model.certificate;
        let reached = moved(certificate.start_gradient, certificate.gradient);
        let fail = |exit: Exit, message: String, hint: &str| {
            let mut failure = Failure::input(message).in_file(&self.model.data.file).hint(hint);
            failure.exit = exit;
            Some(failure)
        };
        let passes = self.passes.round();
        if let (false, Some((why, hint))) = (self.stop.is_lost(), self.no_minimiser) {
            return fail(Exit::Diverged, format!("{why} ({reached} in {passes} passes)"), hint);
        }
        match (self.stop, certificate.verdict) {
            (Stop::Diverged(divergence), _) => fail(
                Exit::Diverged,
                format!("diverged: {divergence}"),
                "a smaller step size, or --method auto",
            ),
            (stop, _) if stop.is_lost() => {
                fail(Exit::Diverged, stop.meaning(), "check the data, or use another --seed")
            }
            (_, Verdict::Worse) => fail(
                Exit::Diverged,
                format!(
                    "the method ended at a point that is worse than the start, where f is {}",
                    real(certificate.objective)
                ),
                "another --scale or --seed; losses that are not convex are flat far out, where a gradient is small and means nothing",
            ),
            (_, Verdict::Certified | Verdict::Kinks) => None,
            (_, Verdict::NotCertified) if self.budgeted => None,
            (stop, Verdict::NotCertified) if !self.is_auto() && self.model.method != EXACT => {
                let message = format!(
                    "not certified: {}; {reached}, not to {}",
                    stop.meaning(),
                    real(certificate.target)
                );
                fail(
                    Exit::NotCertified,
                    message,
                    "more --steps, other settings, a larger --target, or --method auto",
                )
            }
            (stop, Verdict::NotCertified) => {
                let why = match stop {
                    Stop::Settled => "no further step lowers the loss within rounding",
                    _ => "the passes ended first",
                };
                let message = format!(
                    "not certified: {why}; {reached} in {passes} passes, not to {}",
                    real(certificate.target)
                );
                let usual = "--penalty 1e-6, say, helps where columns nearly depend on each other or the loss has no minimiser; \
                            --target EPS asks for less; --budget ROWS allows more, and keeps what it buys";
                let hint = match self.other {
                    Some(other) => format!("--method {other} may do it; {usual}"),
                    None => usual.into(),
                };
                fail(Exit::NotCertified, message, &hint)
            }
        }
    }

    /// Why a loss with kinks is not certified, and what may help.
    pub(super) fn with_kinks(&self) -> String {
        match (self.model.certificate.gap, self.other) {
            (Some(_), _) => "not certified: f may be farther above its least value than the target\n\n\
                             hint: --target EPS asks for less"
                .into(),
            (None, Some(other)) if other == EXACT => format!(
                "not certified: the loss has kinks, where the gradient need not be small\n\n\
                 hint: --method {EXACT} bounds by how much f is above its least value, and may end lower"
            ),
            (None, _) => "not certified: the loss has kinks, where the gradient need not be small".into(),
        }
    }

    /// True if the method is the one that needs no settings.
    fn is_auto(&self) -> bool {
        self.model.method == AUTO
    }

    fn stopped(&self) -> String {
        match (self.stop, self.model.certificate.verdict) {
            (Stop::Certified, Verdict::Certified) if self.model.certificate.gap.is_some() => {
                "f is close enough to its least value".into()
            }
            (Stop::Certified, Verdict::Certified) => "the gradient is small enough".into(),
            (Stop::PlannedEnd, Verdict::NotCertified) if self.is_auto() => {
                "the budget has no room for another round".into()
            }
            (stop, _) => stop.meaning(),
        }
    }

    /// What the certificate's gradient is.
    fn measure(&self) -> &'static str {
        if self.has_term { "|x - prox(x - grad f)|" } else { "|grad f|" }
    }

    fn verdict(&self) -> String {
        let certificate = &self.model.certificate;
        let (gradient, target) = (real(certificate.gradient), real(certificate.target));
        match (certificate.verdict, certificate.gap) {
            (Verdict::Certified, Some(gap)) => format!(
                "f is at most {} above its least value ({target} was allowed), by passes over all rows",
                upward(gap)
            ),
            (Verdict::Certified, None) => {
                format!("{} = {gradient} <= {target}, by a pass over all rows", self.measure())
            }
            (Verdict::NotCertified | Verdict::Kinks, Some(gap)) => {
                format!("f may be {} above its least value, more than {target}", upward(gap))
            }
            (Verdict::NotCertified, None) => {
                format!("{} = {gradient}, more than {target}", self.measure())
            }
            (Verdict::Worse, _) => "nothing is certified: f is larger than at the start".into(),
            (Verdict::Kinks, None) => {
                format!(
                    "nothing is certified: the loss has kinks, where |grad f| = {gradient} need not be small"
                )
            }
        }
    }
}

/// Which way the gradient went.
fn moved(from: f64, to: f64) -> String {
    let went = if to > from { "went up" } else { "came down" };
    format!("|grad f| {went} from {} to {}", real(from), real(to))
}

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("data", &self.model.data)?;
        map.serialize_entry("loss", &self.model.loss)?;
        map.serialize_entry("design", &self.model.design)?;
        map.serialize_entry("method", &self.model.method)?;
        map.serialize_entry("seed", &self.model.seed)?;
        map.serialize_entry("stop", self.stop.kind())?;
        map.serialize_entry("certificate", &self.model.certificate)?;
        map.serialize_entry("deviation", &self.model.deviation)?;
        map.serialize_entry("left_out", &self.model.left_out)?;
        map.serialize_entry("result", &words::headline(self))?;
        map.serialize_entry("cautions", &self.cautions)?;
        map.serialize_entry("training", &self.training)?;
        map.serialize_entry("roc", &self.roc)?;
        map.serialize_entry("validation", &self.validation)?;
        map.serialize_entry("cross_validation", &self.crossed)?;
        map.serialize_entry("summary", &self.summary)?;
        map.serialize_entry("passes", &self.passes)?;
        map.serialize_entry("ledger", &self.model.ledger)?;
        map.serialize_entry("weights", &self.model.weights)?;
        map.serialize_entry("intercept", &self.model.intercept)?;
        map.serialize_entry("model", &self.output)?;
        map.end()
    }
}

/// A row of the answer, and how soon it gives way where there is no room.
struct Row {
    gives_way: u8,
    label: &'static str,
    text: String,
}

/// Lines of the answer, at most: what did not fit in is named in the last of them.
const LINES: usize = 8;

/// The rows as a table of a few lines.
fn brief(mut rows: Vec<Row>) -> String {
    let mut hidden: Vec<&'static str> = Vec::new();
    loop {
        let more = (!hidden.is_empty()).then(|| ("more", format!("{}: --details", hidden.join(", "))));
        let all = rows.iter().map(|row| (row.label, row.text.clone())).chain(more);
        let text = Table::labelled(all).text();
        let least = rows.iter().map(|row| row.gives_way).max().unwrap_or(0);
        if text.lines().count() <= LINES || least == 0 {
            return text;
        }
        let Some(place) = rows.iter().rposition(|row| row.gives_way == least) else { return text };
        let label = rows.remove(place).label;
        if !hidden.contains(&label) {
            hidden.push(label);
        }
    }
}

impl Outcome {
    /// The verdict, the score, and what to know before believing them.
    fn answer(&self) -> Vec<Row> {
        let row = |gives_way: u8, label: &'static str, text: String| Row { gives_way, label, text };
        let (verdict, score) = words::verdict_and_score(self);
        let mut rows = vec![row(0, verdict, score), row(5, "certificate", self.verdict())];
        if let Some(why) = self.rescued {
            let penalty = given(self.model.design.penalty);
            let why = why.split(", so ").next().unwrap_or(why);
            let text = format!("{penalty}, since without one {why}; --penalty 0 asks for none");
            rows.push(row(1, "penalty", text));
        }
        rows.extend(self.cautions.iter().map(|caution| row(2, "caution", caution.to_string())));
        rows.extend(self.left_out.iter().map(|left_out| row(2, "columns", left_out.clone())));
        if !self.references.is_empty() {
            let text =
                format!("{}: other words of the column are compared with it", self.references.join(", "));
            rows.push(row(4, "reference", text));
        }
        if let Some(deviation) = self.model.deviation {
            rows.push(row(4, "scale", format!("{} from the residuals of an absolute fit", real(deviation))));
        }
        rows.extend(self.crossed.iter().map(|crossed| row(1, "folds", words::crossed(crossed))));
        let model = self.output.clone().unwrap_or_else(|| "not written (-o FILE writes it)".into());
        rows.push(row(3, "model", model));
        rows
    }

    /// All else about the run.
    pub(super) fn rest(&self) -> Vec<(String, String)> {
        let certificate = &self.model.certificate;
        let row = |name: &str, value: String| (name.to_owned(), value);
        let mut rows = vec![
            row("settings", self.settings.clone()),
            row("stopped", self.stopped()),
            row("objective", format!("{}, the penalty included", real(certificate.objective))),
            row(
                self.measure(),
                format!(
                    "{} (exact; {} at the start)",
                    real(certificate.gradient),
                    real(certificate.start_gradient)
                ),
            ),
            row("training", score_words(&self.training)),
        ];
        if let Some(Validation { of, score, .. }) = &self.validation {
            rows.push(row("validation", format!("{} of {of}", score_words(score))));
        }
        rows.extend(words::roc(self).map(|area| row("area under ROC", area)));
        rows.push(row(
            "rows read",
            format!("{}, {:.1} passes", grouped(self.model.ledger.samples()), self.passes),
        ));
        rows
    }

    /// The answer for a page, which has room for all of it.
    pub(super) fn whole_answer(&self) -> Vec<(String, String)> {
        self.answer().into_iter().map(|row| (row.label.to_owned(), row.text)).collect()
    }
}

impl Report for Outcome {
    fn text(&self) -> String {
        let answer = if self.details {
            Table::labelled(self.whole_answer().into_iter().chain(self.rest())).text()
        } else {
            brief(self.answer())
        };
        let coefficients = words::coefficients(&self.summary, &self.model.classes.0);
        let explained = fitted(&words::explained(&self.summary.explained, &self.training));
        let mut parts = vec![answer, format!("{coefficients}\n{explained}")];
        if self.details {
            let confusion = words::confusion(&self.training, &self.model.classes.0);
            let tables = confusion.into_iter().chain(words::calibration(&self.training));
            parts.extend(tables.map(|table| table.text()));
        }
        parts.join("\n\n")
    }

    fn tone(&self) -> Tone {
        match self.model.certificate.verdict {
            Verdict::Certified => Tone::Good,
            Verdict::NotCertified | Verdict::Kinks => Tone::Open,
            Verdict::Worse => Tone::Bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::moved;

    #[test]
    fn a_gradient_that_is_larger_did_not_come_down() {
        assert_eq!(moved(56.2, 220.6), "|grad f| went up from 56.2 to 220.6");
        assert_eq!(moved(56.2, 0.5), "|grad f| came down from 56.2 to 0.5");
    }
}
