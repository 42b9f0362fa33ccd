//! How well a model does on rows, in words.

use pasta_opt::score::Score;
use pasta_report::number::real;

/// A score in a line.
pub(crate) fn score_words(score: &Score) -> String {
    let quality = match (score.accuracy, score.r2) {
        (Some(accuracy), _) => format!(", accuracy {accuracy:.4}"),
        (_, Some(r2)) => format!(", R2 {r2:.4}"),
        _ => String::new(),
    };
    let rows = super::counted(score.rows as u64, "row");
    let weighted = if score.weighted { ", weighted" } else { "" };
    format!("mean loss {}{quality} ({rows}{weighted})", real(score.loss))
}
