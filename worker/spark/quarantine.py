"""What becomes of requests about the rows that a task has put aside; called in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.quarantine import QuarantineAnswer, QuarantineRequest
    from worker.query_engine import QuerySpec
    from worker.spark.backend import SparkBackend
    from worker.spark.settings import SparkSettings


def answer(
    backend: SparkBackend,
    spec: QuerySpec,
    settings: SparkSettings,
    request: QuarantineRequest,
    at: Callable[[str], None],
) -> QuarantineAnswer:
    """List, show, play again or discard, as `worker.query_engine.QueryEngine.quarantine` says.

    Args:
        backend: this worker's Spark.
        spec: the task, its secrets not looked up yet.
        settings: the worker's.
        request: what to do.
        at: is called with each thing that this may have to wait for; raises QueryError once it is given up.

    Raises:
        NoQuarantineError: the definition puts no rows aside.
        QueryError: it cannot be done.
    """
    del backend, settings, at
    # THE PLACE: what reads a quarantine and plays its rows again goes here.
    raise QueryError(f"this worker's Spark cannot {request.action} quarantined rows of task {spec.task} yet")
