//! The result of a fit in words: how good it is beside a model without columns, and its coefficients.

use std::iter;

use pasta_opt::cross::CrossValidation;
use pasta_opt::inference::{Coefficient, Explained, LEVEL, Law, Resamples, Summary};
use pasta_opt::score::{Bin, Score};
use pasta_report::number::{given, real, significant};
use pasta_report::{Column, Table, fitted, unbroken};

use super::outcome::{Outcome, Validation};
use crate::table::{Verdict, counted};

/// Coefficients that are shown, at most.
const SHOWN: usize = 20;
/// Above this probability, chance explains as much as the columns do.
const CHANCE: f64 = 0.05;

/// The verdict on the point, and the score of the model beside that of one without columns.
pub(super) fn headline(outcome: &Outcome) -> String {
    let (verdict, score) = verdict_and_score(outcome);
    format!("{verdict}; {score}")
}

/// The verdict on the point in a word or two, and the score.
pub(super) fn verdict_and_score(outcome: &Outcome) -> (&'static str, String) {
    let verdict = match outcome.model.certificate.verdict {
        Verdict::Certified => "certified",
        Verdict::NotCertified | Verdict::Kinks => "not certified",
        Verdict::Worse => "worse than the start",
    };
    let training = against(&outcome.training, Some(&outcome.summary));
    let score = match &outcome.validation {
        None => training,
        Some(Validation { score, .. }) => {
            let rows = counted(score.rows as u64, "row");
            format!("{} on {rows} not fitted; {training} on those fitted", against(score, None))
        }
    };
    let test = outcome.summary.explained.test;
    let chance = match test {
        Some(test) if test.p_value > CHANCE => {
            format!("; chance would explain as much (p = {})", significant(test.p_value, 2))
        }
        _ => String::new(),
    };
    (verdict, format!("{score}{chance}"))
}

fn against(score: &Score, summary: Option<&Summary>) -> String {
    match (score.accuracy, score.base_rate, score.r2) {
        (Some(accuracy), Some(base), _) => {
            format!("accuracy {accuracy:.4} (base rate {base:.4})")
        }
        (_, _, Some(r2)) => match summary.and_then(|summary| summary.explained.share()) {
            Some(share) if (share - r2).abs() > 5e-5 => {
                format!("R2 {r2:.4}, {:.2} % of a constant's loss explained", 100.0 * share)
            }
            _ => format!("R2 {r2:.4} (the mean alone has 0)"),
        },
        _ => format!("mean loss {}", real(score.loss)),
    }
}

/// What cross-validation says.
pub(super) fn crossed(crossed: &CrossValidation) -> String {
    let best = crossed.best();
    let quality = match (best.accuracy, best.r2) {
        (Some(accuracy), _) => format!("accuracy {accuracy:.4}, "),
        (_, Some(r2)) => format!("R2 {r2:.4}, "),
        _ => String::new(),
    };
    let (loss, error) = (significant(best.loss, 4), significant(best.std_error, 2));
    let score =
        format!("{quality}mean loss {loss} (std. error {error}) on rows not fitted, {} folds", crossed.folds);
    match &crossed.path[..] {
        [_] => score,
        many => format!("penalty {} of {} tried: {score}", given(best.penalty), many.len()),
    }
}

/// How much the columns explain.
pub(super) fn explained(explained: &Explained, training: &Score) -> String {
    let mut parts = Vec::new();
    let mut say = |value: Option<f64>, words: &str| {
        parts.extend(value.map(|value| format!("{words} {}", real(value))));
    };
    let deviation = explained.residual_deviation;
    say(deviation, "residual deviation");
    if deviation.is_none() {
        say(explained.deviance, "deviance");
        say(explained.null_deviance, "null deviance");
    }
    if explained.deviance.is_none() {
        say(explained.null_loss, "mean loss of a constant");
    }
    say(explained.log_likelihood, "log likelihood");
    say(explained.aic, "AIC");
    if let Some(test) = explained.test {
        let p = significant(test.p_value, 2);
        let (value, columns) = (significant(test.statistic, 4), test.degrees.0);
        parts.push(match test.degrees.1 {
            Some(residual) => format!("F {value} on {columns} and {residual} degrees of freedom, p = {p}"),
            None => format!("deviance falls by {value} on {columns} degrees of freedom, p = {p}"),
        });
    }
    if parts.is_empty() {
        parts.push(format!("mean loss {}", real(training.loss)));
    }
    parts.join("; ")
}

