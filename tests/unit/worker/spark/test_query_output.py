"""The way out of a query."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from structlog.testing import capture_logs

from worker.spark.query_output import QueryOutput


def exits() -> None:
    """A plug-in that was a script once."""
    sys.exit("usage")


def test_each_sink_is_closed_whatever_becomes_of_the_others() -> None:
    """What goes wrong with one is logged."""
    closed: list[str] = []
    sinks = [SimpleNamespace(close=exits), SimpleNamespace(close=lambda: closed.append("second"))]
    output: Any = SimpleNamespace(connected=None, _sinks=sinks)
    with capture_logs() as logs:
        QueryOutput.close(output)
    assert closed == ["second"]
    assert [each["why"] for each in logs] == ["SystemExit: usage"]
