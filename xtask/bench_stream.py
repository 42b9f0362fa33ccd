"""One pass over a stream, beside Vowpal Wabbit and scikit-learn's partial_fit: time, memory, loss on rows that none of them saw, and what
each says when that is bad. All from one run; ratios are to `pasta fit - --one-pass`.

Usage: bench_stream.py PASTA FOLDER [streams] [tables] [tail]
"""

import io
import json
import os
import subprocess
import sys
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

RUNS = 3
CHUNK = 16 << 20


# Streams. Each is a law: rows (dense, or lists of indices and values), the scores of the true model, and labels.
class Law:
    def __init__(self, name, loss, rows, columns, full=None, scale=None, offset=None, correlated=False):
        self.name, self.loss, self.rows, self.columns, self.full = name, loss, rows, columns, full
        rng = np.random.default_rng(7)
        self.scale = np.ones(columns) if scale is None else scale(rng, columns)
        self.offset = np.zeros(columns) if offset is None else offset(rng, columns) * self.scale
        self.mix = np.eye(columns) if full is None else None
        if correlated:
            self.mix = 0.2 * np.eye(columns) + 0.8 * rng.standard_normal((columns, columns)) / np.sqrt(columns)
        self.weights = rng.standard_normal(columns) / np.sqrt(full or columns) * (4 if full else 1)
        self.popular = 1.0 / (1.0 + np.arange(columns)) ** 0.7
        self.popular /= self.popular.sum()

    def block(self, rng, count):
        if self.full is None:
            z = rng.standard_normal((count, self.columns)) @ self.mix
            rows, scores = z * self.scale + self.offset, z @ self.weights
        else:
            places = rng.choice(self.columns, size=(count, self.full), p=self.popular)
            rows = [(np.unique(p), None) for p in places]
            rows = [(p, rng.random(len(p)) + 0.5) for p, _ in rows]
            scores = np.array([v @ self.weights[p] for p, v in rows])
        if self.loss == "logistic":
            return rows, scores, np.where(rng.random(count) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)
        return rows, scores, scores + 0.5 * rng.standard_normal(count)

    def write(self, folder):
        """Both files, for us and scikit-learn (LIBSVM or CSV) and for Vowpal Wabbit, and the losses that the true model and the best constant have on the second."""
        path = lambda part, ending: os.path.join(folder, f"{self.name.replace(' ', '-').replace(',', '')}-{part}.{ending}")
        ending = "svm" if self.full else "csv"
        known = path("held", "json")
        if not os.path.exists(known):
            rng = np.random.default_rng(11)
            for part, rows in (("train", self.rows), ("held", self.rows // 5)):
                with open(path(part, ending), "w") as ours, open(path(part, "vw"), "w") as theirs:
                    if not self.full:
                        ours.write("y," + ",".join(f"x{j}" for j in range(self.columns)) + "\n")
                    scores, labels = [], []
                    while len(labels) < rows:
                        block, s, y = self.block(rng, 10_000)
                        for row, label in zip(block, y.tolist()):
                            if self.full:
                                pairs = " ".join(f"{i + 1}:{v:.6g}" for i, v in zip(row[0].tolist(), row[1].tolist()))
                                ours.write(f"{label:g} {pairs}\n")
                                theirs.write(f"{label:g} | {pairs}\n")
                            else:
                                words = [f"{v:.8g}" for v in row.tolist()]
                                ours.write(f"{label:.8g}," + ",".join(words) + "\n")
                                theirs.write(f"{label:.8g} | " + " ".join(f"{j}:{v}" for j, v in enumerate(words)) + "\n")
                        scores.extend(s)
                        labels.extend(y)
            labels = np.array(labels)
            best = loss_of(self.loss, np.array(scores), labels)
            flat = np.log(np.mean(labels > 0) / np.mean(labels < 0)) if self.loss == "logistic" else labels.mean()
            constant = loss_of(self.loss, np.full(len(labels), flat), labels)
            json.dump({"true": best, "constant": constant, "labels": labels.tolist()}, open(known, "w"))
        return {part: {"ours": path(part, ending), "vw": path(part, "vw")} for part in ("train", "held")}, json.load(open(known))


def spread(rng, columns):
    return 10.0 ** rng.uniform(-3, 3, columns)


def shifted(rng, columns):
    return rng.uniform(-5, 5, columns)


LAWS = [
    Law("least squares, well scaled", "least-squares", 200_000, 20),
    Law("least squares, raw", "least-squares", 200_000, 20, scale=spread, offset=shifted, correlated=True),
    Law("logistic, raw", "logistic", 200_000, 20, scale=spread, offset=shifted, correlated=True),
    Law("logistic, 500 sparse columns", "logistic", 200_000, 500, full=30),
    Law("logistic, 50,000 sparse columns", "logistic", 200_000, 50_000, full=75),
]


def loss_of(loss, scores, labels):
    if loss == "logistic":
        return float(np.mean(np.logaddexp(0.0, -labels * scores)))
    return float(np.mean((scores - labels) ** 2) / 2)


def run(command, stdin):
    """The best wall time and processor time of several runs, the peak memory, the exit code and what was said."""
    best = [np.inf, np.inf, 0]
    for _ in range(RUNS):
        begun = time.perf_counter()
        with open(stdin, "rb") as file, open(os.devnull, "wb") as null:
            process = subprocess.Popen(command, stdin=file, stdout=null, stderr=subprocess.PIPE)
            said = process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        best = [min(best[0], time.perf_counter() - begun), min(best[1], usage.ru_utime + usage.ru_stime), usage.ru_maxrss / 1024]
    return best, process.returncode, said


VW = [sys.executable, "-m", "vowpalwabbit"]


def contenders(pasta, law, files, folder):
    """Name, the command that learns from standard input, and what makes scores of the second file."""
    model = os.path.join(folder, "model")
    kind = law.loss

    def ours_scores():
        out = subprocess.run([pasta, "predict", model, files["held"]["ours"], "--scores"], capture_output=True, text=True)
        return np.array([float(line.split(",")[-1]) for line in out.stdout.split()]) if out.returncode == 0 else None

    def vw_scores():
        out = os.path.join(folder, "scores")
        subprocess.run([*VW, "-t", "-i", model, "-d", files["held"]["vw"], "-r", out, "--quiet"], check=True, capture_output=True)
        return np.array([float(line.split()[0].split(":")[-1]) for line in open(out)])

    def sklearn_scores():
        return np.loadtxt(model, ndmin=1)

    columns = ["--columns", str(law.columns)] if law.full else []
    own = [pasta, "fit", "-", "--one-pass", "--loss", kind, *columns, "-o", model]
    yield "pasta", "ours", own, ours_scores
    if kind == "logistic":
        yield "pasta, --penalty 1e-3", "ours", [*own, "--penalty", "1e-3"], ours_scores
    vw = [*VW, "-d", "/dev/stdin", "-f", model, "--loss_function", {"logistic": "logistic", "least-squares": "squared"}[kind]]
    yield "VW", "vw", vw, vw_scores
    yield "VW --coin", "vw", [*vw, "--coin"], vw_scores
    for words, scaled in (("partial_fit", "raw"), ("partial_fit, scaled by its first chunk", "scaled")):
        yield words, "ours", [sys.executable, __file__, "sklearn", kind, str(law.columns if law.full else 0), scaled, files["held"]["ours"], model], sklearn_scores


def sklearn(kind, columns, scaled, held, model):
    """scikit-learn's side: chunks of standard input, then the scores of another file."""
    import pandas
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.preprocessing import StandardScaler

    def chunks(file):
        if columns:
            rest = b""
            while block := file.read(CHUNK):
                whole, end, last = (rest + block).rpartition(b"\n")
                yield load_svmlight_file(io.BytesIO(whole + end), n_features=columns)
                rest = last
            if rest:
                yield load_svmlight_file(io.BytesIO(rest), n_features=columns)
        else:
            for frame in pandas.read_csv(file, chunksize=50_000):
                yield frame.iloc[:, 1:].to_numpy(), frame.iloc[:, 0].to_numpy()

    learner = SGDClassifier(loss="log_loss") if kind == "logistic" else SGDRegressor()
    more = {"classes": [-1, 1]} if kind == "logistic" else {}
    scaler = None
    for X, y in chunks(sys.stdin.buffer):
        if scaled == "scaled":
            scaler = scaler or StandardScaler(with_mean=not columns).fit(X)
            X = scaler.transform(X)
        learner.partial_fit(X, y, **more)
    scores = []
    with open(held, "rb") as file:
        for X, _ in chunks(file):
            X = scaler.transform(X) if scaler else X
            scores.append(learner.decision_function(X) if kind == "logistic" else learner.predict(X))
    np.savetxt(model, np.concatenate(scores))


def streams(pasta, folder):
    start, _, _ = run([*VW, "--quiet", "-d", "/dev/stdin"], os.devnull)
    print(f"The interpreter that loads Vowpal Wabbit takes {start[0]:.2f} s and {start[2]:.0f} MB of each of its runs.\n")
    print("`share` is (constant - loss)/(constant - true): 1 is the true model, 0 the best constant. Seconds and MB; ratios to pasta's.\n")
    for law in LAWS:
        files, known = law.write(folder)
        labels = np.array(known["labels"])
        size = os.path.getsize(files["train"]["ours"]) / 1e6
        print(f"**{law.name}**: {law.rows:,} rows, {law.columns:,} columns, {size:.0f} MB; loss of the true model {known['true']:.5f}, of a constant {known['constant']:.5f}\n")
        print("| program | wall | ratio | processor | ratio | peak MB | loss | share | exit | said |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        ours = None
        for name, stream, command, scores in contenders(pasta, law, files, folder):
            model = os.path.join(folder, "model")
            if os.path.exists(model):
                os.remove(model)
            (wall, processor, memory), code, said = run(command, files["train"][stream])
            ours = ours or (wall, processor)
            found = scores() if os.path.exists(model) else None
            # Beyond what numbers hold is as bad as it gets.
            with np.errstate(all="ignore"):
                loss = loss_of(law.loss, found, labels) if found is not None and len(found) == len(labels) else np.nan
            share = (known["constant"] - loss) / (known["constant"] - known["true"])
            print(
                f"| {name} | {wall:.2f} | {wall / ours[0]:.2f} | {processor:.2f} | {processor / ours[1]:.2f} | {memory:.0f} | {loss:.5g} | {share:.4g} | {code} | {remark(said)} |",
                flush=True,
            )
        print()


def remark(said):
    """The line of what was said, if one sounds like a doubt."""
    words = ("warn", "error", "not certified", "diverge", "nan", "sorted", "separated")
    # The last line of a traceback of Python has the message.
    lines = [line for line in said.splitlines() if any(word in line.lower() for word in words) and not line.startswith(" ")]
    return lines[-1][:90].replace("|", "") if lines else "–"


def tables(pasta, folder):
    """Small tables with the columns that they have: how often a program ends more than .01 below the exact solution, in R2 or accuracy on
    rows that it did not see, without a word."""
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    names = ("pasta", "pasta --one-pass", "VW", "VW, 50 passes")
    print("| table | rows x columns | exact | " + " | ".join(names) + " |")
    print("|---|---|---|" + "---|" * len(names))
    silent, spoken, good = (dict.fromkeys(names, 0) for _ in range(3))
    count = 0
    for name, X, y, kind in public():
        X, X_held, y, y_held = train_test_split(X, y, test_size=0.25, random_state=0)
        if kind == "logistic":
            exact = make_pipeline(StandardScaler(), LogisticRegression(C=1e6, max_iter=10_000)).fit(X, y)
            score = lambda scores: float(np.mean(np.where(scores > 0, 1, -1) == y_held))
        else:
            exact = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)
            score = lambda scores: float(1 - np.mean((scores - y_held) ** 2) / np.var(y_held))
        best = exact.score(X_held, y_held)
        count += 1
        cells = []
        for program in names:
            scores, said = small(pasta, folder, program, kind, X, y, X_held, y_held)
            with np.errstate(all="ignore"):
                got = score(scores) if scores is not None else np.nan
            if got >= best - 0.01:
                good[program] += 1
            elif said:
                spoken[program] += 1
            else:
                silent[program] += 1
            cells.append(("no model" if scores is None else f"{got:.3g}") + (" (said)" if said else ""))
        print(f"| {name} | {len(X)} x {X.shape[1]} | {best:.3f} | " + " | ".join(cells) + " |", flush=True)
    print()
    for program in names:
        print(f"- {program}: of {count} tables {good[program]} within .01 of the exact solution or better, {spoken[program]} not, with a word, {silent[program]} not, in silence")


def small(pasta, folder, program, kind, X, y, X_held, y_held):
    """Scores of the rows kept back, or None; and whether the program said that something is wrong (a word, or an exit code that is not 0)."""
    model = os.path.join(folder, "small-model")
    if os.path.exists(model):
        os.remove(model)
    if program.startswith("pasta"):
        for part, rows, labels in (("train", X, y), ("held", X_held, y_held)):
            with open(os.path.join(folder, f"small-{part}.csv"), "w") as file:
                file.write("y," + ",".join(f"x{j}" for j in range(X.shape[1])) + "\n")
                file.writelines(f"{label!r}," + ",".join(map(repr, row)) + "\n" for label, row in zip(labels.tolist(), rows.tolist()))
        extra = ["--one-pass"] if program.endswith("pass") else []
        fit = subprocess.run(
            [pasta, "fit", os.path.join(folder, "small-train.csv"), "--loss", kind, *extra, "-o", model], capture_output=True, text=True
        )
        if not os.path.exists(model):
            return None, True
        out = subprocess.run([pasta, "predict", model, os.path.join(folder, "small-held.csv"), "--scores"], capture_output=True, text=True, check=True)
        return np.array([float(line.split(",")[-1]) for line in out.stdout.split()]), fit.returncode != 0
    for part, rows, labels in (("train", X, y), ("held", X_held, y_held)):
        with open(os.path.join(folder, f"small-{part}.vw"), "w") as file:
            for label, row in zip(labels.tolist(), rows.tolist()):
                file.write(f"{label!r} | " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row)) + "\n")
    passes = ["--passes", "50", "--cache_file", model + ".cache", "-k"] if "passes" in program else []
    out = os.path.join(folder, "small-scores")
    command = [*VW, "-d", os.path.join(folder, "small-train.vw"), "-f", model, "--loss_function", "logistic" if kind == "logistic" else "squared", *passes]
    fit = subprocess.run(command, capture_output=True, text=True)
    if not os.path.exists(model):
        return None, True
    subprocess.run([*VW, "-t", "-i", model, "-d", os.path.join(folder, "small-held.vw"), "-r", out, "--quiet"], check=True, capture_output=True)
    scores = np.array([float(line.split()[0].split(":")[-1]) for line in open(out)])
    return scores, fit.returncode != 0 or remark(fit.stderr) != "–"


