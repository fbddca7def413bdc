"""`python -m tests.acceptance.api`: schemathesis by hand, as long as one likes."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.acceptance.api.run import run, start_manager


def main() -> int:
    """Returns what schemathesis does: 0 if it found nothing."""
    parser = argparse.ArgumentParser(prog="make schemathesis")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        manager = start_manager(Path(folder))
        try:
            chosen = ("--max-time", str(options.seconds), "--seed", str(options.seed))
            found = run(manager, *chosen, "--generation-database", "none", output=sys.stdout)
        finally:
            manager.stop()
        bugs = "Traceback" in manager.log()
    return found.returncode or int(bugs)


if __name__ == "__main__":
    sys.exit(main())
