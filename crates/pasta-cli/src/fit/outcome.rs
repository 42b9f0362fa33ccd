//! What a fit came to, for people and programs.

use pasta_opt::cross::CrossValidation;
use pasta_opt::inference::Summary;
use pasta_opt::score::Score;
use pasta_opt::stop::Stop;
use pasta_report::console::{Exit, Failure, Report};
use pasta_report::number::{given, real, upward};
use pasta_report::{Table, grouped};
use serde::Serialize;
use serde::ser::SerializeMap;

use super::arguments::EXACT;
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
    /// Whether the method is the one that needs no settings.
    pub(super) auto: bool,
    /// Another method that ends by itself.
    pub(super) other: Option<&'static str>,
    pub(super) passes: f64,
    pub(super) training: Score,
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
}

/// How well the model does on rows that it was not fitted to.
#[derive(Serialize)]
pub(super) struct Validation {
    pub(super) of: String,
    #[serde(flatten)]
    pub(super) score: Score,
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
            (stop, Verdict::NotCertified) if !self.auto && self.model.method != EXACT => {
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

    fn stopped(&self) -> String {
        match (self.stop, self.model.certificate.verdict) {
            (Stop::Settled, Verdict::Certified) if self.model.certificate.gap.is_some() => {
                "f is close enough to its least value".into()
            }
            (Stop::Settled, Verdict::Certified) => "the gradient is small enough".into(),
            (Stop::PlannedEnd, Verdict::NotCertified) if self.auto => {
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
                "certified: f is at most {} above its least value ({target} was allowed), by passes over all rows",
                upward(gap)
            ),
            (Verdict::Certified, None) => {
                format!("certified: {} = {gradient} <= {target}, by a pass over all rows", self.measure())
            }
            (Verdict::NotCertified | Verdict::Kinks, Some(gap)) => {
                format!("not certified: f may be {} above its least value, more than {target}", upward(gap))
            }
            (Verdict::NotCertified, None) => {
                format!("not certified: {} = {gradient}, more than {target}", self.measure())
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
        map.serialize_entry("training", &self.training)?;
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

impl Report for Outcome {
    fn text(&self) -> String {
        let certificate = &self.model.certificate;
        let row = |name: &str, value: String| (name.to_owned(), value);
        let mut rows = vec![
            row("result", words::headline(self)),
            row("stopped", self.stopped()),
            row("certificate", self.verdict()),
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
        if let Some(why) = self.rescued {
            let penalty = given(self.model.design.penalty);
            let why = why.split(", so ").next().unwrap_or(why);
            rows.insert(
                1,
                row("penalty", format!("{penalty}, since without one {why}; --penalty 0 asks for none")),
            );
        }
        if let Some(deviation) = self.model.deviation {
            rows.insert(
                3,
                row("scale", format!("{} from the residuals of an absolute fit", real(deviation))),
            );
        }
        if let Some(left_out) = &self.left_out {
            rows.insert(3, row("columns", left_out.clone()));
        }
        if !self.references.is_empty() {
            let references =
                format!("{}: other words of the column are compared with it", self.references.join(", "));
            rows.insert(4, row("reference", references));
        }
        if let Some(Validation { of, score }) = &self.validation {
            rows.push(row("validation", format!("{} of {of}", score_words(score))));
        }
        rows.extend(self.crossed.iter().map(|crossed| row("folds", words::crossed(crossed))));
        rows.push(row("explained", words::explained(&self.summary.explained, &self.training)));
        rows.push(row(
            "rows read",
            format!("{}, {:.1} passes", grouped(self.model.ledger.samples()), self.passes),
        ));
        rows.push(row(
            "model",
            self.output.clone().unwrap_or_else(|| "not written (-o FILE writes it)".into()),
        ));
        let table = Table::labelled(rows).text();
        format!("{table}\n\n{}", words::coefficients(&self.summary, &self.model.classes.0))
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
