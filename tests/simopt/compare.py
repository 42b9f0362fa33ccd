"""pasta against the solvers of simoptlib on the package's box problems with gradients: python3 compare.py PASTA POINTS > table.

Needs `pip install simoptlib` and the program `pasta`, whose path is PASTA. POINTS is a file that keeps the points of all runs: what it holds is not run again. Every method starts where the package starts and has the package's budget of replications,
`pasta` with its check included; the points they hand out are evaluated by fresh replications of the package's model, the same for all. Writes a table in Markdown to stdout, and docs/simopt.svg.
"""
import json, math, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from mrg32k3a.mrg32k3a import MRG32k3a
from problems import NAMES, problem
from simopt.directory import solver_directory
from simopt.experiment.run_solver import run_solver
from simopt.problem import Solution

HERE = Path(__file__).resolve().parent
PASTA, POINTS = sys.argv[1], Path(sys.argv[2])
RUNS, EVALUATION = 20, 200
METHODS = ["ADAM", "ALOE", "STRONG", "ASTRODF", "pasta auto"]


def by_pasta(name, run):
    it = problem(name)
    file = Path(tempfile.mkdtemp()) / "problem.toml"
    file.write_text(f"""seed = {run + 1}
budget = {it.factors["budget"]}
[problem]
command = [{json.dumps(sys.executable)}, "sim.py", "{name}"]
directory = {json.dumps(str(HERE))}
environment = {{ PYTHONPATH = "../../sdk" }}
start = {[float(x) for x in it.factors["initial_solution"]]}
workers = 1
[[term]]
kind = "box"
lower = {[float(x) for x in it.lower_bounds]}
upper = {[float(x) for x in it.upper_bounds]}
[recipe]
name = "auto"
""")
    answer = subprocess.run([PASTA, "solve", "--json", str(file)], capture_output=True, text=True)
    if answer.returncode not in (0, 5):
        raise SystemExit(f"{name}, run {run}: {answer.stderr}")
    result = json.loads(answer.stdout)
    assert int(result["ledger"]["samples"]) <= it.factors["budget"]
    return tuple(result["point"])


def value(name, x):
    """The mean over fresh replications, the same for every point; inf where the package calls the point infeasible or has no number."""
    it = problem(name)
    inside = all(low <= x <= high for low, x, high in zip(it.lower_bounds, x, it.upper_bounds))
    solution = Solution(tuple(x), it)
    solution.attach_rngs([MRG32k3a(s_ss_sss_index=[0, i, 0]) for i in range(it.model.n_rngs)], copy=False)
    it.simulate(solution, EVALUATION)
    mean = -it.minmax[0] * float(np.mean(solution.objectives[: solution.n_reps, 0]))
    return mean if inside and math.isfinite(mean) else math.inf


def by_solver(name, solver):
    """The last point of each run."""
    frame, _ = run_solver(solver_directory[solver](), problem(name), RUNS, 2)
    return [tuple(float(x) for x in group.sort_values("step")["solution"].iloc[-1]) for _, group in frame.groupby("mrep")]


def by_auto(name):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda run: by_pasta(name, run), range(RUNS)))


found = json.loads(POINTS.read_text()) if POINTS.exists() else {}
for method in METHODS:
    for name in NAMES:
        if f"{name} {method}" not in found:
            found[f"{name} {method}"] = by_auto(name) if method == "pasta auto" else by_solver(name, method)
            POINTS.write_text(json.dumps(found))
            print(f"{name} {method}", file=sys.stderr, flush=True)
rows = []
for name in NAMES:
    start = value(name, problem(name).factors["initial_solution"])
    for method in METHODS:
        values = sorted(value(name, x) for x in found[f"{name} {method}"])
        rows.append((name, problem(name).factors["budget"], method, values, start))

print("| problem | budget | method | mean | median | worst of 20 | standard error | at the start |\n|---|---|---|---|---|---|---|---|")
for name, budget, method, values, begin in rows:
    error = np.std(values, ddof=1) / math.sqrt(RUNS)
    print(f"| {name} | {budget} | {method} | {np.mean(values):.4f} | {np.median(values):.4f} | {values[-1]:.4f} | {error:.4f} | {begin:.4f} |")

# One strip for each problem and method, the values of all runs as dots; what is worse than the start stands at its right end.
width, strip, parts = 640, 26, []
y = 20
for name in NAMES:
    mine = [row for row in rows if row[0] == name]
    low, high = min(row[3][0] for row in mine), min(max(row[3][-1] for row in mine), mine[0][4])
    span = (high - low) or 1.0
    parts.append(f'<text x="8" y="{y}" font-weight="bold">{name}: objective, smaller is better</text>')
    for row in mine:
        y += strip
        parts.append(f'<text x="8" y="{y + 4}">{row[2]}</text><line x1="110" x2="{width - 20}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        shares = [min((v - low) / span, 1.0) for v in row[3]]
        parts += [f'<circle cx="{110 + (width - 130) * share:.1f}" cy="{y}" r="4" fill="#1f77b4" fill-opacity="0.45"/>' for share in shares]
    y += strip
    parts.append(f'<text x="110" y="{y}" font-size="11">{low:.4g}</text><text x="{width - 20}" y="{y}" font-size="11" text-anchor="end">{high:.4g}</text>')
    y += strip + 8
svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" font-family="sans-serif" font-size="13"><rect width="{width}" height="{y}" fill="white"/>{"".join(parts)}</svg>'
(HERE.parents[1] / "docs" / "simopt.svg").write_text(svg + "\n")
