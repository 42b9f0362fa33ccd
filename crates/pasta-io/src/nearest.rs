//! What somebody may have meant.

use strsim::osa_distance;

/// The name among these that is closest to what was written, if one is close: it takes one change for a short name, and one for every three letters of a
/// longer one. A change is a letter more, less, another, or two that are swapped; capitals, `-` and `_` count for nothing.
///
/// ```
/// use pasta_io::nearest;
///
/// assert_eq!(nearest("logistc", ["least-squares", "logistic", "hinge"]), Some("logistic"));
/// assert_eq!(nearest("price", ["Price", "rooms"]), Some("Price"));
/// assert_eq!(nearest("colour", ["size", "rooms"]), None);
/// ```
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let written = plain(written);
    let far = (written.chars().count() / 3).max(1);
    let distances = names.into_iter().map(|name| (osa_distance(&written, &plain(name)), name));
    // One letter is as close to any other as to what was meant.
    let close =
        |(changes, name): &(usize, &str)| *changes <= far && (*changes == 0 || name.chars().count() > 1);
    distances.filter(close).min_by_key(|(changes, _)| *changes).map(|(_, name)| name)
}

/// What is longer, in bytes, was not meant to be a name; comparing megabytes with every name takes seconds.
const LONGEST: usize = 256;

fn plain(name: &str) -> String {
    name.chars().filter(|letter| !"-_ ".contains(*letter)).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn what_is_far_from_all_is_near_none() {
        let losses = ["least-squares", "logistic", "multinomial", "huber", "hinge", "absolute"];
        for (written, meant) in [
            ("leastsquares", Some("least-squares")),
            ("Least_Squares", Some("least-squares")),
            ("logsitic", Some("logistic")),
            ("multinominal", Some("multinomial")),
            ("hubr", Some("huber")),
            ("hinegs", Some("hinge")),
            ("mse", None),
            ("", None),
            ("quadratic-programming", None),
        ] {
            assert_eq!(nearest(written, losses), meant, "{written}");
        }
        let long = "logistic".repeat(1 << 20);
        assert_eq!((nearest(&long, [long.as_str()]), nearest(&long, losses)), (None, None));
        // One letter for another is no mistake in writing; a capital is.
        assert_eq!((nearest("z", ["x", "y"]), nearest("Y", ["x", "y"])), (None, Some("y")));
        // The closest, and the first of those that are as close.
        assert_eq!(nearest("beta", ["betta", "beta2", "bets"]), Some("betta"));
        assert_eq!(nearest("größe", ["grösse", "Größe"]), Some("Größe"));
    }
}
