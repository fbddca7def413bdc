"""The way out of a query."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from telemetry.foreign_errors import first_line_of
from tests.fakes.foreign_errors import RAISED, kind_of
from worker.spark.query_output import QueryOutput


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
def test_each_sink_is_closed_whatever_becomes_of_the_others(error: BaseException) -> None:
    """What goes wrong with one is logged."""

    def fails() -> None:
        raise error

    closed: list[str] = []
    sinks = [SimpleNamespace(close=fails), SimpleNamespace(close=lambda: closed.append("second"))]
    output: Any = SimpleNamespace(connected=None, _sinks=sinks)
    with capture_logs() as logs:
        QueryOutput.close(output)
    assert closed == ["second"]
    assert [each["why"] for each in logs] == [first_line_of(error)]
