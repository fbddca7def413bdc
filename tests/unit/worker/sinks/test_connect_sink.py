"""What a sink that somebody plugs in may do where it is connected before its task is granted."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from definition.sink import Sink as SinkDefinition
from telemetry.foreign_errors import first_line_of
from tests.fakes.foreign_errors import RAISED, kind_of
from worker.sinks import factory
from worker.sinks.closing import let_go
from worker.sinks.errors import SinkError
from worker.sinks.factory import connect_sink
from worker.sinks.fence import FenceRow, Owner

SINK = SinkDefinition(format="fenced_files", options={"path": "/nowhere"})


class Broken:
    """A connection that cannot be closed."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def close(self) -> None:
        raise self.error


def written_by(monkeypatch: pytest.MonkeyPatch, writer: Any) -> None:
    """The format is written by that class."""
    monkeypatch.setattr(factory, "_writer", lambda _own: writer)


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
def test_whatever_its_connect_raises_is_told_of_the_sink(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """An exit would end the worker."""

    class Writer:
        @classmethod
        def connect(cls, _task: Any) -> None:
            raise error

    written_by(monkeypatch, Writer)
    with pytest.raises(SinkError, match=rf"sink.format: fenced_files: {type(error).__name__}: "):
        connect_sink(SINK, "g")


def test_what_it_says_itself_of_its_place_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words that it has for that at its start, too."""

    class Writer:
        @classmethod
        def connect(cls, _task: Any) -> None:
            raise SinkError("the store does not answer")

    written_by(monkeypatch, Writer)
    with pytest.raises(SinkError, match=r"^the store does not answer$"):
        connect_sink(SINK, "g")


def test_a_method_of_that_name_from_before_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the sink's own, called with a task in place of the sink it would leave a connection open."""
    called: list[object] = []

    class Writer:
        def connect(self) -> None:
            called.append(self)

    written_by(monkeypatch, Writer)
    assert connect_sink(SINK, "g") is None
    assert called == []


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
def test_what_cannot_be_closed_is_logged(error: BaseException) -> None:
    """Whoever lets go of it goes on."""
    with capture_logs() as logs:
        let_go(Broken(error))
    assert [each["why"] for each in logs] == [first_line_of(error)]


class Closing:
    """A sink that knows a fence, and raises where it is closed."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def newest(self) -> FenceRow:
        """What it knows."""
        return FenceRow(7, resets=2)

    def close(self) -> None:
        """As a driver may that has been shut down."""
        raise self.error


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
def test_what_a_sink_has_said_counts_whatever_its_end(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Else a run without a manager would go on without its resets."""
    monkeypatch.setattr(factory, "open_sink", lambda *_: Closing(error))
    assert factory.newest_fence(SINK, Owner("g", "t", 0)) == FenceRow(7, resets=2)
