//! What a hostile statistician would try: nothing that is wrong is said in silence.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use place::{TestDir, unwrapped};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

/// Numbers between 0 and 1 that look like noise, the same on every machine.
fn noise(k: u32) -> f64 {
    f64::from((k.wrapping_mul(2_654_435_761) ^ (k << 7)).wrapping_mul(1_597_334_677) >> 8)
        / f64::from(1 << 24)
}

/// A table whose rows are made by their numbers.
fn table(header: &str, rows: u32, row: impl Fn(u32) -> String) -> String {
    format!("{header}\n") + &(0..rows).map(|k| row(k) + "\n").collect::<String>()
}

/// a and b are noise, y = 1 + 2 a - b and half of a third noise.
fn usual(k: u32) -> [f64; 3] {
    let (a, b) = (noise(3 * k), noise(3 * k + 1));
    [a, b, 1.0 + 2.0 * a - b + 0.5 * noise(3 * k + 2)]
}

fn cautions(place: &TestDir, words: &str) -> Vec<String> {
    let result = place.json(words, 0);
    result["cautions"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_table_without_fault_gives_no_caution() {
    let place = TestDir::new();
    place.write("t.csv", &table("a,b,y", 100, |k| usual(k).map(|x| x.to_string()).join(",")));
    assert!(cautions(&place, "fit t.csv").is_empty());
    // Few different values repeat by chance.
    place.write("few.csv", &table("a,b,y", 100, |k| format!("{},{},{}", k % 3, k % 2, k * 7 % 5)));
    assert!(cautions(&place, "fit few.csv --loss least-squares").is_empty());
}

#[test]
fn what_a_table_should_be_asked_is_said() {
    let place = TestDir::new();
    let with = |column: &dyn Fn(u32) -> String| {
        table("x,a,b,y", 100, |k| {
            let [a, b, y] = usual(k);
            format!("{},{a},{b},{y}", column(k))
        })
    };
    let cases: [(&str, &dyn Fn(u32) -> String, &str); 6] = [
        ("counter", &|k| (1000 + k).to_string(), "column x goes up by 1 from row to row"),
        ("dates", &|k| format!("2026{:02}{:02}", k % 12 + 1, k % 28 + 1), "column x reads as days"),
        ("nines", &|k| if k % 20 == 0 { "-999".into() } else { noise(k).to_string() }, "x is -999 in 5 rows"),
        ("label", &|k| (3.0 - 2.0 * usual(k)[2]).to_string(), "column x is the label"),
        (
            "near",
            &|k| (usual(k)[0] + 1e-7 * noise(k + 999)).to_string(),
            "x, a nearly depend on other columns",
        ),
        ("years", &|k| (1920 + k).to_string(), ""),
    ];
    for (name, column, said) in cases {
        place.write("t.csv", &with(column));
        let all = cautions(&place, "fit t.csv");
        match said {
            "" => assert!(all.is_empty(), "{name}: {all:?}"),
            _ => assert!(all.iter().any(|caution| caution.contains(said)), "{name}: {all:?}"),
        }
    }
    place.write("t.csv", &table("a,b,y", 100, |k| usual(k % 25).map(|x| x.to_string()).join(",")));
    assert_eq!(cautions(&place, "fit t.csv")[0].split(" earlier").next(), Some("75 rows repeat"));
    place.pasta("inspect t.csv").assert().success().stdout(contains("75 rows repeat earlier ones"));
}

#[test]
fn a_model_with_as_many_coefficients_as_rows_is_not_called_good() {
    let place = TestDir::new();
    let wide = |label: &dyn Fn(u32) -> String| {
        let names: Vec<String> = (0..30).map(|j| format!("x{j}")).collect();
        table(&format!("{},y", names.join(",")), 20, |k| {
            let cells: Vec<String> = (0..30).map(|j| noise(100 * k + j).to_string()).collect();
            format!("{},{}", cells.join(","), label(k))
        })
    };
    place.write("numbers.csv", &wide(&|k| noise(k + 7).to_string()));
    place.write("classes.csv", &wide(&|k| (k * k % 3 % 2).to_string()));
    for file in ["numbers", "classes"] {
        let all = cautions(&place, &format!("fit {file}.csv"));
        assert!(all[0].contains("labels that mean nothing would be met as well"), "{file}: {all:?}");
    }
    // A penalty that was asked for holds the weights back.
    assert!(cautions(&place, "fit numbers.csv --penalty 0.1").is_empty());
    place.write("same.csv", &table("a,y", 20, |k| format!("{},5.5", noise(k))));
    assert_eq!(cautions(&place, "fit same.csv"), ["all labels are equal: there is nothing to explain"]);
}

#[test]
fn degrees_of_freedom_count_what_the_rows_decide() {
    let place = TestDir::new();
    // 84 words in 200 rows: with an intercept one of their columns is too many, and the table is sparse.
    let row = |k: u32| format!("w{},{}", k % 84, noise(k));
    place.write("words.csv", &table("w,y", 200, row));
    let result = place.json("fit words.csv --one-hot", 0);
    // R: anova(lm(y ~ w)) has 83 and 116 degrees of freedom.
    let degrees = &result["summary"]["explained"]["test"]["degrees"];
    assert_eq!((degrees[0].as_f64(), degrees[1].as_f64()), (Some(83.0), Some(116.0)), "{degrees}");
    assert!(
        result["cautions"][0].as_str().is_some_and(|text| text.contains("not unique: rank 84 of 85"))
            || !result["left_out"].as_array().unwrap().is_empty(),
        "{result:#}"
    );
}

#[test]
fn codes_are_not_numbers_in_silence() {
    let place = TestDir::new();
    place.write(
        "zip.csv",
        &table("zip,a,y", 40, |k| format!("{:05},{},{}", 2139 + k % 4, noise(k), k * k % 7)),
    );
    let fit = place.pasta("fit zip.csv --loss least-squares").assert().success();
    fit.stderr(contains("column \"zip\" holds \"02139\", read as the number 2139"));
    // As categories they keep their zeros, and 18 digits stay apart.
    let kept = place.json("fit zip.csv --loss least-squares --categories zip -o m.json", 0);
    assert!(kept["weights"].get("zip=02140").is_some(), "{}", kept["weights"]);
    place.write("new.csv", "zip,a\n02140,0.5\n");
    place.pasta("predict m.json new.csv").assert().success();
    let long = |k: u32| format!("9007199254740992{},{},{}", k % 3, noise(k), k % 7);
    place.write("long.csv", &table("id,a,y", 40, long));
    let apart = place.json("fit long.csv --loss least-squares --categories id", 0);
    let names: Vec<&String> = apart["weights"].as_object().unwrap().keys().collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("id=")).count(), 3, "{names:?}");
}

