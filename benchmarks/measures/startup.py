"""How long `sparkherd --help` takes, and how much of it is Python itself."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.tools.figures import ResultLine, interleaved, summary

RUNS = 15


def measure() -> list[ResultLine]:
    """Seconds to the help text, and as a ratio to an interpreter that does nothing."""
    helped, bare = interleaved(RUNS, lambda: python("-m", "cli", "--help"), lambda: python("-c", "pass"))
    seconds, spread = summary(helped)
    ratio, ratio_spread = summary([h / b for h, b in zip(helped, bare, strict=True)])
    return [
        ResultLine("sparkherd --help", 0.3, seconds, spread, "s"),
        ResultLine("sparkherd --help against an idle interpreter", 5, ratio, ratio_spread, "times"),
    ]


def python(*args: str) -> None:
    """Run this interpreter to its end."""
    subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL)
