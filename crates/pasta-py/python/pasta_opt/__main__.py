"""The program `pasta`, also as `python -m pasta_opt`."""

import sys

from . import _engine


def main() -> int:
    """Runs the program with the command line of this process, and returns its exit code."""
    sys.stdout.flush()
    return _engine.program(["pasta", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
