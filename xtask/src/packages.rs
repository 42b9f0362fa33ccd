//! What others need of our packages: licences that fit, a compiler that is old enough, files that are there.
//!
//! `cargo xtask check` looks at the metadata of all dependencies. It needs nothing installed and no network; deny.toml says the
//! same to `cargo deny`, which knows advisories as well.

use std::env;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Licences that ask for no more than a notice.
const ALLOWED: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Files that every package brings.
const NEEDED: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Whether every dependency has a licence that is allowed, and none needs a newer compiler than we promise.
pub(crate) fn dependencies() -> bool {
    let Some(metadata) = metadata() else { return false };
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let (ours, others): (Vec<_>, Vec<_>) = packages.iter().partition(|package| package["source"].is_null());
    let Some(promised) = ours.iter().filter_map(|package| version(&package["rust_version"])).min() else {
        eprintln!("no package of the workspace has a rust-version");
        return false;
    };
    let complaints: Vec<String> = others.iter().filter_map(|package| complaint(package, promised)).collect();
    complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
    eprintln!("{} dependencies: licences and Rust {}.{}", others.len(), promised.0, promised.1);
    complaints.is_empty() && !others.is_empty()
}

/// What is wrong with a dependency.
fn complaint(package: &Value, promised: (u32, u32)) -> Option<String> {
    let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
    let licence = text(&package["license"]);
    if !allows(licence) {
        return Some(format!(
            "{name}: its licence is {licence:?}, which xtask/src/packages.rs does not allow"
        ));
    }
    let needed = version(&package["rust_version"]).filter(|needed| *needed > promised)?;
    Some(format!(
        "{name}: needs Rust {}.{}, the workspace promises {}.{}",
        needed.0, needed.1, promised.0, promised.1
    ))
}

/// Whether every package that is published has its licences, a readme, a description and settings for docs.rs.
pub(crate) fn contents() -> bool {
    let Some(metadata) = metadata() else { return false };
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    // `publish` is null for those that anyone may publish, an empty list for those that stay here.
    let published: Vec<&Value> = packages
        .iter()
        .filter(|package| package["source"].is_null() && package["publish"].is_null())
        .collect();
    let mut good = !published.is_empty();
    for package in published {
        for complaint in incomplete(package) {
            eprintln!("{}: {complaint}", text(&package["name"]));
            good = false;
        }
    }
    good
}

/// What a package lacks.
fn incomplete(package: &Value) -> Vec<String> {
    let name = text(&package["name"]);
    let mut complaints = Vec::new();
    for key in ["description", "license", "readme"] {
        if text(&package[key]).is_empty() {
            complaints.push(format!("no {key} in Cargo.toml"));
        }
    }
    if package["metadata"]["docs"]["rs"].is_null() {
        complaints.push("no [package.metadata.docs.rs] in Cargo.toml".into());
    }
    let folder = Path::new(text(&package["manifest_path"])).parent().unwrap_or(Path::new("."));
    if !folder.join(text(&package["readme"])).is_file() {
        complaints.push(format!("the readme {} is not there", text(&package["readme"])));
    }
    let readme = std::fs::read_to_string(folder.join(text(&package["readme"]))).unwrap_or_default();
    if readme.contains("](") {
        complaints.push("its readme links to files, which the package does not bring".into());
    }
    match output(&["package", "--list", "--allow-dirty", "--package", name]) {
        None => complaints.push("cargo package --list failed".into()),
        Some(list) => {
            let missing = NEEDED.iter().filter(|file| !list.lines().any(|line| line == **file));
            complaints.extend(missing.map(|file| format!("the package has no {file}")));
        }
    }
    complaints
}

fn metadata() -> Option<Value> {
    let json = output(&["metadata", "--format-version", "1", "--locked", "--all-features"])?;
    serde_json::from_str(&json).map_err(|error| eprintln!("cargo metadata: {error}")).ok()
}

fn output(arguments: &[&str]) -> Option<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).output().ok()?;
    if !output.status.success() {
        eprintln!("cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        return None;
    }
    String::from_utf8(output.stdout).ok()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The first two numbers of a version.
fn version(value: &Value) -> Option<(u32, u32)> {
    let mut numbers = value.as_str()?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Whether an SPDX expression can be met with allowed licences: any side of an OR, both sides of an AND. A slash is the OR of
/// old manifests.
fn allows(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    let met = any(&mut rest);
    rest.is_empty() && met == Some(true)
}

fn any(words: &mut &[&str]) -> Option<bool> {
    let mut met = all(words)?;
    while let ["OR", rest @ ..] = words {
        *words = rest;
        met |= all(words)?;
    }
    Some(met)
}

fn all(words: &mut &[&str]) -> Option<bool> {
    let mut met = one(words)?;
    while let ["AND", rest @ ..] = words {
        *words = rest;
        met &= one(words)?;
    }
    Some(met)
}

fn one(words: &mut &[&str]) -> Option<bool> {
    match words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = any(words)?;
            *words = words.strip_prefix(&[")"])?;
            Some(met)
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            Some(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()))
        }
        [name, rest @ ..] => {
            *words = rest;
            Some(ALLOWED.contains(name))
        }
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ALLOWED, allows, complaint};
    use serde_json::json;

    #[test]
    fn an_expression_is_met_by_any_side_of_an_or_and_both_of_an_and() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "LGPL-2.1-or-later OR MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "GPL-3.0 AND MIT OR Zlib",
        ] {
            assert!(allows(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT",
            "MIT)",
            "MIT Zlib",
            "MIT AND",
            "Zlib WITH LLVM-exception",
        ] {
            assert!(!allows(bad), "{bad}");
        }
    }

    #[test]
    fn a_dependency_that_needs_a_newer_compiler_is_named() {
        let package =
            |rust: &str| json!({ "name": "a", "version": "1.0.0", "license": "MIT", "rust_version": rust });
        assert_eq!(complaint(&package("1.89.0"), (1, 89)), None);
        let said = complaint(&package("1.90"), (1, 89)).unwrap();
        assert_eq!(said, "a 1.0.0: needs Rust 1.90, the workspace promises 1.89");
        let bare = json!({ "name": "b", "version": "2.0.0" });
        assert!(complaint(&bare, (1, 89)).unwrap().starts_with("b 2.0.0: its licence is \"\""));
    }

    #[test]
    fn cargo_deny_is_told_the_same_licences() {
        let deny = include_str!("../../deny.toml");
        let list = deny.split("allow = [").nth(1).unwrap().split(']').next().unwrap();
        let names: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(names, ALLOWED);
    }
}
