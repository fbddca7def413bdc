"""Runs the benchmarks and prints goal, measured value and verdict of each; see README.md beside this file."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

QUICK = ("startup", "heartbeats", "settling", "events")
SLOW = ("takeover", "rows")


def main() -> int:
    """Run what was asked for; the exit code says whether every goal is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what takes seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--only", metavar="NAME", choices=QUICK + SLOW, help="one of them")
    options = parser.parse_args()
    sys.path.append(str(Path(__file__).parent.parent))  # the tests know how to start a PostgreSQL
    names = (options.only,) if options.only else QUICK if options.quick else QUICK + SLOW
    lines = [line for name in names for line in importlib.import_module(name).measure()]
    for line in lines:
        print(line)
    if options.json:
        options.json.write_text(json.dumps([line.as_dict() for line in lines], indent=2) + "\n")
    return 0 if all(line.good for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
