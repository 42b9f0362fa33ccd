//! From the letters of the code to the letters of the paper.

/// Words that stand for a letter.
const LETTERS: &[(&str, &str)] = &[
    ("eps", "ε"),
    ("eta", "η"),
    ("beta", "β"),
    ("sigma", "σ"),
    ("lambda", "λ"),
    ("rho", "ρ"),
    ("mu", "μ"),
    ("phi", "φ"),
    ("delta", "δ"),
    ("Delta", "Δ"),
];

/// Signs and what they are set as. A line never breaks next to an equals sign.
const SIGNS: &[(&str, &str)] = &[("<=", "≤"), (">=", "≥"), (" = ", "\u{a0}=\u{a0}"), (" - ", " − ")];

/// `eps^2` becomes ε², `|grad f|` becomes |∇f|, `x_0` becomes x₀, `3.2e9` becomes 3.2×10⁹.
///
/// Only whole words count (the eps in "steps" is none), and all else stays as it is.
pub(crate) fn typeset(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
        let length = if let Some((sign, set)) = sign {
            out.push_str(set);
            sign.len()
        } else if !word.is_empty() {
            word_into(word, rest, &mut out)
        } else if first == '^' || first == '_' {
            shifted_into(rest, &mut out)
        } else {
            out.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    out
}

/// Sets one word and says how much of `rest` is used up.
fn word_into(word: &str, rest: &str, out: &mut String) -> usize {
    let tail = &rest[word.len()..];
    if word == "grad" && tail.starts_with(' ') {
        out.push('∇');
        return word.len() + 1;
    }
    let figures = exponent(tail);
    if word == "e" && !figures.is_empty() && out.ends_with(|c: char| c.is_ascii_digit()) {
        out.push_str("×10");
        out.extend(figures.chars().map(superscript));
        return word.len() + figures.len();
    }
    out.push_str(LETTERS.iter().find(|(name, _)| *name == word).map_or(word, |(_, letter)| letter));
    word.len()
}

/// The whole number at the start of a text; empty if there is none.
fn exponent(text: &str) -> &str {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if count == 0 { "" } else { &text[..text.len() - digits.len() + count] }
}

/// Sets `^-3`, `_0` or `_t`, and leaves any other hat or underscore alone.
fn shifted_into(rest: &str, out: &mut String) -> usize {
    let (mark, tail) = rest.split_at(1);
    let figures = exponent(tail);
    match mark {
        "^" if !figures.is_empty() => {
            out.extend(figures.chars().map(superscript));
            1 + figures.len()
        }
        "_" if !figures.is_empty() && !figures.starts_with('-') => {
            out.extend(figures.chars().filter_map(|c| char::from_u32('₀' as u32 + c.to_digit(10)?)));
            1 + figures.len()
        }
        "_" if tail.starts_with('t') && !tail[1..].starts_with(char::is_alphanumeric) => {
            out.push('ₜ');
            2
        }
        _ => {
            out.push_str(mark);
            1
        }
    }
}

fn superscript(c: char) -> char {
    match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        _ => c.to_digit(10).and_then(|d| char::from_u32('⁰' as u32 + d)).unwrap_or(c),
    }
}

#[cfg(test)]
mod tests {
    use super::typeset;

    #[test]
    fn the_papers_letters_are_set() {
        assert_eq!(typeset("|grad f(x_t)|^2 <= eps^2"), "|∇f(xₜ)|² ≤ ε²");
        assert_eq!(typeset("10^-13, x_0, sigma^2 = 1"), "10⁻¹³, x₀, σ²\u{a0}=\u{a0}1");
    }

    #[test]
    fn numbers_and_signs_are_set() {
        assert_eq!(typeset("3.2e9, 1e-8 and 2 e9"), "3.2×10⁹, 1×10⁻⁸ and 2 e9");
        assert_eq!(typeset("|x - x_0|, a-b, -1"), "|x − x₀|, a-b, -1");
    }

    #[test]
    fn ordinary_words_stay() {
        let plain = "steps with a beta_version, gradient, x^y, a_b, 5^, _, graduate, é^";
        assert_eq!(typeset(plain), plain.replace("beta", "β"));
    }
}
