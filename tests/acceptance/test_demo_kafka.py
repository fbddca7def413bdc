"""The demo on Kafka: a worker and the broker are killed while flights arrive."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
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

FLIGHTS = 20_000


def test_demo_kafka(tmp_path: Path) -> None:
    """Each flight is in the sink once, and each place of the topic; no task is behind at the end."""
    flags = ("--kafka", str(JARS.parent), "--flights", str(FLIGHTS))
    done = sparkherd("demo", *flags, "--workdir", "work", "--json", cwd=tmp_path, timeout_s=1100)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["rows_in"], result["rows_out"]) == (FLIGHTS, FLIGHTS)
    assert (result["lost"], result["duplicated"], result["wrong_delays"]) == (0, 0, 0)
    assert result["failover"]["orphans"]
    assert result["failover"]["disturbed"] == result["scaling"]["disturbed"] == []
    assert 0.5 < result["broker"]["share_produced"] <= 1
    assert result["most_lag"] > 0
    assert "lag 0, at most" in done.stderr
    with closing(sqlite3.connect(tmp_path / "work" / "flights.db")) as db:
        places = "SELECT COUNT(*) FROM (SELECT DISTINCT kafka_partition, kafka_offset FROM flights)"
        assert db.execute(places).fetchone() == (FLIGHTS,)