#[test]
fn classes_without_a_row_that_counts_are_refused() {
    let place = TestDir::new();
    place.write("w.csv", &table("a,w,y", 40, |k| format!("{},{},{}", noise(k), k % 2, (k + 1) % 2)));
    let refused = place.pasta("fit w.csv --weight w").assert().code(2);
    refused.stderr(contains("no row of the class \"1\" is left to fit, or all have the weight 0"));
    // Two numbers that are not whole are hardly classes.
    place.write("two.csv", "a,y\n1,0.25\n2,1.75\n");
    let two = place.pasta("fit two.csv").assert().success();
    two.stderr(contains(
        "loss least-squares (guessed: the numbers 0.25 and 1.75; --loss logistic if they are classes)",
    ));
}

#[test]
fn the_answer_takes_eight_lines_and_the_rest_is_told_on_request() {
    let place = TestDir::new();
    let names: Vec<String> = (0..30).map(|j| format!("a_column_with_a_long_name_{j}")).collect();
    let wide = table(&format!("{},y", names.join(",")), 20, |k| {
        let cells: Vec<String> =
            (0..30).map(|j| if j < 15 { noise(100 * k + j).to_string() } else { "3".into() }).collect();
        format!("{},{}", cells.join(","), noise(k + 7))
    });
    place.write("t.csv", &wide);
    let fit = "fit t.csv --loss huber --robust --cv 2";
    let brief = place.pasta(fit).assert().success();
    let brief = String::from_utf8(brief.get_output().stdout.clone()).unwrap();
    let answer: Vec<&str> = brief.lines().take_while(|line| !line.is_empty()).collect();
    assert!(answer.len() <= 8 && answer[0].starts_with("certified "), "{brief}");
    assert!(
        answer.last().is_some_and(|line| line.starts_with("more ") && line.ends_with("--details")),
        "{brief}"
    );
    let told = place.pasta(&format!("{fit} --details")).assert().success();
    let told = unwrapped(&told.get_output().stdout);
    for what in ["settings dense f64", "stopped", "objective", "training", "rows read", "columns left out"] {
        assert!(told.contains(what), "{what}: {told}");
    }
    let result: Value = place.json(fit, 0);
    assert!(result["result"].as_str().unwrap().starts_with("certified; "));
}