def public():
    """Tables that scikit-learn ships, and that it generates, as they come or with columns of different units."""
    from sklearn import datasets

    def units(X, seed, offset=0.0):
        rng = np.random.default_rng(seed)
        return (X + offset * rng.uniform(-1, 1, X.shape[1])) * 10.0 ** rng.uniform(-3, 3, X.shape[1])

    yield "diabetes", *datasets.load_diabetes(return_X_y=True), "least-squares"
    yield "diabetes, its own units", *datasets.load_diabetes(return_X_y=True, scaled=False), "least-squares"
    linnerud = datasets.load_linnerud()
    yield "linnerud, weight", linnerud.data, linnerud.target[:, 0], "least-squares"
    iris, wine = datasets.load_iris(), datasets.load_wine()
    yield "iris, petal width", iris.data[:, :3], iris.data[:, 3], "least-squares"
    yield "wine, colour", np.delete(wine.data, 9, axis=1), wine.data[:, 9], "least-squares"
    yield "wine, proline", wine.data[:, :12], wine.data[:, 12], "least-squares"
    cancer = datasets.load_breast_cancer()
    yield "breast cancer, mean radius", cancer.data[:, 1:], cancer.data[:, 0], "least-squares"
    yield "breast cancer", cancer.data, np.where(cancer.target, 1.0, -1.0), "logistic"
    yield "wine, class 1", wine.data, np.where(wine.target == 1, 1.0, -1.0), "logistic"
    yield "iris, versicolor", iris.data, np.where(iris.target == 1, 1.0, -1.0), "logistic"
    digits = datasets.load_digits()
    yield "digits, below 5", digits.data, np.where(digits.target < 5, 1.0, -1.0), "logistic"
    for seed, (rows, columns) in enumerate([(2000, 5), (5000, 20), (20_000, 50)]):
        X, y = datasets.make_regression(rows, columns, noise=20.0, random_state=seed)
        yield f"make_regression {seed}", X, y, "least-squares"
        yield f"make_regression {seed}, units", units(X, seed), y, "least-squares"
        yield f"make_regression {seed}, units and offsets", units(X, seed, 5.0), y, "least-squares"
    for make in (datasets.make_friedman1, datasets.make_friedman2, datasets.make_friedman3):
        X, y = make(5000, noise=0.5, random_state=0)
        yield make.__name__, X, y, "least-squares"
    X, y = datasets.make_friedman1(5000, noise=0.5, random_state=0)
    yield "make_friedman1, units", units(X, 1), y, "least-squares"
    X, y = datasets.make_sparse_uncorrelated(5000, 10, random_state=0)
    yield "make_sparse_uncorrelated", X, y, "least-squares"
    X, y = datasets.make_regression(5000, 30, effective_rank=5, noise=0.5, random_state=3)
    yield "make_regression of low rank", X, y, "least-squares"
    for seed in range(2):
        X, y = datasets.make_classification(5000, 20, n_informative=8, random_state=seed)
        yield f"make_classification {seed}", X, 2.0 * y - 1, "logistic"
        yield f"make_classification {seed}, units and offsets", units(X, seed, 5.0), 2.0 * y - 1, "logistic"
    X, y = datasets.make_hastie_10_2(5000, random_state=0)
    yield "make_hastie_10_2", X, y, "logistic"


