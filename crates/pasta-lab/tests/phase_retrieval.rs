//! `pasta-lab phase-retrieval`, small.

use serde_json::Value;

fn run(folder: &std::path::Path) -> Vec<u8> {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("pasta-lab");
    let words = "phase-retrieval --dimension 3 --rows 12 --passes 300 --curve-rows 18 --curve-passes 200 --runs 7 --json --figures";
    command.args(words.split(' ')).arg(folder);
    command.assert().success().get_output().stdout.clone()
}

#[test]
fn every_method_has_a_course_and_the_figures_are_written_and_are_the_same_again() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = run(folder.path());
    let result: Value = serde_json::from_slice(&output).unwrap();
    let cells = result["courses"]["cells"].as_array().unwrap();
    // Thirteen first steps for each of three methods, and auto.
    assert_eq!(cells.len(), 1 + 3 * 13);
    // Four times as many rows as coordinates: with the right step each method comes down to a tenth of the start at least.
    for method in ["sgd", "subgradient", "anchored", "auto"] {
        let ends =
            cells.iter().filter(|cell| cell["method"] == method).map(|cell| cell["last"].as_f64().unwrap());
        assert!(ends.fold(1.0, f64::min) < 0.1, "{method}");
    }
    let cells = result["curve"]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1 + 6 * 13);
    for cell in cells {
        // Half of seven runs are four; the interval is around the median.
        let arrived = cell["arrived"].as_u64().unwrap();
        assert_eq!(cell["passes"].is_number(), arrived >= 4, "{cell}");
        if let Some(passes) = cell["passes"].as_f64() {
            assert!(cell["low"].as_f64().unwrap() <= passes, "{cell}");
            assert!(cell["high"].as_f64().unwrap_or(200.0) >= passes, "{cell}");
        }
    }
    let arrives = |method: &str| {
        cells.iter().filter(|cell| cell["method"] == method && cell["passes"].is_number()).count()
    };
    // Steps that fall fast enough arrive, for some first steps; those that stay do not.
    assert!(arrives("prox-linear") >= 4 && arrives("falling-sgd") >= 2, "{cells:?}");
    assert_eq!((arrives("sgd"), arrives("anchored")), (0, 0));
    assert_eq!(run(other.path()), output);
    for name in ["phase-retrieval.svg", "phase-retrieval-steps.svg"] {
        let figure = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(figure.contains("<svg"));
        assert_eq!(figure, std::fs::read_to_string(other.path().join(name)).unwrap());
    }
}
