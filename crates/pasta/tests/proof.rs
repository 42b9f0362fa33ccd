//! The proof in proof/Certificate.v speaks of this code: the same constants, the same formulas, and the names that docs/certificate.md gives.
//! Whether the proof is one is for `cargo xtask proof` to say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use num_rational::Ratio;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

fn proof() -> String {
    read("proof/Certificate.v")
}

/// The code of the certificate, without comments.
fn code() -> String {
    let files = ["mod.rs", "sequential.rs", "rounding.rs", "moreau/geometry.rs"];
    let texts = files.map(|file| read(&format!("crates/pasta/src/certificate/{file}")));
    texts
        .join("\n")
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A decimal number, or a fraction, as it is written.
fn number(text: &str) -> Ratio<i64> {
    let decimal = |text: &str| {
        let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
        let digits = digits.trim_end_matches('0');
        Ratio::new(format!("{whole}{digits}").parse::<i64>().unwrap(), 10i64.pow(digits.len() as u32))
    };
    let mut parts = text.split('/').map(|part| decimal(part.trim()));
    let first = parts.next().unwrap();
    parts.fold(first, |a, b| a / b)
}

/// The constants that stand in capitals in the proof.
fn constants() -> BTreeMap<String, Ratio<i64>> {
    let proof = proof();
    let definitions = proof.lines().filter_map(|line| line.strip_prefix("Definition ")?.split_once(" := "));
    let in_capitals =
        definitions.filter(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    in_capitals
        .map(|(name, value)| (name.into(), number(value.trim_end_matches('.').trim_end_matches("%nat"))))
        .collect()
}

/// Text with every run of blanks made one, so that rustfmt may break lines.
fn unbroken(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace("( ", "(")
        .replace(" )", ")")
        .replace(" .", ".")
}

#[test]
fn the_proof_has_the_constants_of_the_code() {
    let code = code();
    let constants = constants();
    let names: Vec<&str> = constants.keys().map(String::as_str).collect();
    let expected = [
        "FIRST_SHARE",
        "LARGEST_MEAN",
        "LARGEST_SPREAD",
        "LEAST_COUNT",
        "LOOK_SHARE",
        "NEXT_SHARE",
        "TRACKS",
        "VARIANCE_SHARE",
    ];
    assert_eq!(names, expected, "constants of proof/Certificate.v");
    for (name, value) in constants {
        let mut declared = code.lines().filter_map(|line| {
            let line = line.trim_start_matches("pub(super) ").strip_prefix("const ")?.strip_prefix(&name)?;
            line.strip_prefix(": f64 = ").or_else(|| line.strip_prefix(": usize = "))?.strip_suffix(';')
        });
        let in_code = declared.next().unwrap_or_else(|| panic!("the code has no constant {name}"));
        assert_eq!(number(in_code), value, "{name}: the code and proof/Certificate.v disagree");
        assert_eq!(declared.next(), None, "{name} is declared twice");
    }
}

#[test]
fn what_the_proof_quotes_stands_in_the_code() {
    let (code, proof) = (unbroken(&code()), proof());
    let quoted: Vec<&str> =
        proof.split("In the code: ").skip(1).map(|rest| rest.lines().next().unwrap()).collect();
    assert!(quoted.len() >= 15, "only {} quotations", quoted.len());
    for quotation in quoted {
        let quotation = unbroken(quotation.trim_end_matches("*)"));
        assert!(
            code.contains(&quotation),
            "proof/Certificate.v is about `{quotation}`, and that is no longer in crates/pasta/src/certificate: prove what \
             stands there now"
        );
    }
}

#[test]
fn every_lemma_that_the_page_names_is_proved() {
    let (page, proof) = (read("docs/certificate.md"), proof());
    let table =
        page.split("| statement | in proof/Certificate.v |").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<&str> = table
        .lines()
        .skip(2)
        .flat_map(|row| row.split('|').nth(2).unwrap().split('`').skip(1).step_by(2))
        .collect();
    assert!(names.len() >= 15, "{names:?}");
    let is_proved = |name: &&str| {
        ["Theorem", "Lemma"].iter().any(|kind| {
            let start = format!("{kind} {name} ");
            proof.lines().any(|line| line.trim_start().starts_with(&start))
        })
    };
    for name in &names {
        assert!(
            is_proved(name),
            "docs/certificate.md names {name}, which proof/Certificate.v does not prove"
        );
    }
    assert!(!proof.contains("Admitted") && !proof.contains("Axiom "), "something is taken for granted");
    // What `cargo xtask proof` asks about is what the page names.
    let asked = read("xtask/src/proof.rs");
    let asked = asked.split("const THEOREMS").nth(1).unwrap().split("];").next().unwrap();
    for name in asked.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")) {
        assert!(
            names.contains(&name),
            "xtask/src/proof.rs asks about {name}, which docs/certificate.md does not name"
        );
    }
}
