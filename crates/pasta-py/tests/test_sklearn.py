"""The estimators for scikit-learn."""

import json
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pasta_opt
import pytest

pytest.importorskip("sklearn")
import scipy.optimize  # noqa: E402
import scipy.sparse  # noqa: E402
from pasta_opt import PastaClassifier, PastaRegressor  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_diabetes, load_iris  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, PoissonRegressor  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import PolynomialFeatures, StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

X, Y = load_diabetes(return_X_y=True)
FLOWERS, KINDS = load_iris(return_X_y=True)

# Two checks ask that weights and repeated rows give the same predictions to seven digits, on fifteen rows of which six have weight 0.
WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
# For each estimator why, and settings with which they pass, too.
EXEMPT = [
    (PastaRegressor, "without a penalty nine rows of thirty columns have no unique model", {"penalty": 1e-6}),
    (PastaClassifier, "the default target, a millionth of the gradient at the start, gives fewer digits", {"penalty": 0.01, "target": 1e-12}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "why", "settings"), EXEMPT)
def test_scikit_learn_s_own_checks_pass(kind, why, settings):
    for method in (None, "auto"):
        check_estimator(kind(method=method), expected_failed_checks=dict.fromkeys(WEIGHTS, why), on_skip=None)
    check_estimator(kind(**settings), on_skip=None)


def test_least_squares_is_that_of_linear_regression():
    model = PastaRegressor().fit(X, Y)
    theirs = LinearRegression().fit(X, Y)
    assert model.certificate_.verdict == model.stop_ == "certified"
    assert model.certificate_.gradient <= model.certificate_.target
    # A gradient of a millionth of the start's leaves an error of about a millionth times the condition number, some 100 here.
    assert np.allclose(model.predict(X), theirs.predict(X), rtol=1e-3)
    assert model.n_iter_ >= 1 and model.passes_ > 1


def test_two_and_more_classes_are_those_of_logistic_regression():
    for labels in (KINDS, KINDS > 0):
        scaled = StandardScaler().fit_transform(FLOWERS)
        model = PastaClassifier(penalty=0.01, target=1e-9).fit(scaled, labels)
        # Their C is 1/(penalty times rows).
        theirs = LogisticRegression(C=1 / (0.01 * len(KINDS)), tol=1e-10, max_iter=10_000).fit(scaled, labels)
        assert np.allclose(model.predict_proba(scaled), theirs.predict_proba(scaled), atol=1e-5)
        assert np.allclose(model.coef_, theirs.coef_, atol=1e-4)


def test_poisson_is_that_of_poisson_regressor():
    counts = np.random.default_rng(0).poisson(np.exp(FLOWERS[:, 0] / 4))
    model = PastaRegressor("poisson", target=1e-9).fit(FLOWERS, counts)
    theirs = PoissonRegressor(alpha=0, tol=1e-10, max_iter=10_000).fit(FLOWERS, counts)
    assert np.allclose(model.predict(FLOWERS), theirs.predict(FLOWERS), rtol=1e-4)


@pytest.mark.parametrize("loss", ["huber", "absolute", "quantile", "cauchy", "tukey"])
def test_robust_losses_are_not_led_astray(loss):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 3))
    labels = rows @ [1.0, -2.0, 3.0] + 0.1 * rng.normal(size=300)
    labels[:15] += 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PastaRegressor(loss).fit(rows, labels)
    # The bias of 5 % outliers is of the order of the noise for robust losses, and 5 for least squares.
    assert np.abs(model.coef_ - [1, -2, 3]).max() < 0.3