/// Counts and their exposures.
fn exposed() -> String {
    const COUNTS: [u32; 60] = [
        0, 6, 5, 14, 10, 9, 3, 2, 11, 9, 6, 26, 1, 5, 9, 8, 25, 21, 5, 8, 6, 15, 15, 3, 4, 4, 7, 11, 18, 2,
        2, 7, 14, 17, 31, 1, 6, 10, 11, 10, 0, 3, 7, 10, 8, 21, 2, 4, 10, 9, 20, 21, 1, 9, 7, 10, 16, 15, 5,
        5,
    ];
    table("a,b,exposure,y", 60, |k| {
        let (a, b) = (f64::from(37 * k % 60) / 60.0, f64::from(k * k % 17) / 17.0);
        format!("{a},{b},{},{}", f64::from(1 + 7 * k % 40).ln(), COUNTS[k as usize])
    })
}

/// Compares with numbers that R printed with 15 digits, of fits that R ended at 1e-14.
fn assert_near(found: &Value, expected: &[f64]) {
    let found: Vec<f64> = found.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} {expected}");
    }
}

#[test]
fn an_offset_is_that_of_r() {
    let place = TestDir::new();
    place.write("t.csv", &exposed());
    let columns = |result: &Value, of: &str| {
        let all = result["summary"]["coefficients"].as_array().unwrap();
        Value::from(all.iter().map(|one| one[of].clone()).collect::<Vec<_>>())
    };
    let all = |result: &Value, keys: &[&str]| {
        Value::from(keys.iter().map(|key| result["summary"]["explained"][key].clone()).collect::<Vec<_>>())
    };
    // glm(y ~ a + b + offset(exposure), poisson)
    let counts = place.json("fit t.csv --loss poisson --offset exposure -o counts.json", 0);
    assert_near(&columns(&counts, "estimate"), &[-0.970504394198343, 0.776788354476460, -0.512680916195322]);
    assert_near(&columns(&counts, "std_error"), &[0.109183178101816, 0.150068579794809, 0.126481706454198]);
    let keys = ["deviance", "null_deviance", "aic", "log_likelihood"];
    let expected = [24.5862092675783, 71.1995257090445, 254.4987676269413, -124.2493838134707];
    assert_near(&all(&counts, &keys), &expected);
    let predicted = place.json("predict counts.json t.csv", 0);
    let first = Value::from(predicted["predictions"].as_array().unwrap()[..3].to_vec());
    assert_near(&first, &[0.378891879032105, 4.748358274055507, 6.038560279049937]);
    // lm(y ~ a + b + offset(exposure)), and anova() with the model without a and b
    let numbers = place.json("fit t.csv --loss least-squares --offset exposure -o numbers.json", 0);
    assert_near(&columns(&numbers, "estimate"), &[5.87740471949918, 8.76451778102235, -7.67495781726392]);
    assert_near(&columns(&numbers, "std_error"), &[1.60852783685744, 2.38504023183787, 2.06037628003554]);
    let keys = ["residual_deviation", "aic"];
    assert_near(&all(&numbers, &keys), &[5.314780713565228, 375.6540366707206]);
    let statistic = numbers["summary"]["explained"]["test"]["statistic"].as_f64().unwrap();
    // As many digits as it prints.
    assert!((statistic - 12.66239).abs() < 1e-5, "{statistic}");
    let predicted = place.json("predict numbers.json t.csv", 0);
    let first = Value::from(predicted["predictions"].as_array().unwrap()[..3].to_vec());
    assert_near(&first, &[5.87740471949918, 12.91016411924493, 8.82463664191510]);
}

