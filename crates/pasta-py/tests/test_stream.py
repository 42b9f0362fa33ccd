"""Rows that come once: what a run on them promises, how it ends, and what is refused."""

import json

import numpy as np
import pasta_opt
import pytest

TRUTH = np.array([1.0, -2.0, 3.0])


def table(count, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(count, 3))
    return [(i, row, y) for i, (row, y) in enumerate(zip(a, a @ TRUTH + rng.normal(size=count), strict=True))]


def gradient(x, rows):
    a, y = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    return (a @ x - y) @ a


def gradients_and_losses(x, rows):
    a, y = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    residual = a @ x - y
    return residual**2 / 2, residual[:, None] * a


class Watched:
    """A gradient that remembers which rows it was asked for at which points."""

    def __init__(self):
        self.seen = []

    def __call__(self, x, rows):
        self.seen.append((x.tobytes(), [row[0] for row in rows]))
        return gradient(x, rows)


def endless():
    seed = 0
    while True:
        yield from table(10_000, seed)
        seed += 1


@pytest.mark.parametrize("function", [gradient, gradients_and_losses])
def test_a_run_to_a_target_is_certified_and_the_same_rows_give_the_same_bits(function):
    results = [pasta_opt.minimize(pasta_opt.Stream(endless(), function), np.zeros(3), target=0.1) for _ in range(2)]
    one, other = results
    assert one.stop.kind == "certified" and np.linalg.norm(one.x - TRUTH) < 0.1
    assert one.x.tobytes() == other.x.tobytes() and one.ledger == other.ledger and one.certificate == other.certificate
    assert one.certificate.delta == 0.025
    said = dict(one.answer)
    assert "cannot be drawn again" in said["stream"] and "independent" in said["assumed"] and "ended" not in said


def test_a_stream_that_ends_ends_the_run_in_a_report_with_a_certificate_from_rows_kept_back():
    watched = Watched()
    stream = pasta_opt.Stream(iter(table(20_000)), watched)
    result = pasta_opt.minimize(stream, np.zeros(3), target=0.02)
    # Far too few rows for the target: the point is good, and the last certificate says how good.
    assert stream.read == 20_000 and "the stream ended after 20000 rows" in result.stop.meaning
    assert result.stop.kind != "certified" and not result.certificate.is_certified
    assert np.linalg.norm(result.x - TRUTH) < 0.2 and np.linalg.norm(result.x - TRUTH) <= result.certificate.bound < 1.0
    # A quarter, by a coin: five deviations are 306.
    assert 4_694 < result.certificate.samples < 5_306 and result.certificate.delta == 0.025
    # None of its rows was used before.
    at_point = {row for x, rows in watched.seen if x == result.x.tobytes() for row in rows}
    elsewhere = {row for x, rows in watched.seen if x != result.x.tobytes() for row in rows}
    assert len(at_point) >= result.certificate.samples and len(at_point & elsewhere) <= len(at_point) - result.certificate.samples
    said = dict(result.answer)
    assert said["ended"] == "the stream ended after 20000 rows" and "97.5 %" in said["last certificate"]
    # With a target that the rows kept back can certify, it is certified by them.
    within = pasta_opt.minimize(pasta_opt.Stream(iter(table(8_000)), gradient, kept=0.6), np.zeros(3), target=0.25, method=pasta_opt.methods.Sgd(eta=0.05, batch=16))
    assert within.certificate.is_certified and within.stop.kind == "certified" and within.answer[0][0] == "certified"


@pytest.mark.parametrize("method", ["auto", pasta_opt.methods.Sgd(eta=0.01, batch=16)])
def test_no_row_has_two_uses(method):
    """A sample is named by its place in the run: one row belongs to it, and that row to no other sample."""
    owners = {}

    class Spying(pasta_opt.Stream):
        def named(self, key, counters):
            rows = super().named(key, counters)
            for counter, row in zip(counters, rows, strict=True):
                assert owners.setdefault(row[0], (key, counter)) == (key, counter)
            return rows

    stream = Spying(iter(table(6_000)), gradient)
    pasta_opt.minimize(stream, np.zeros(3), target=0.05, method=method)
    roles = {owner[0][1] for owner in owners.values()}
    # Those of steps, and those of certificates; what the last certificate uses comes from a stream of its own.
    assert roles & {1, 2} and len(owners) <= stream.read


def test_false_certificates_are_no_more_frequent_than_delta():
    """60 streams that end: at a rate of 0.05, more than 8 bounds below the gradient have a probability of 0.004."""
    false = certified = 0
    for seed in range(60):
        stream = pasta_opt.Stream(iter(table(6_000, seed)), gradient, kept=0.8)
        result = pasta_opt.minimize(stream, np.zeros(3), target=0.3, method=pasta_opt.methods.Sgd(eta=0.05, batch=16), check=False)
        # The gradient of the expectation is x - truth.
        if result.certificate is not None and result.certificate.bound is not None:
            certified += result.certificate.is_certified
            false += np.linalg.norm(result.x - TRUTH) > result.certificate.bound
    assert certified > 20 and false <= 8


