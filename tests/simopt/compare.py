"""pasta against the solvers of simoptlib on the package's own models: python3 compare.py [PASTA] > table.

Needs `pip install simoptlib` and the program `pasta` (its path is the argument). Every method gets the same budget of replications, `pasta` with its check included; the
points they hand out are evaluated by fresh replications of the package's model, the same for all. Writes a table in Markdown to stdout, and docs/simopt.svg.
"""
import json, math, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from mrg32k3a.mrg32k3a import MRG32k3a
from simopt.directory import problem_directory, solver_directory
from simopt.experiment.run_solver import run_solver
from simopt.problem import Solution

HERE = Path(__file__).resolve().parent
PASTA = sys.argv[1] if len(sys.argv) > 1 else "pasta"
RUNS, EVALUATION = 20, 200
PROBLEMS = [("CNTNEWS-1", 1000, (1.0,)), ("SAN-1", 1000, (8.0,) * 13), ("FIXEDSAN-1", 1000, (10.0,) * 13)]
LEAST = {"SAN-1": 0.01, "FIXEDSAN-1": 0.01}


def by_pasta(name, budget, start, method, run):
    file = Path(tempfile.mkdtemp()) / "problem.toml"
    file.write_text(f"""seed = {run + 1}
budget = {budget}
[problem]
command = [{json.dumps(sys.executable)}, "sim.py", "{name}"]
directory = {json.dumps(str(HERE))}
environment = {{ PYTHONPATH = "../../sdk" }}
start = {[math.log(x) for x in start]}
workers = 1
[recipe]
{method}
""")
    answer = subprocess.run([PASTA, "solve", "--json", str(file)], capture_output=True, text=True)
    if answer.returncode not in (0, 5):
        raise SystemExit(f"{name}, run {run}: {answer.stderr}")
    result = json.loads(answer.stdout)
    assert int(result["ledger"]["samples"]) <= budget
    return tuple(max(math.exp(z), LEAST.get(name, 0.0)) for z in result["point"])


def value(name, x):
    """The mean over fresh replications, the same for every point."""
    problem = problem_directory[name]()
    solution = Solution(x, problem)
    solution.attach_rngs([MRG32k3a(s_ss_sss_index=[0, i, 0]) for i in range(problem.model.n_rngs)], copy=False)
    problem.simulate(solution, EVALUATION)
    return -problem.minmax[0] * float(np.mean(solution.objectives[: solution.n_reps, 0]))


rows = []
for name, budget, start in PROBLEMS:
    factors = {"initial_solution": start, "budget": budget}
    found = {}
    for solver in ("ADAM", "ASTRODF"):
        frame, _ = run_solver(solver_directory[solver](), problem_directory[name](fixed_factors=factors), RUNS, 1)
        found[solver] = [tuple(group.sort_values("step")["solution"].iloc[-1]) for _, group in frame.groupby("mrep")]
    with ThreadPoolExecutor(4) as pool:
        # Neither has a constant. The steps of dog leave room for the check.
        for method, recipe in (("pasta auto", 'name = "auto"'), ("pasta dog", f'name = "dog"\nbatch = 10\nsteps = {(budget - 50) // 10}')):
            found[method] = list(pool.map(lambda run: by_pasta(name, budget, start, recipe, run), range(RUNS)))
    for method, points in found.items():
        values = sorted(value(name, x) for x in points)
        rows.append((name, budget, method, values, value(name, start)))
        print(f"{name} {method}: {np.mean(values):.4f}", file=sys.stderr, flush=True)

print("| problem | budget | method | mean | median | worst of 20 | standard error | at the start |\n|---|---|---|---|---|---|---|---|")
for name, budget, method, values, begin in rows:
    error = np.std(values, ddof=1) / math.sqrt(RUNS)
    print(f"| {name} | {budget} | {method} | {np.mean(values):.4f} | {np.median(values):.4f} | {values[-1]:.4f} | {error:.4f} | {begin:.4f} |")

# One strip for each problem and method, the values of all runs as dots.
width, strip, parts = 640, 26, []
y = 20
for name, *_ in PROBLEMS:
    mine = [row for row in rows if row[0] == name]
    low, high = min(row[3][0] for row in mine), max(row[3][-1] for row in mine)
    span = (high - low) or 1.0
    parts.append(f'<text x="8" y="{y}" font-weight="bold">{name}: objective, smaller is better</text>')
    for row in mine:
        y += strip
        parts.append(f'<text x="8" y="{y + 4}">{row[2]}</text><line x1="110" x2="{width - 20}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts += [f'<circle cx="{110 + (width - 130) * (v - low) / span:.1f}" cy="{y}" r="4" fill="#1f77b4" fill-opacity="0.45"/>' for v in row[3]]
    y += strip
    parts.append(f'<text x="110" y="{y}" font-size="11">{low:.4g}</text><text x="{width - 20}" y="{y}" font-size="11" text-anchor="end">{high:.4g}</text>')
    y += strip + 8
svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" font-family="sans-serif" font-size="13"><rect width="{width}" height="{y}" fill="white"/>{"".join(parts)}</svg>'
(HERE.parents[1] / "docs" / "simopt.svg").write_text(svg + "\n")