#[test]
fn an_offset_is_asked_for_wherever_the_model_goes() {
    let place = TestDir::new();
    place.write("t.csv", &exposed());
    place.json("fit t.csv --loss poisson --offset exposure -o m.json", 0);
    place.write("without.csv", "a,b\n0.5,0.5\n");
    let refused = place.pasta("predict m.json without.csv").assert().code(2);
    refused.stderr(contains("exposure"));
    let refused = place.pasta("fit t.csv --loss logistic --label a --offset exposure").assert().code(2);
    refused.stderr(contains("the logistic loss"));
    place.write("classes.csv", &table("a,o,y", 20, |k| format!("{},1,{}", noise(k), k % 2)));
    let refused = place.pasta("fit classes.csv --offset o").assert().code(2);
    refused.stderr(contains("the logistic loss takes no offset"));
    place.write("large.csv", &table("a,o,y", 20, |k| format!("{},{},{}", noise(k), 800 + k, k % 4)));
    let refused = place.pasta("fit large.csv --loss poisson --offset o").assert().code(2);
    refused.stderr(contains("an offset of counts must be between -700 and 700, but is 800"));
    // Intervals and rows kept aside have their offsets, too; scores are on the scale of the link.
    place.json("fit t.csv --loss poisson --offset exposure --validation 0.4 -o v.json", 0);
    place.pasta("predict v.json t.csv --interval 0.8").assert().success();
    let text = place.pasta("predict m.json t.csv --scores").output().unwrap().stdout;
    let score: f64 = String::from_utf8(text).unwrap().lines().nth(1).unwrap().parse().unwrap();
    // The logarithm of R's prediction.
    assert!((score - 4.748358274055507_f64.ln()).abs() < 1e-9, "{score}");
}

/// Colours, a number, and labels of both.
fn coloured() -> String {
    table("a,colour,y", 60, |k| {
        let colour = ["red", "green", "blue"][k as usize % 3];
        format!("{},{colour},{}", noise(k), 2.0 * noise(k) + f64::from(k % 3) + 0.1 * noise(k + 500))
    })
}

#[test]
fn words_that_the_model_has_not_seen_are_counted_if_they_may_be_there() {
    let place = TestDir::new();
    place.write("t.csv", &coloured());
    place.json("fit t.csv --one-hot -o m.json", 0);
    place.write("new.csv", "a,colour\n0.5,red\n0.5,mauve\n0.5,violet\n0.5,mauve\n");
    let refused = place.pasta("predict m.json new.csv").assert().code(2);
    refused.stderr(contains("\"mauve\" is not one of its 3 categories").and(contains("--unseen")));
    let output = place.pasta("predict m.json new.csv --unseen").output().unwrap();
    let said = unwrapped(&output.stderr);
    assert!(
        said.contains("3 cells with words that the model has not seen: colour (3: mauve, violet, ..)"),
        "{said}"
    );
    // A word of which no column counts is one in the place of the reference.
    let reference =
        place.json("fit t.csv --one-hot", 0)["left_out"][0]["feature"].as_str().unwrap().to_owned();
    let word = reference.strip_prefix("colour=").unwrap();
    place.write("reference.csv", &format!("a,colour\n0.5,{word}\n"));
    let expected = place.pasta("predict m.json reference.csv").output().unwrap().stdout;
    let lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines[1..], vec![String::from_utf8(expected).unwrap().trim().to_owned(); 3]);
    let dropped = place.pasta("predict m.json new.csv --unseen --missing drop-row").output().unwrap();
    let lines = String::from_utf8(dropped.stdout).unwrap();
    assert_eq!(lines.lines().skip(1).collect::<Vec<_>>(), ["NA"; 3]);
}

