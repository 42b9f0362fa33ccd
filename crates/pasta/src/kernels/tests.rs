//! What Miri can run through in a minute: every loop that asks for memory ahead, once with rows whose neighbours are asked for and once with rows
//! that are too wide for it, against a loop without such requests.

use std::borrow::Cow;

use super::rows::{DenseRows, SparseRows, add_dense, add_sparse, dot_dense, dot_each, sweep_dense};

fn number(k: usize) -> f64 {
    ((k * 7919) % 101) as f64 / 50.0 - 1.0
}

/// c = <a, u> + 1/2 for each row, then out += c a.
fn plain(rows: &[&[f64]], u: &[f64], out: &mut [f64]) -> Vec<f64> {
    let score = |row: &&[f64]| row.iter().zip(u).map(|(a, u)| a * u).sum::<f64>() + 0.5;
    let scores: Vec<f64> = rows.iter().map(score).collect();
    for (row, c) in rows.iter().zip(&scores) {
        out.iter_mut().zip(*row).for_each(|(out, a)| *out += c * a);
    }
    scores
}

fn close(a: &[f64], b: &[f64]) -> bool {
    // Sums of at most a few thousand terms below 10^3, in another order.
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-8)
}

/// 12 KB of rows are asked for ahead: of 150 columns ten rows, of 1 column 32, of 2100 columns (more than 16 KB) none.
#[test]
fn rows_that_are_asked_for_ahead_are_those_of_the_plain_loop() {
    for (columns, count) in [(150, 13), (1, 40), (2100, 2)] {
        let values: Vec<f64> = (0..columns * count).map(number).collect();
        let u: Vec<f64> = (0..columns).map(|k| number(k + 3)).collect();
        let rows: Vec<&[f64]> = values.chunks_exact(columns).rev().collect();
        let mut expected = vec![0.0; columns];
        let scores = plain(&rows, &u, &mut expected);
        let table = DenseRows { values: &values, columns };
        let (row, visits) = (|i: usize| count - 1 - i, (count, count));

        let mut out = vec![0.0; columns];
        let slopes = add_dense(table, visits, row, |_, z| z, (&u, 0.5), &mut out, 0.0);
        assert!(close(&out, &expected) && close(&[slopes], &[scores.iter().sum()]));

        let mut found = vec![0.0; count];
        dot_dense(table, count, row, (&u, 0.5), &mut found);
        assert!(close(&found, &scores));
        let mut one = [0.0];
        dot_each(rows[0], &[(Cow::Borrowed(&u[..]), 0.5)], &mut one);
        assert!(close(&one, &scores[..1]));

        // A step of length 0 leaves the weights where they are, so that every score is seen.
        let seen = std::cell::RefCell::new(Vec::new());
        let mut w = u.clone();
        sweep_dense(
            table,
            0..count,
            |_, z| {
                seen.borrow_mut().push(z);
                0.0
            },
            &mut w,
            (0.5, 1.0),
        );
        assert!(
            close(&w, &u) && close(&seen.into_inner(), &scores.iter().rev().copied().collect::<Vec<_>>())
        );

        let starts: Vec<u64> = (0..=count).map(|row| (row * columns) as u64).collect();
        let indices: Vec<u32> = (0..columns * count).map(|k| (k % columns) as u32).collect();
        let sparse = SparseRows { starts: &starts, indices: &indices, values: &values };
        out.fill(0.0);
        add_sparse(sparse, visits, row, |_, z| z, (&u, 0.5), &mut out, 0.0);
        assert!(close(&out, &expected));
    }
}