def test_a_budget_is_the_most_rows_that_are_read():
    for target in (None, 0.01):
        stream = pasta_opt.Stream(endless(), gradient)
        result = pasta_opt.minimize(stream, np.zeros(3), budget=4_000, target=target)
        assert 3_000 < stream.read <= 4_000 and np.linalg.norm(result.x - TRUTH) < 0.5
    # A stream that is shorter than the budget.
    stream = pasta_opt.Stream(iter(table(2_000)), gradient)
    result = pasta_opt.minimize(stream, np.zeros(3), budget=1_000_000)
    assert stream.read == 2_000 and np.linalg.norm(result.x - TRUTH) < 1.0 and "the stream ended" in result.stop.meaning


def test_a_row_that_has_left_the_window_ends_the_run_and_is_said():
    result = pasta_opt.minimize(pasta_opt.Stream(endless(), gradient, window=256), np.zeros(3), target=0.001, budget=400_000)
    assert "left the window of 256 rows: give a larger window=" in result.stop.meaning
    assert np.linalg.norm(result.x - TRUTH) < 0.5


def test_a_second_run_goes_on_where_the_first_stopped_reading():
    stream = pasta_opt.Stream(iter(table(20_000)), gradient)
    first = pasta_opt.minimize(stream, np.zeros(3), budget=5_000)
    read = stream.read
    second = pasta_opt.minimize(stream, first.x, budget=5_000)
    assert read <= 5_000 < stream.read <= 10_000 and np.linalg.norm(second.x - TRUTH) < 0.3
    found = pasta_opt.certify(stream, second.x, target=0.5, budget=2_000)
    assert found.is_certified and stream.read <= 12_000
    assert pasta_opt.check(stream, np.zeros(3)).is_believable
    with pytest.raises(ValueError, match="the stream ended after 20000 rows"):
        pasta_opt.calibrate(stream, np.zeros(3), budget=100_000)


def test_what_a_stream_cannot_do_is_refused(tmp_path):
    stream = pasta_opt.Stream(endless(), gradient)
    result = pasta_opt.minimize(stream, np.zeros(3), budget=2_000)
    result.save(tmp_path / "run")
    read = stream.read
    for call, words in [
        (lambda: pasta_opt.minimize(stream, np.zeros(3), budget=100, output=tmp_path / "other"), "output= keeps a run to be resumed"),
        (lambda: pasta_opt.resume(tmp_path / "run", stream), "draws samples again"),
        (lambda: pasta_opt.verify(result, stream), "by drawing its samples again"),
        (lambda: pasta_opt.compare(stream, np.zeros(3), budget=100), "on the same samples"),
        (lambda: pasta_opt.forecast(stream, np.zeros(3), target=0.1), "on the same samples"),
        (lambda: pasta_opt.minimize(stream, np.zeros(3), budget=100, workers=2), "a pool computes a function"),
        (lambda: pasta_opt.Stream(3, gradient), "not iterable"),
        (lambda: pasta_opt.Stream([], 3), "gradient must be a function"),
    ]:
        with pytest.raises(TypeError, match=words):
            call()
    assert stream.read == read
    with pytest.raises(ValueError, match="kept must be a share"):
        pasta_opt.Stream([], gradient, kept=1.0)
    with pytest.raises(ValueError, match="the stream ended after 3 rows, before the run could take a step"):
        pasta_opt.minimize(pasta_opt.Stream(table(3), gradient), np.zeros(3), budget=1_000)
    with pytest.raises(ValueError, match="say when to stop"):
        pasta_opt.minimize(stream, np.zeros(3))


def test_next_in_an_oracle_is_refused_with_a_hint():
    consumer = endless()

    def one(x, rng):
        _, a, y = next(consumer)
        return (a @ x - y) * a

    with pytest.raises(ValueError, match=r"keeps something from one call to the next.*pasta_opt.Stream\(consumer, gradient\)"):
        pasta_opt.minimize(pasta_opt.Oracle(one, losses=False), np.zeros(3), budget=1_000)
    short = iter(table(20))

    def ends(x, rng):
        _, a, y = next(short)
        return (a @ x - y) * a

    with pytest.raises(RuntimeError, match=r"an iterator ended inside of .*ends: .*pasta_opt.Stream\(rows, gradient\)"):
        pasta_opt.minimize(pasta_opt.Oracle(ends, losses=False), np.zeros(3), budget=1_000, check=False)


def test_a_stream_and_an_oracle_on_the_same_rows_walk_alike():
    """The engine is the same: a table by name gives what a stream gives, as long as nothing is kept back."""
    given = table(50_000)
    order = []

    class Listed(pasta_opt.Stream):
        def named(self, key, counters):
            rows = super().named(key, counters)
            order.extend(zip(((tuple(key), tuple(counter)) for counter in counters), rows, strict=True))
            return rows

    stream = Listed(iter(given), gradient, kept=0.0)
    method = pasta_opt.methods.Sgd(eta=0.01, batch=4, steps=50)
    on_stream = pasta_opt.minimize(stream, np.zeros(3), method=method, check=False)
    assert [row[0] for _, row in order] == list(range(stream.read)) and len(set(name for name, _ in order)) == len(order)
    x = np.zeros(3)
    batches = [given[1:][4 * i : 4 * i + 4] for i in range(50)]
    for batch in batches:
        x = x - 0.01 * gradient(x, batch) / 4
    # Sums are the same numbers, up to the order of additions in numpy.
    assert np.allclose(on_stream.x, x, rtol=1e-12) and json.loads(on_stream.report)["steps"] == 50
