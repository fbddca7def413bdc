"""A manager under schemathesis, which asks whatever its description allows, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.api.hooks import LONGEST_MS
from tests.acceptance.processes import Manager

if TYPE_CHECKING:
    from typing import IO

HERE = Path(__file__).parent
FLAGS = (
    *("--initial-rebalance-delay-ms", "0"),
    *("--min-session-timeout-ms", "1"),
    *("--max-session-timeout-ms", str(LONGEST_MS)),
    *("--new-member-timeout-ms", str(LONGEST_MS)),
)
"""Joins are parked for as long as sessions last; these do not last long."""

COMMON = (
    *("--config-file", str(HERE / "schemathesis.toml"), "--no-color", "run"),
    *("--checks", "all", "--request-timeout", "60"),
    *("--suppress-health-check", "all"),  # they are about the speed of the machine
)


def start_manager(folder: Path) -> Manager:
    """One that lets nobody wait for long."""
    return Manager(folder, *FLAGS, "--client-rate", "100000")


def run(manager: Manager, *options: str, output: IO[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run schemathesis to its end; its exit code is 0 if it found nothing."""
    cli = "from schemathesis.cli import schemathesis; schemathesis()"
    address = f"{manager.url}/openapi.json"
    return subprocess.run(
        [sys.executable, "-c", cli, *COMMON, *options, address],
        cwd=HERE.parents[2],
        stdout=output or subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