/// The coefficients as a table, the largest of them where there are many, and how their errors were computed.
pub(super) fn table(summary: &Summary, classes: &[String], shown: usize) -> Table {
    let has_errors = summary.std_errors.is_some();
    let mut chosen: Vec<(usize, &Coefficient)> = summary.coefficients.iter().enumerate().collect();
    if chosen.len() > shown {
        let size = |one: &Coefficient| one.statistic.or(one.effect).unwrap_or(one.estimate).abs();
        chosen.sort_by(|a, b| size(b.1).total_cmp(&size(a.1)).then(a.0.cmp(&b.0)));
        chosen.truncate(shown);
        chosen.sort_by_key(|(place, _)| *place);
    }
    let letter = if matches!(summary.law, Some(Law::Student { .. })) { "t" } else { "z" };
    let mut columns = vec![Column::left("coefficient"), Column::right("estimate")];
    if has_errors {
        columns.extend([Column::right("std. error"), Column::right("95 % interval")]);
        columns.extend([Column::right(letter), Column::right("p")]);
    }
    let row = |one: &Coefficient| {
        let name = match one.class.and_then(|class| classes.get(class)) {
            Some(class) => format!("{class}: {}", one.name),
            None => one.name.clone(),
        };
        let mut cells = vec![unbroken(&name), significant(one.estimate, 5)];
        if has_errors {
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "left out".into());
            cells.push(or_none(one.std_error.map(|error| significant(error, 4))));
            let interval = one
                .interval
                .map(|[low, high]| format!("{} .. {}", significant(low, 4), significant(high, 4)));
            cells.push(unbroken(&interval.unwrap_or_default()));
            cells.push(one.statistic.map_or_else(String::new, |value| significant(value, 3)));
            cells.push(one.p_value.map_or_else(String::new, |p| significant(p, 2)));
        }
        cells
    };
    Table { caption: String::new(), columns, rows: chosen.iter().map(|(_, one)| row(one)).collect() }
}

/// The rows of each class by the class that they are given; `None` where there are no classes, or too many to show.
pub(super) fn confusion(score: &Score, classes: &[String]) -> Option<Table> {
    const MOST: usize = 20;
    let matrix = &score.confusion;
    if matrix.is_empty() || matrix.len() > MOST {
        return None;
    }
    let name = |class: usize| classes.get(class).cloned().unwrap_or_else(|| class.to_string());
    let mut rows = vec![iter::once(String::new()).chain((0..matrix.len()).map(name)).collect::<Vec<_>>()];
    rows.extend(matrix.iter().enumerate().map(|(class, given)| {
        iter::once(name(class)).chain(given.iter().map(|weight| real(*weight))).collect()
    }));
    let columns = iter::once(Column::left("")).chain(matrix.iter().map(|_| Column::right(""))).collect();
    Some(Table {
        caption: "Rows of each class (down) by the class that they are given (across)".into(),
        columns,
        rows,
    })
}

/// What probabilities are worth, in tenths; `None` where the loss has none.
pub(super) fn calibration(score: &Score) -> Option<Table> {
    let row = |bin: &Bin| vec![real(bin.weight), significant(bin.predicted, 4), significant(bin.observed, 4)];
    (!score.calibration.is_empty()).then(|| Table {
        caption: "Predicted probabilities in tenths".into(),
        columns: Column::all(b"rrr", ["weight of rows", "mean predicted", "share observed"]),
        rows: score.calibration.iter().map(row).collect(),
    })
}

/// The area under the ROC curve of two classes, on the rows that were fitted and on others.
pub(super) fn roc(outcome: &Outcome) -> Option<String> {
    let held = outcome.validation.as_ref().and_then(|validation| validation.roc.as_ref());
    let held = held.map_or_else(String::new, |roc| format!("; {:.4} on rows not fitted", roc.area));
    outcome.roc.as_ref().map(|roc| format!("{:.4}{held}", roc.area))
}

/// What stands below the coefficients.
pub(super) fn notes(summary: &Summary, classes: &[String], shown: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let all = summary.coefficients.len();
    if all > shown {
        let by = if summary.std_errors.is_some() { "of z or t" } else { "for columns of deviation 1" };
        notes.push(format!("the {shown} largest {by} of {all}; --json has all"));
    }
    match (summary.std_errors, summary.law) {
        (Some(kind), Some(Law::Student { degrees })) => notes.push(format!(
            "std. errors: {}; t on {degrees} degrees of freedom; intervals cover with {} %",
            kind.name(),
            100.0 * LEVEL
        )),
        (Some(kind), _) if summary.resamples.is_some() => notes.extend(summary.resamples.map(|resamples| {
            let Resamples { used, asked, .. } = resamples;
            let without = if used < asked {
                format!(" ({} without a certified fit of the same columns not counted)", asked - used)
            } else {
                String::new()
            };
            let level = 100.0 * LEVEL;
            format!("std. errors: {}, {asked} resamples of the rows{without}; intervals: the middle {level} % of them", kind.name())
        })),
        (Some(kind), _) => {
            notes.push(format!("std. errors: {}; intervals cover with {} %", kind.name(), 100.0 * LEVEL));
        }
        (None, _) => {}
    }
    if let Some(why) = &summary.omitted {
        notes.push(format!("no std. errors: {why}"));
    }
    if let Some(reference) = summary.reference.and_then(|class| classes.get(class)) {
        notes.push(format!("each class is compared with {reference}"));
    }
    if summary.standardised {
        notes.push("coefficients belong to products of standardised columns".into());
    }
    notes
}

/// The coefficients and what stands below them.
pub(super) fn coefficients(summary: &Summary, classes: &[String]) -> String {
    let notes = notes(summary, classes, SHOWN);
    let lines = notes.iter().map(|note| fitted(note));
    [table(summary, classes, SHOWN).text()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}