#[test]
fn an_interaction_is_the_product_of_its_columns() {
    let place = TestDir::new();
    place.write("t.csv", &table("a,b,y", 50, |k| usual(k).map(|x| x.to_string()).join(",")));
    let by_hand = table("a,b,a:b,y", 50, |k| {
        let [a, b, y] = usual(k);
        format!("{a},{b},{},{y}", a * b)
    });
    place.write("hand.csv", &by_hand);
    let (asked, hand) = (place.json("fit t.csv --interact a:b -o m.json", 0), place.json("fit hand.csv", 0));
    assert_eq!(asked["weights"], hand["weights"]);
    assert_eq!(asked["summary"], hand["summary"]);
    // Sparse rows, columns in another order, and a model that says itself what it needs.
    let sparse = place.json("fit t.csv --interact a:b --storage sparse", 0);
    let weight = |fit: &Value| fit["weights"]["a:b"].as_f64().unwrap();
    assert!((weight(&sparse) - weight(&hand)).abs() < 1e-9 * weight(&hand).abs(), "{sparse}");
    place.write("new.csv", "b,a\n0.5,0.25\n");
    place.write("hand-new.csv", "a,b,a:b\n0.25,0.5,0.125\n");
    place.json("fit hand.csv -o h.json", 0);
    let predict = |words: &str| place.pasta(words).output().unwrap().stdout;
    assert_eq!(predict("predict m.json new.csv"), predict("predict h.json hand-new.csv"));
    // The words of a column each have a product.
    place.write("c.csv", &coloured());
    let fit = place.json("fit c.csv --one-hot --interact a:colour", 0);
    let names: Vec<&String> = fit["weights"].as_object().unwrap().keys().collect();
    for name in ["a:colour=blue", "a:colour=green", "a:colour=red"] {
        assert!(names.iter().any(|own| *own == name), "{names:?}");
    }
    for (words, said) in [
        ("fit t.csv --interact a:c", "\"c\""),
        ("fit t.csv --interact a", "an interaction joins two columns"),
        ("fit t.csv --interact a:y", "\"y\""),
        ("fit t.csv --interact a:b --cache", "interactions"),
        ("fit t.csv --interact a:b --one-pass --loss least-squares", "--interact"),
        ("predict m.json new.csv --interact a:b", "the model knows its interactions"),
    ] {
        place.pasta(words).assert().code(2).stderr(contains(said));
    }
    place.write("t.svm", "1 1:2 2:3\n2 1:1 2:1\n");
    let refused = place.pasta("fit t.svm --loss least-squares --interact 1:2").assert().code(2);
    refused.stderr(contains("interactions are for columns of CSV files"));
    // A column has the name of the product.
    place.pasta("fit hand.csv --interact a:b").assert().code(2).stderr(contains("a:b"));
}

#[test]
fn classes_are_told_apart_in_full_on_request() {
    let place = TestDir::new();
    place.write(
        "t.csv",
        &table("a,y", 80, |k| format!("{},{}", noise(k), u8::from(noise(k) + noise(k + 99) > 1.0))),
    );
    let output = place.pasta("fit t.csv --validation 0.3 --details").output().unwrap();
    let said = unwrapped(&output.stdout);
    for words in
        ["area under ROC", "on rows not fitted", "Rows of each class", "Predicted probabilities in tenths"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let result = place.json("fit t.csv --validation 0.3 --page p.html", 0);
    let areas =
        [&result["roc"]["area"], &result["validation"]["roc"]["area"]].map(|area| area.as_f64().unwrap());
    assert!(areas.iter().all(|area| (0.5..=1.0).contains(area)), "{areas:?}");
    let page = place.read("p.html");
    assert!(page.contains("ROC") && page.contains(&format!("{:.4}", areas[0])));
}

#[test]
fn errors_from_resamples_are_for_kinks_too() {
    let place = TestDir::new();
    place.write("t.csv", &table("a,b,y", 100, |k| usual(k).map(|x| x.to_string()).join(",")));
    let fit = "fit t.csv --loss absolute --std-errors bootstrap --resamples 40";
    let result = place.json(fit, 0);
    assert_eq!(result["summary"]["std_errors"], "bootstrap");
    assert_eq!(result["summary"]["resamples"]["asked"], 40);
    let all = result["summary"]["coefficients"].as_array().unwrap();
    assert!(all.iter().all(|one| one["std_error"].as_f64().is_some_and(|error| error > 0.0)), "{all:?}");
    let alone = place.json("fit t.csv --loss absolute", 0);
    assert_eq!(alone["weights"], result["weights"]);
    assert!(result["passes"].as_f64() > alone["passes"].as_f64(), "resamples are read, and counted");
    let said = place.pasta(fit).output().unwrap().stdout;
    assert!(unwrapped(&said).contains("bootstrap, 40 resamples of the rows"));
    let penalised = place.json(&format!("{fit} --penalty 0.1"), 0);
    assert!(penalised["summary"]["omitted"].as_str().unwrap().contains("penalty"), "{penalised}");
    place.pasta("fit t.csv --resamples 40").assert().code(2);
}
