//! What somebody may have meant.

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
    let far = (written.len() / 3).max(1);
    let distances = names.into_iter().map(|name| (changes(&written, &plain(name)), name));
    // One letter is as close to any other as to what was meant.
    let close =
        |(changes, name): &(usize, &str)| *changes <= far && (*changes == 0 || name.chars().count() > 1);
    distances.filter(close).min_by_key(|(changes, _)| *changes).map(|(_, name)| name)
}

/// What is longer, in bytes, was not meant to be a name; comparing megabytes with every name takes seconds.
const LONGEST: usize = 256;

fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|letter| !"-_ ".contains(*letter)).flat_map(char::to_lowercase).collect()
}

/// The least number of changes that make one of the other, where no letter is changed twice.
fn changes(a: &[char], b: &[char]) -> usize {
    // The last three rows of the table of distances between beginnings of both.
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let other = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = other.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{changes, nearest, plain};

    #[test]
    fn changes_are_counted_from_both_sides_alike() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("a", "b", 1),
            ("exat", "exact", 1),
        ] {
            let (a, b) = (plain(a), plain(b));
            assert_eq!((changes(&a, &b), changes(&b, &a)), (expected, expected));
        }
    }

    #[test]
    fn what_is_far_from_all_is_near_none() {
        let losses = ["least-squares", "logistic", "multinomial", "huber", "hinge", "absolute"];
        for (written, meant) in [
            ("leastsquares", Some("least-squares")),
            ("Least_Squares", Some("least-squares")),
            ("logsitic", Some("logistic")),
            ("multinominal", Some("multinomial")),
            ("hubr", Some("huber")),
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
