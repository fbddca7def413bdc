"""The demo itself: three real workers, one of them killed, and every flight where it belongs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.processes import sparkherd

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

FLIGHTS = 20_000
"""Enough for a worker to die among them, and another one to come."""


def test_the_demo_loses_nothing(tmp_path: Path) -> None:
    """A worker is killed, its tasks run elsewhere; every flight is in the sink once."""
    flags = ("--flights", str(FLIGHTS), "--workdir", "work", "--json")
    done = sparkherd("demo", *flags, cwd=tmp_path, timeout_s=1100)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["rows_in"], result["rows_out"]) == (FLIGHTS, FLIGHTS)
    assert (result["lost"], result["duplicated"], result["wrong_delays"]) == (0, 0, 0)
    assert result["failover"]["orphans"]
    assert result["failover"]["disturbed"] == result["scaling"]["disturbed"] == []
    with closing(sqlite3.connect(tmp_path / "work" / "flights.db")) as db:
        assert db.execute("SELECT COUNT(*) FROM flights").fetchone() == (FLIGHTS,)
