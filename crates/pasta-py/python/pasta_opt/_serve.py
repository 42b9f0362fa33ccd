"""An oracle of Python as a simulator of the program."""

from __future__ import annotations

import json
import os
import struct
import sys
import traceback
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._native import Native
from ._oracle import Computed, Leaves, Oracle, Problem, Structured

Vector = NDArray[np.float64]

#: The second word of the generators' key: samples of a pipe are none of a run in this process.
KEY = 0x7069706573


def serve(oracle: Any, x0: Any = None) -> None:
    """Answers the program `pasta` as a simulator (docs/pipe.md), until the program is gone: for ``pasta solve``, ``compare``, ``check`` and the others.

    A worker is a script of two lines, ``from mine import grad`` and ``pasta_opt.serve(grad)``, and ``pasta solve --command 'python3 worker.py' --dimension 3 --target 0.1``
    runs as many of them at a time as the machine has processors. The oracle is what :func:`minimize` takes: a function, an :class:`Oracle`, a :class:`Problem`; one of JAX
    needs an `x0` of the structure of its parameters. The program's `block` is the largest n that a function is called with.

    The same seed gives the same bits on any number of workers; they are not those of :func:`minimize`, because a simulator's samples have other addresses.
    What is printed goes to stderr, where the program shows it. What the oracle raises ends the run with its sentence.
    """
    is_oracle = isinstance(oracle, (Oracle, Problem, Structured)) or callable(oracle)
    if isinstance(oracle, (Native, Computed)) or not is_oracle:
        raise TypeError(f"serve takes a function, an Oracle or a Problem of Python, not {oracle!r}")
    if sys.stdin.isatty():
        raise RuntimeError("serve is for a script that the program starts: pasta solve --command 'python3 worker.py' --dimension 3 --target 0.1")
    read = sys.stdin.buffer
    greeting = read.readline()
    if not greeting:
        return
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(data: bytes) -> None:
        out.write(data)
        out.flush()

    hello = json.loads(greeting)
    try:
        leaves = _greeted(oracle, x0, hello)
    except Exception as error:
        traceback.print_exc()
        return say(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
    about = {"pasta": 1, "dimension": leaves.dim, "losses": bool(leaves.losses), "reproducible": True, "additive": not leaves.batched}
    say(json.dumps({**about, "pathwise": leaves.pathwise, "framing": "binary", "name": leaves.called}).encode() + b"\n")
    while len(head := read.read(40)) == 40:
        request, seed, first, count, points, wanted = struct.unpack("<QQQQII", head)
        at = np.frombuffer(read.read(8 * leaves.dim * points), "<f8").astype(np.float64).reshape(points, -1)
        at.setflags(write=False)
        try:
            sums = leaves.sums(list(at), [seed, KEY], _counters(first, count, leaves.batched), count, False, bool(wanted & 1))
            say(struct.pack("<QII", request, 0, 0) + sums.astype("<f8").tobytes())
        except Exception as error:
            traceback.print_exc()
            text = f"{type(error).__name__}: {error}".encode()
            say(struct.pack("<QII", request, 1, len(text)) + text)


def _greeted(oracle: Any, x0: Any, hello: dict[str, Any]) -> Leaves:
    """The oracle for the dimension that the program has; one sample at 0 shows whether there are losses, if nobody said it."""
    if hello.get("pasta") != 1:
        raise ValueError(f"this worker speaks version 1 of the protocol, the program {hello.get('pasta')}")
    if isinstance(oracle, Structured):
        if x0 is None:
            raise TypeError("an oracle of JAX needs x0, for the structure of its parameters: pasta_opt.serve(oracle, x0)")
        oracle, start, _ = oracle.bind(x0)
        if len(start) != hello["dimension"]:
            raise ValueError(f"x0 has {len(start)} numbers, but the program's dimension is {hello['dimension']}")
    leaves = Leaves(oracle, hello["dimension"])
    if leaves.losses is None:
        try:
            leaves.sums([np.zeros(leaves.dim)], [0, KEY], [[0, 0, 0, 0]], 1, False, False)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"one sample at 0 was to show whether it gives losses (pasta_opt.Oracle(function, losses=False) says it): {what}") from error
    return leaves


def _counters(first: int, count: int, batched: bool) -> list[list[int]]:
    """Where the generators begin: of a request as a whole, or of each of its samples. 2^64 blocks of Philox lie between two of them."""
    numbers = range(first, first + (1 if batched else count))
    return [[0, number, int(batched), 0] for number in numbers]
