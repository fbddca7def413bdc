"""The demo into Delta Lake: a worker is killed, and another engine finds each flight once."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.processes import sparkherd
from tests.kafka.broker import JARS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.processes,
    pytest.mark.connectors,
    pytest.mark.by_hand,
    pytest.mark.timeout(1200),
]

FLIGHTS = 3000


def test_demo_delta(tmp_path: Path) -> None:
    """Read back without Spark; the line that is printed for whoever wants to look works as it is."""
    flags = ("--sink", "delta", "--jars", str(JARS.parent), "--flights", str(FLIGHTS))
    done = sparkherd("demo", *flags, "--workdir", "work", "--json", cwd=tmp_path, timeout_s=1100)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["rows_in"], result["rows_out"]) == (FLIGHTS, FLIGHTS)
    assert (result["lost"], result["duplicated"], result["wrong_delays"]) == (0, 0, 0)
    assert result["failover"]["orphans"]
    _, query, _ = result["how_to_read"]
    answer = subprocess.run(query, shell=True, capture_output=True, text=True, check=True).stdout
    assert answer.splitlines()[-2].split("|")[1].strip() == str(FLIGHTS)