def tail(pasta, folder):
    """One pass in blocks beside fits of the whole table, with and without the rows that the pass keeps back: mean loss over all rows."""
    rows, columns = 100_000, 20
    losses = {
        "least-squares": lambda z, y: (z - y) ** 2 / 2,
        "logistic": lambda z, y: np.logaddexp(0.0, -y * z),
        "poisson": lambda z, y: np.exp(z) - y * z,
        "hinge": lambda z, y: np.maximum(0.0, 1 - y * z),
        "absolute": lambda z, y: np.abs(z - y),
    }
    print("| loss | columns | whole table | without the tail | one pass | rows kept back |")
    print("|---|---|---|---|---|---|")
    for name, kind in (("least-squares", "well"), ("least-squares", "10^6"), ("logistic", "well"), ("poisson", "well"), ("hinge", "well"), ("absolute", "well")):
        rng = np.random.default_rng(5)
        X = rng.standard_normal((rows, columns))
        if kind != "well":
            # Correlated columns: a rotation between two scalings whose ratio is 10^3, so that X'X has a condition number of 10^6.
            turn = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
            X = X @ (turn * 10.0 ** np.linspace(0, 3, columns)) @ turn.T
        z = X @ rng.standard_normal(columns) / np.sqrt(columns) / (1 if kind == "well" else 100)
        y = {
            "least-squares": lambda: z + 0.5 * rng.standard_normal(rows),
            "absolute": lambda: z + 0.5 * rng.standard_normal(rows),
            "poisson": lambda: rng.poisson(np.exp(z)).astype(float),
            "logistic": lambda: np.where(rng.random(rows) < 1 / (1 + np.exp(-2 * z)), 1.0, -1.0),
            "hinge": lambda: np.where(rng.random(rows) < 1 / (1 + np.exp(-2 * z)), 1.0, -1.0),
        }[name]()
        lines = [f"{label:.8g}," + ",".join(f"{v:.8g}" for v in row) + "\n" for label, row in zip(y.tolist(), X.tolist())]
        header = "y," + ",".join(f"x{j}" for j in range(columns)) + "\n"

        def fitted(words, part):
            text = header + "".join(part)
            model = os.path.join(folder, "tail-model")
            out = subprocess.run([pasta, "fit", "-", "--loss", name, "--json", "-o", model, *words], input=text, capture_output=True, text=True)
            weights = json.load(open(model))
            w = np.array([weights["weights"][f"x{j}"] for j in range(columns)]).reshape(columns)
            b = weights["intercept"]
            scores = X @ w + (b[0] if isinstance(b, list) else b)
            return float(np.mean(losses[name](scores, y))), json.loads(out.stdout)

        once, said = fitted(["--one-pass", "--block", str(2 << 20)], lines)
        whole, _ = fitted([], lines)
        head, _ = fitted([], lines[: said["learnt_rows"]])
        print(f"| {name} | {kind} | {whole:.6f} | {head:.6f} | {once:.6f} | {rows - said['learnt_rows']:,} |", flush=True)


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1] == "sklearn":
        kind, columns, scaled, held, model = sys.argv[2:]
        sklearn(kind, int(columns), scaled, held, model)
        return
    pasta, folder, *wanted = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    if "streams" in wanted or not wanted:
        streams(pasta, folder)
    if "tables" in wanted or not wanted:
        tables(pasta, folder)
    if "tail" in wanted or not wanted:
        tail(pasta, folder)


main()
