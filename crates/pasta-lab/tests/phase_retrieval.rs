//! `pasta-lab phase-retrieval`, small.

use serde_json::Value;

#[test]
fn every_method_has_a_course_and_the_figures_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("pasta-lab");
    let words = "phase-retrieval --dimension 3 --rows 12 --passes 300 --runs 3 --json --figures";
    command.args(words.split(' ')).arg(folder.path());
    let output = command.assert().success().get_output().stdout.clone();
    let result: Value = serde_json::from_slice(&output).unwrap();
    let cells = result["cells"].as_array().unwrap();
    // Thirteen first steps for each of three methods, and auto.
    assert_eq!(cells.len(), 1 + 3 * 13);
    // Four times as many rows as coordinates: with the right step each method comes down to a tenth of the start at least.
    for method in ["sgd", "subgradient", "anchored", "auto"] {
        let ends =
            cells.iter().filter(|cell| cell["method"] == method).map(|cell| cell["last"].as_f64().unwrap());
        assert!(ends.fold(1.0, f64::min) < 0.1, "{method}");
    }
    for name in ["phase-retrieval.svg", "phase-retrieval-steps.svg"] {
        assert!(std::fs::read_to_string(folder.path().join(name)).unwrap().contains("<svg"));
    }
}