def test_a_flat_point_that_is_worse_than_the_start_is_not_certified():
    """Far out the Welsch loss is flat: its gradient is 0 there, and means nothing."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 3))
    labels = rows @ [1.0, -2.0, 3.0] + 0.1 * rng.normal(size=300)
    labels[:15] += 100
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PastaRegressor("welsch").fit(rows, labels)
    good = np.abs(model.coef_ - [1, -2, 3]).max() < 0.3
    worse = model.certificate_.verdict == "worse" and any("worse than the start" in str(one.message) for one in caught)
    assert good or worse


def test_any_other_end_is_a_warning():
    with pytest.warns(ConvergenceWarning, match="kinks"):
        PastaRegressor("absolute", method="auto").fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="above its least value|kinks"):
        PastaRegressor("absolute", budget=20 * len(Y)).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="not certified: .*ended first"):
        PastaRegressor(method="auto", budget=10 * len(Y), target=1e-9).fit(X, Y)
    separable = np.array([[-1.0], [1.0], [2.0]])
    with pytest.warns(ConvergenceWarning, match="not certified|separated"):
        PastaClassifier(penalty=0, budget=1000, target=1e-12).fit(separable, [0, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PastaRegressor().fit(X, Y)
        # The planned end of a method that has one.
        PastaRegressor(method=pasta_opt.methods.Sgd(eta=0.01, steps=100), budget=100_000).fit(X, Y)


def test_a_loss_with_kinks_ends_with_a_bound_on_f():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PastaRegressor("absolute").fit(X, Y)
    certificate = model.certificate_
    assert (model.method_, certificate.verdict) == ("exact", "certified") and certificate.gap <= certificate.target
    by_auto = PastaRegressor("absolute", method="auto")
    with pytest.warns(ConvergenceWarning):
        by_auto.fit(X, Y)
    assert by_auto.certificate_.gap is None
    assert by_auto.certificate_.objective >= certificate.objective - certificate.gap


def test_a_loss_that_is_flat_far_out_is_not_certified_where_it_sees_no_row():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 2))
    labels = 100 + rows @ [1.0, -2.0] + rng.normal(size=200)
    model = PastaRegressor("tukey").fit(rows, labels)
    assert model.certificate_.verdict == "certified" and model.score(rows, labels) > 0.5


def test_sparse_rows_are_the_dense_ones_and_nothing_is_copied():
    matrix = scipy.sparse.csr_matrix(np.where(X > 0, X, 0))
    for dtype in (np.float64, np.float32):
        some = matrix.astype(dtype)
        dense = PastaRegressor(target=1e-7).fit(some.toarray(), Y)
        sparse = PastaRegressor(target=1e-7).fit(some, Y)
        assert np.allclose(dense.coef_, sparse.coef_, rtol=1e-4)
        from pasta_opt._native import features

        numbers, _, (_, indices) = features(some)
        assert np.shares_memory(numbers, some.data) and np.shares_memory(indices, some.indices)
        numbers, _, _ = features(some.toarray())
        assert numbers.dtype == dtype
    array = np.ascontiguousarray(X)
    assert np.shares_memory(features(array)[0], array)
    unsorted = scipy.sparse.csr_matrix((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    assert features(unsorted)[0].tolist() == [2.0, 1.0] and unsorted.indices.tolist() == [1, 0]
    with pytest.raises(ValueError, match="no column"):
        bad = scipy.sparse.csr_matrix((np.ones(1), np.array([0], np.int32), np.array([0, 1])), shape=(1, 2))
        bad.indices[0] = -1
        pasta_opt.Table(bad, [1.0])


def test_weights_are_repeats():
    weights = np.random.default_rng(0).integers(0, 3, size=len(Y))
    one = PastaRegressor(target=1e-7).fit(X, Y, sample_weight=weights)
    two = PastaRegressor(target=1e-7).fit(X.repeat(weights, axis=0), Y.repeat(weights))
    assert np.allclose(one.coef_, two.coef_, rtol=1e-5)


def test_chunks_of_a_stream_lead_to_the_model():
    rng = np.random.default_rng(0)
    model = PastaRegressor()
    for _ in range(60):
        rows = rng.normal(size=(100, 3)) * [1, 10, 100] + 5
        model.partial_fit(rows, rows @ [1.0, 0.2, -0.03] + 7 + 0.1 * rng.normal(size=100))
    rows = rng.normal(size=(1000, 3)) * [1, 10, 100] + 5
    error = model.predict(rows) - (rows @ [1.0, 0.2, -0.03] + 7)
    # The spread of the label is 3.7.
    assert np.sqrt((error**2).mean()) < 0.2 and model.certificate_ is None
    again = pickle.loads(pickle.dumps(model)).partial_fit(rows, rows @ [1.0, 0.2, -0.03] + 7)
    assert again.n_iter_ == model.n_iter_ + 1
    classifier = PastaClassifier()
    with pytest.raises(ValueError, match="classes must be passed"):
        classifier.partial_fit(FLOWERS, KINDS)
    for seed in range(40):
        order = np.random.default_rng(seed).permutation(len(KINDS))
        some = scipy.sparse.csr_matrix(FLOWERS[order]) if seed % 2 else FLOWERS[order]
        classifier.partial_fit(some, KINDS[order], classes=[0, 1, 2])
    assert classifier.score(FLOWERS, KINDS) > 0.93
    with pytest.raises(ValueError, match="none of the classes"):
        classifier.partial_fit(FLOWERS[:2], [0, 7])


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_few_rows_of_a_stream_are_enough_whatever_the_size_of_the_labels(size):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5))
    labels = size * (rows @ [1.0, 2.0, 3.0, -1.0, 0.0] + 0.1 * rng.normal(size=400) + 4)
    model = PastaRegressor()
    for place in range(0, 400, 40):
        model.partial_fit(rows[place : place + 40], labels[place : place + 40])
    # Fifty steps of eight rows; least squares would explain 0.999 of the variance.
    assert model.score(rows, labels) > 0.8


def stream_of(rows=2000):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(rows, 3)) * [1, 100, 1e5] + [0, 0, 1e6]
    return rows, rows @ [1.0, 0.02, 3e-5] + 0.3 * rng.normal(size=len(rows))


def streamed(model, rows, labels, size):
    for place in range(0, len(labels), size):
        model.partial_fit(rows[place : place + size], labels[place : place + size])
    return model


@pytest.mark.parametrize("loss", ["least-squares", "absolute", "cauchy"])
def test_a_stream_does_not_depend_on_how_its_first_rows_come(loss):
    rows, labels = stream_of()
    for size in (7, 100, 2000):
        # All rows at once have 0.9937, of which a pass with steps may lose a little.
        assert streamed(PastaRegressor(loss), rows, labels, size).score(rows, labels) > 0.99


def test_few_rows_of_a_stream_are_fitted_as_by_fit():
    rows, labels = stream_of(300)
    model = streamed(PastaRegressor(), rows, labels, 20)
    assert np.allclose(model.coef_, PastaRegressor().fit(rows, labels).coef_, rtol=1e-9) and model.n_iter_ == 15
    again = pickle.loads(pickle.dumps(model))
    more, theirs = stream_of(1500)
    one, two = (streamed(which, more[300:], theirs[300:], 100) for which in (model, again))
    assert one.coef_.tobytes() == two.coef_.tobytes()
    # Rows that are read once are not kept.
    assert len(pickle.dumps(one)) < 20_000
    chunk = more[:50].copy()
    kept = PastaRegressor().partial_fit(chunk, theirs[:50])
    chunk[:] = np.nan
    kept.partial_fit(more[50:100], theirs[50:100])
    assert np.isfinite(kept.coef_).all()


@pytest.mark.parametrize("first", [100, 1500])
def test_a_column_of_a_stream_may_begin_to_vary_late(first):
    rows, _ = stream_of(6000)
    for constant in (0.0, 5 + 1e-9 * rows[:first, 0]):
        late = rows.copy()
        late[:first, 1] = constant
        labels = late @ [1.0, 0.02, 3e-5]
        assert streamed(PastaRegressor(), late, labels, 100).score(late, labels) > 0.99


def test_labels_of_a_stream_may_be_far_from_zero():
    rows, labels = stream_of()
    assert streamed(PastaRegressor(), rows, labels + 1e6, 100).score(rows, labels + 1e6) > 0.99
    squares = (rows[:, :2] / [1, 100] @ [1.0, 2.0]) ** 2
    model = streamed(PastaRegressor("phase-retrieval", fit_intercept=False), rows[:, :2], squares, 100)
    assert np.allclose(np.abs(model.coef_ * [1, 100]), [1, 2], atol=0.05)


def test_sparse_and_dense_chunks_make_one_stream():
    rows, labels = stream_of(3000)
    model = PastaRegressor()
    for place in range(0, 3000, 100):
        some = rows[place : place + 100]
        model.partial_fit(scipy.sparse.csr_matrix(some) if place % 200 else some, labels[place : place + 100])
    # Zeros stay zeros, so that the third column is not centred: it is ten times as far from 0 as it is wide, and steps are slow along it.
    assert model.score(rows, labels) > 0.9


def test_settings_of_a_stream_do_not_change():
    rows, labels = stream_of(50)
    for begin in (lambda model: model.partial_fit(rows, labels), lambda model: model.fit(rows, labels)):
        for name, value in [("loss", "huber"), ("penalty", 0.1), ("standardise", False)]:
            model = begin(PastaRegressor()).set_params(**{name: value})
            with pytest.raises(ValueError, match=f"{name} is .*, but was .* when the model saw its first rows"):
                model.partial_fit(rows, labels)
        assert begin(PastaRegressor()).set_params(seed=2).partial_fit(rows, labels).certificate_ is None


def test_a_pass_over_a_few_rows_hardly_changes_a_fit():
    rows, labels = stream_of()
    for end in (1, 2, 100):
        assert PastaRegressor().fit(rows, labels + 1e6).partial_fit(rows[:end], labels[:end] + 1e6).score(rows, labels + 1e6) > 0.98
    classes = (labels > labels.mean()).astype(int)
    model = PastaClassifier("multinomial").fit(rows, classes)
    assert model.partial_fit(rows[:10], classes[:10]).score(rows, classes) > 0.9


def test_a_pass_goes_on_from_a_fit():
    fitted = PastaRegressor().fit(X, Y)
    before = fitted.score(X, Y)
    assert fitted.partial_fit(X, Y).score(X, Y) > before - 0.05


def test_it_works_where_estimators_do():
    pipe = make_pipeline(PolynomialFeatures(2), PastaRegressor(penalty=0.1))
    assert cross_val_score(pipe, X, Y, cv=3).mean() > 0.3
    search = GridSearchCV(PastaClassifier(), {"penalty": [1e-3, 1e-1], "loss": ["logistic", "squared-hinge"]}, cv=3).fit(FLOWERS, KINDS)
    assert search.best_score_ > 0.9
    twin = clone(PastaRegressor("huber", delta=2.0))
    assert twin.get_params()["delta"] == 2.0 and "delta" not in PastaClassifier().get_params()
    model = pickle.loads(pickle.dumps(PastaClassifier("hinge", threads=1).set_params(loss="squared-hinge").fit(FLOWERS, KINDS)))
    assert len(model.certificate_) == 3 and not hasattr(model, "predict_proba")


def test_bad_settings_are_refused_with_a_sentence():
    for model, words in [
        (PastaRegressor("logistic"), "loss must be one of least-squares"),
        (PastaClassifier("huber"), "loss must be one of logistic"),
        (PastaRegressor(delta=1.0), "the least-squares loss has no delta"),
        (PastaRegressor("quantile", level=2.0), "level must be strictly between 0 and 1"),
        (PastaRegressor(penalty=-1), "penalty"),
        (PastaRegressor(budget=5), "less than 3 passes"),
        (PastaRegressor("poisson"), "labels of at least 0"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(X, (KINDS if isinstance(model, PastaClassifier) else Y - Y.mean())[: len(X)] if not isinstance(model, PastaClassifier) else np.resize(KINDS, len(X)))


@pytest.mark.parametrize("loss", ["least-squares", "huber", "cauchy", "poisson"])
@pytest.mark.parametrize("method", [None, "exact", "auto"])
def test_the_program_and_the_estimator_take_the_same_way_and_give_the_same_bits(loss, method, tmp_path):
    if method == "exact" and loss == "cauchy":
        pytest.skip("second-order steps are for losses that are convex")
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    command = [sys.executable, "-m", "pasta_opt", "fit", "x.npy", "--labels", "y.npy", "--loss", loss, "--json", "--seed", "3"]
    command += [] if method is None else ["--method", method]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    program = json.loads(said)
    model = PastaRegressor(loss, seed=3, method=method).fit(X, Y)
    assert model.method_ == program["method"] == (method or program["method"])
    assert list(program["weights"].values()) == model.coef_.tolist()
    assert program["intercept"] == model.intercept_
    certificate = program["certificate"]
    assert all(certificate[name] == getattr(model.certificate_, name) for name in ("gradient", "target", "objective", "verdict"))


def test_the_quickest_way_is_taken_and_named():
    assert PastaRegressor().fit(X, Y).method_ == "exact"
    assert PastaClassifier().fit(FLOWERS, KINDS).method_ == "exact"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert PastaRegressor("absolute").fit(X, Y).method_ == "exact"
        assert PastaRegressor("tukey").fit(X, Y).method_ == "auto"
        sgd = PastaRegressor(method=pasta_opt.methods.Sgd(eta=0.01, steps=100)).fit(X, Y)
    assert sgd.method_ == "sgd" and sgd.partial_fit(X, Y).method_ == "dog"
    for method, error, words in [
        ("newton", ValueError, "no method is called 'newton'; there are auto, exact"),
        (3, TypeError, "method must be a name"),
        (pasta_opt.Sgd, TypeError, "not the class Sgd itself"),
    ]:
        with pytest.raises(error, match=words):
            PastaRegressor(method=method).fit(X, Y)
    with pytest.raises(ValueError, match="the tukey loss is not smooth and convex"):
        PastaRegressor("tukey", method="exact").fit(X, Y)


def test_a_loss_without_a_minimiser_is_a_warning_however_small_its_gradient():
    rows = np.array([[0.0], [0.0], [0.0], [1.0], [1.0]])
    with pytest.warns(ConvergenceWarning, match="the labels are zero wherever some columns are not, so the loss has no minimiser"):
        PastaRegressor("poisson").fit(rows, [1, 2, 4, 0, 0])
    with pytest.warns(ConvergenceWarning, match="all labels ask for the same"):
        PastaRegressor("poisson", penalty=0.1).fit(rows, [0, 0, 0, 0, 0])
    with pytest.warns(ConvergenceWarning, match="the classes can be separated"):
        PastaClassifier("sigmoid", penalty=0).fit(rows, [0, 0, 0, 1, 1])
    with pytest.warns(ConvergenceWarning, match="quasi-separation.*penalty=1e-3, say"):
        PastaClassifier(penalty=0).fit(rows, [0, 1, 0, 1, 1])
    with pytest.warns(ConvergenceWarning, match="the classes can be separated"):
        PastaClassifier(penalty=0).fit(rows, [0, 0, 0, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PastaClassifier().fit(rows, [0, 1, 0, 1, 1])
        PastaClassifier(penalty=0).fit(rows, [0, 1, 0, 0, 1])
        PastaRegressor("poisson", penalty=1e-3).fit(rows, [1, 2, 4, 0, 0])


def test_scikit_learn_is_not_imported_before_it_is_needed():
    code = "import sys, pasta_opt; print([name for name in ('sklearn', 'scipy', 'jax', 'torch', 'matplotlib', 'pandas') if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)).stdout
    assert said.strip() == "[]"


def test_mistakes_are_refused_with_a_sentence():
    rows, labels, kinds = X[:30], Y[:30], np.resize([0, 1], 30)
    for make, error, words in [
        (lambda: PastaRegressor(penalty="l2").fit(rows, labels), TypeError, "penalty must be a number, but is 'l2'"),
        (lambda: PastaRegressor(penalty=None).fit(rows, labels), TypeError, "penalty must be a number, but is None"),
        (lambda: PastaRegressor("huber", delta="1").fit(rows, labels), TypeError, "delta must be a number, but is '1'"),
        (lambda: PastaRegressor(target=0).fit(rows, labels), ValueError, "target must be positive and finite, but is 0"),
        (lambda: PastaRegressor(target=float("nan")).fit(rows, labels), ValueError, "target must be positive and finite, but is nan"),
        (lambda: PastaRegressor(budget=0).fit(rows, labels), ValueError, r"budget must be a whole number from 1 to 2\*\*127, but is 0"),
        (lambda: PastaClassifier().fit(rows, np.zeros(30)), ValueError, r"the labels have one class, 0\.0$"),
        (lambda: PastaClassifier().fit(rows, kinds, kinds), ValueError, "the rows with a positive weight have one class, 1$"),
        (lambda: PastaClassifier().partial_fit(rows, kinds, classes=[0, 1]).partial_fit(rows, kinds + 1), ValueError, r"the label 2 is none of the classes \[0, 1\]"),
        (lambda: PastaRegressor().partial_fit(rows, labels).set_params(fit_intercept=False).partial_fit(rows, labels), ValueError, "fit_intercept is False, but was True"),
        (lambda: PastaRegressor().fit(rows * 1e200, labels), ValueError, "column 0: its values are too large"),
        (lambda: PastaRegressor().fit(rows, labels, np.full(30, 1e-320)), ValueError, "weights of rows too small"),
    ]:
        with pytest.raises(error, match=words):
            make()
    with pytest.warns(ConvergenceWarning, match="no row of the class 2 has a positive weight, so the loss has no minimiser"):
        PastaClassifier().fit(FLOWERS, KINDS, (KINDS < 2).astype(float))


def test_rows_in_any_form_give_the_same_model():
    wanted = PastaRegressor().fit(X, Y)
    pandas = pytest.importorskip("pandas")
    int64 = scipy.sparse.csr_matrix(X)
    int64.indices, int64.indptr = int64.indices.astype(np.int64), int64.indptr.astype(np.int64)
    locked = X.copy()
    locked.setflags(write=False)
    dense = [np.asfortranarray(X), locked, X.repeat(2, axis=0)[::2], X.tolist(), pandas.DataFrame(X), X.astype(">f8"), X.astype(object), X.astype(np.longdouble)]
    for rows in dense:
        assert PastaRegressor().fit(rows, Y.tolist()).coef_.tobytes() == wanted.coef_.tobytes()
    for rows in (int64, scipy.sparse.csc_matrix(X), scipy.sparse.csr_array(X), scipy.sparse.coo_matrix(X)):
        assert np.allclose(PastaRegressor().fit(rows, Y).coef_, wanted.coef_, rtol=1e-6)


def test_a_search_on_two_processes_and_one_on_threads_agree():
    import joblib

    found = []
    for backend in ("loky", "threading"):
        with joblib.parallel_config(backend, n_jobs=2):
            found.append(GridSearchCV(PastaClassifier(), {"penalty": [1e-3, 1e-1]}, cv=3).fit(FLOWERS, KINDS).cv_results_["mean_test_score"])
    assert (found[0] == found[1]).all()


def test_standard_errors_are_those_of_the_formula() -> None:
    generator = np.random.default_rng(3)
    X = generator.normal(size=(60, 2)) * [1.0, 50.0] + [3.0, -400.0]
    y = 1.0 + X @ [2.0, 0.1] + generator.normal(size=60)
    model = PastaRegressor(std_errors="classical").fit(X, y)
    A = np.column_stack([np.ones(60), X])
    rest = y - A @ np.concatenate([[model.intercept_], model.coef_])
    variance = rest @ rest / 57
    errors = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))
    found = model.summary_.coefficients
    assert [one.name for one in found] == ["(intercept)", "x0", "x1"]
    # A plain inverse of columns of such sizes loses some eight digits.
    assert np.allclose([one.std_error for one in found], errors, rtol=1e-7)
    assert np.allclose([one.estimate for one in found], [model.intercept_, *model.coef_], rtol=1e-12)
    assert "t on 57 degrees of freedom" in model.summary()
    with pytest.raises(AttributeError, match="std_errors"):
        PastaRegressor().fit(X, y).summary()
    with pytest.raises(ValueError, match="std_errors must be one of classical"):
        PastaRegressor(std_errors="hc9").fit(X, y)


def test_a_penalty_that_is_not_given_is_added_only_where_there_is_no_minimiser() -> None:
    rows = np.arange(6.0).reshape(-1, 1)
    separable, mixed = [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]
    model = PastaClassifier().fit(rows, separable)
    assert model.penalty_ == 1e-4 and model.certificate_.verdict == "certified"
    assert np.array_equal(model.coef_, PastaClassifier(penalty=1e-4).fit(rows, separable).coef_)
    assert PastaClassifier().fit(rows, mixed).penalty_ == 0
    few = PastaClassifier(std_errors="classical").fit(rows, mixed).summary_
    assert few.omitted is None and few.coefficients[1].std_error > 0


def test_shapes_and_types_are_those_of_other_estimators() -> None:
    single = FLOWERS.astype(np.float32)
    model = PastaClassifier().fit(single, KINDS)
    assert model.coef_.dtype == model.intercept_.dtype == model.predict_proba(single).dtype == np.float32
    assert model.n_iter_.shape == (1,)
    assert PastaClassifier("hinge", penalty=0.1).fit(FLOWERS, KINDS).n_iter_.shape == (3,)
    numbers = PastaRegressor().fit(single[:, 1:], single[:, 0])
    assert numbers.coef_.dtype == numbers.predict(single[:, 1:]).dtype == np.float32
    assert PastaRegressor("poisson").__sklearn_tags__().target_tags.positive_only
    assert not PastaRegressor().__sklearn_tags__().target_tags.positive_only


def test_classes_can_be_weighted() -> None:
    generator = np.random.default_rng(5)
    X = generator.normal(size=(300, 2))
    y = (X[:, 0] + generator.normal(size=300) > 1.5).astype(int)
    balanced = PastaClassifier(class_weight="balanced").fit(X, y)
    weights = np.where(y == 1, 150 / y.sum(), 150 / (300 - y.sum()))
    assert np.allclose(balanced.coef_, PastaClassifier().fit(X, y, sample_weight=weights).coef_)
    assert balanced.intercept_[0] > PastaClassifier().fit(X, y).intercept_[0] + 1


LASSO = StandardScaler().fit_transform(X)


def test_l1_and_elastic_net_are_those_of_scikit_learn_and_zeros_are_zeros() -> None:
    lasso = PastaRegressor(l1=5.0).fit(LASSO, Y)
    theirs = Lasso(alpha=5.0, tol=1e-14, max_iter=100_000).fit(LASSO, Y)
    assert lasso.certificate_.verdict == "certified" and lasso.certificate_.gap <= lasso.certificate_.target
    assert np.allclose(lasso.coef_, theirs.coef_, atol=1e-9) and np.isclose(lasso.intercept_, theirs.intercept_)
    assert ((lasso.coef_ == 0) == (theirs.coef_ == 0)).all() and 0 < (lasso.coef_ == 0).sum() < 10
    # The penalty is about standardised columns, so that those in other units make the same model.
    raw = PastaRegressor(l1=5.0).fit(X * 1e3 + 7, Y)
    assert np.allclose(raw.predict(X * 1e3 + 7), lasso.predict(LASSO), atol=1e-6)
    net = PastaRegressor(penalty=3.0, elastic_net=0.3).fit(LASSO, Y)
    theirs = ElasticNet(alpha=3.0, l1_ratio=0.3, tol=1e-14, max_iter=100_000).fit(LASSO, Y)
    assert np.allclose(net.coef_, theirs.coef_, atol=1e-9)
    assert np.allclose(net.coef_, PastaRegressor(penalty=2.1, l1=0.9).fit(LASSO, Y).coef_, atol=1e-9)


def test_signs_and_bounds_are_kept_to_the_last_bit() -> None:
    least = PastaRegressor(positive=True).fit(X, Y)
    theirs = LinearRegression(positive=True).fit(X, Y)
    assert least.certificate_.verdict == "certified" and (least.coef_ >= 0).all()
    # Without a penalty there is no gap, and the mapping is small to a millionth of the start's.
    assert np.allclose(least.predict(X), theirs.predict(X), rtol=1e-5)
    ends = np.linspace(-300, 300, 10)
    for bounds in ((-100.3, 200.1), [(-100.3, 200.1)] * 10, scipy.optimize.Bounds(-100.3, 200.1)):
        boxed = PastaRegressor(bounds=bounds).fit(X, Y)
        assert boxed.coef_.min() >= -100.3 and boxed.coef_.max() <= 200.1
        reference = scipy.optimize.lsq_linear(X - X.mean(0), Y - Y.mean(), bounds=(-100.3, 200.1), tol=1e-14)
        assert np.allclose(boxed.coef_, reference.x, atol=1e-4)
    open_ended = PastaRegressor(bounds=[(end, None) for end in ends]).fit(X, Y)
    assert (open_ended.coef_ >= ends).all()
    both = PastaRegressor(positive=True, bounds=(-5, 10)).fit(X, Y)
    assert both.coef_.min() == 0 and both.coef_.max() == 10


def test_classes_with_l1_are_those_of_saga() -> None:
    scaled = StandardScaler().fit_transform(FLOWERS)
    for labels in (KINDS, KINDS > 1):
        model = PastaClassifier(l1=0.02).fit(scaled, labels)
        theirs = LogisticRegression(l1_ratio=1, C=1 / (0.02 * len(KINDS)), solver="saga", tol=1e-12, max_iter=1_000_000).fit(scaled, labels)
        assert np.allclose(model.coef_, theirs.coef_, atol=1e-6)
        assert ((model.coef_ == 0) == (theirs.coef_ == 0)).all() and (model.coef_ == 0).any()
        assert np.allclose(model.predict_proba(scaled), theirs.predict_proba(scaled), atol=1e-6)
    positive = PastaClassifier(positive=True, penalty=0.01, class_weight="balanced").fit(scaled, KINDS == 1)
    assert (positive.coef_ >= 0).all() and positive.certificate_.verdict == "certified"
    single = PastaClassifier(l1=0.02).fit(scaled.astype(np.float32), KINDS)
    assert single.coef_.dtype == np.float32 and (single.coef_ == 0).any()


def test_weights_are_repeats_with_l1_too() -> None:
    weights = np.random.default_rng(0).integers(0, 3, size=len(Y))
    one = PastaRegressor(l1=2.0, standardise=False).fit(LASSO, Y, sample_weight=weights)
    two = PastaRegressor(l1=2.0, standardise=False).fit(LASSO.repeat(weights, axis=0), Y.repeat(weights))
    assert np.allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [PastaRegressor(penalty=1e-3, l1=1e-3), PastaRegressor(positive=True), PastaClassifier(penalty=0.01, elastic_net=0.5)])
def test_scikit_learn_s_own_checks_pass_with_l1_and_bounds(model) -> None:
    why = dict.fromkeys(WEIGHTS, "without a penalty nine rows of thirty columns have no unique model") if model.positive else {}
    check_estimator(model, expected_failed_checks=why, on_skip=None)


def test_pipelines_and_searches_take_l1_and_columns_keep_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=load_diabetes().feature_names)
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), PastaRegressor(l1=1.0))
    search = GridSearchCV(pipe, {"pastaregressor__l1": [0.1, 1.0, 10.0]}, cv=3).fit(frame, Y)
    best = search.best_estimator_[-1]
    assert best.feature_names_in_.tolist() == list(frame.columns) and search.best_score_ > 0.4
    bounded = GridSearchCV(PastaRegressor(), {"bounds": [None, (0, None), [(-9, 9)] * 10]}, cv=3).fit(frame, Y)
    assert bounded.best_params_["bounds"] is None
    twin = clone(PastaRegressor(bounds=[(0, 1)] * 10, l1=0.5))
    assert twin.bounds == [(0, 1)] * 10 and twin.l1 == 0.5
    assert pickle.loads(pickle.dumps(best)).predict(frame).shape == (len(Y),)


def test_what_l1_and_bounds_cannot_do_is_refused_with_a_sentence() -> None:
    for make, error, words in [
        (lambda: PastaRegressor(l1=-1.0).fit(X, Y), ValueError, "l1 must be at least 0 and finite, but is -1.0"),
        (lambda: PastaRegressor(l1="1").fit(X, Y), TypeError, "l1 must be a number, but is '1'"),
        (lambda: PastaRegressor(elastic_net=2, penalty=1.0).fit(X, Y), ValueError, "from 0 to 1, but is 2"),
        (lambda: PastaRegressor(elastic_net=0.5, penalty=1.0, l1=1.0).fit(X, Y), ValueError, "give penalty, and no l1"),
        (lambda: PastaClassifier(elastic_net=0.5).fit(X, Y > 100), ValueError, "give penalty, and no l1"),
        (lambda: PastaRegressor(bounds=[(0, 1)] * 3).fit(X, Y), ValueError, r"bounds must be a pair \(lower, upper\), or 10 of them"),
        (lambda: PastaRegressor(bounds=(1, 0)).fit(X, Y), ValueError, "lower"),
        (lambda: PastaRegressor("absolute", l1=1.0).fit(X, Y), ValueError, "the absolute loss is not smooth and convex"),
        (lambda: PastaRegressor(l1=1.0, method="auto").fit(X, Y), ValueError, "the method auto knows no l1 and no bounds"),
        (lambda: PastaRegressor(l1=1.0).partial_fit(X, Y), AttributeError, "partial_fit"),
        (lambda: PastaClassifier(positive=True).partial_fit(X, Y > 100, classes=[0, 1]), AttributeError, "partial_fit"),
        (lambda: PastaClassifier("multinomial", positive=True).fit(X, Y > 100), ValueError, "take the logistic loss"),
        (lambda: PastaRegressor(l1=1.0).fit(X, Y).set_params(l1=0.0).partial_fit(X, Y), ValueError, "l1 is 0.0, but was 1.0"),
    ]:
        with pytest.raises(error, match=words):
            make()


def test_l1_and_bounds_are_those_of_the_program(tmp_path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    command = [sys.executable, "-m", "pasta_opt", "fit", "x.npy", "--labels", "y.npy", "--loss", "least-squares", "--json"]
    for flags, settings in [
        (["--penalty-l1", "2"], {"l1": 2.0}),
        (["--penalty", "2", "--elastic-net", "0.25"], {"penalty": 2.0, "elastic_net": 0.25}),
        (["--non-negative"], {"positive": True}),
        (["--lower", "-50", "--upper", "80"], {"bounds": (-50, 80)}),
    ]:
        said = subprocess.run(command + flags, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        program = json.loads(said)
        model = PastaRegressor(**settings).fit(X, Y)
        assert list(program["weights"].values()) == model.coef_.tolist() and program["intercept"] == model.intercept_
        assert program["certificate"].get("gap") == model.certificate_.gap and model.method_ == program["method"] == "exact"
