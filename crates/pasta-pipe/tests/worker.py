"""A worker in JSON that misbehaves on demand: E |x - xi|^2/2, xi standard normal.

FAULT names what goes wrong at request number AT of a process; with ONCE = a file, only in the first process to get there.
"""
import json, os, random, sys, time

fault, at, once = os.environ.get("FAULT", ""), int(os.environ.get("AT", "1")), os.environ.get("ONCE")
PIDS = os.environ.get("PIDS")
if PIDS:
    with open(PIDS, "a") as file:
        file.write(f"{os.getpid()}\n")


def strikes(number):
    if number < at or not fault:
        return False
    if once:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
    return True


def say(text):
    print(text, flush=True)


hello = json.loads(sys.stdin.readline())
answer = {"pasta": 1, "dimension": hello["dimension"], "losses": True, "reproducible": fault != "unseeded", "squares": True, "name": "test"}
if fault == "greeting":
    answer["pasta"] = 2
if fault == "dimension":
    answer["dimension"] = 7
if fault == "mute":
    time.sleep(1000)
if fault == "refuse":
    answer = {"error": "no licence at this hour"}
say(json.dumps(answer))
number = 0
for line in sys.stdin:
    number += 1
    ask = json.loads(line)
    bad = fault if strikes(number) else ""
    if bad == "dies":
        print("one\ntwo\nthe model cannot be read", file=sys.stderr, flush=True)
        os._exit(3)
    if bad == "hangs":
        print("thinking", file=sys.stderr, flush=True)
        time.sleep(1000)
    if bad == "talks":
        sys.stderr.write(("x" * 1000 + "\n") * 5000)
        sys.stderr.flush()
    if bad == "garbage":
        say("here I am")
        continue
    gradients, losses, squares = [], [], []
    for x in ask["points"]:
        gradient, loss, square = [0.0] * len(x), 0.0, 0.0
        for n in range(ask["first"], ask["first"] + ask["count"]):
            rng = random.Random() if fault == "unseeded" else random.Random(f"{ask['seed']}/{n}")
            g = [v - rng.gauss(0, 1) for v in x]
            gradient = [a + b for a, b in zip(gradient, g)]
            square += sum(v * v for v in g)
            loss += sum(v * v for v in g) / 2
        gradients.append(gradient)
        losses.append(loss)
        squares.append(square)
    if bad == "nan":
        gradients[0][0] = float("nan")
    if bad == "short":
        gradients[0].pop()
    if bad == "missing":
        gradients.pop()
    reply = {"id": ask["id"] + (bad == "id"), "gradients": gradients}
    if ask["losses"] and bad != "lossless":
        reply["losses"] = losses
    if ask["squares"]:
        reply["squares"] = squares
    if bad == "error":
        reply = {"id": ask["id"], "error": "the queue is unstable"}
    if bad == "busy":
        reply = {"id": ask["id"], "error": "the queue is busy", "retry": True}
    if os.environ.get("PAUSE"):
        time.sleep(float(os.environ["PAUSE"]))
    say(json.dumps(reply))
