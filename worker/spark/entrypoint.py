"""Entry points: PySpark code of the user's, named in a definition as `package.module:function`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from telemetry.foreign_errors import FAILURES
from worker.query_engine import QueryError
from worker.sinks.errors import SinkError
from worker.spark.causes import describe, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from worker.spark.backend import QuerySession
    from worker.spark.context import TaskContext


def is_allowed(entrypoint: str, prefixes: Sequence[str]) -> bool:
    """Whether a prefix covers the entry point: its whole name, its module, or a package around that."""
    module = entrypoint.partition(":")[0]
    return any(entrypoint == each or f"{module}.".startswith(f"{each}.") for each in prefixes)


def call(
    entrypoint: str, prefixes: Sequence[str], context: TaskContext, session: QuerySession
) -> DataStreamWriter:
    """The writer that an entry point makes of its context, for a query in `session`.

    Raises:
        QueryError: it is not allowed, cannot be imported, fails, or returns something else.
    """
    if not is_allowed(entrypoint, prefixes):
        raise QueryError(
            f"entrypoint: {entrypoint} is not allowed on this worker;"
            f" start it with --allow-entrypoint {entrypoint.partition(':')[0]}",
            permanent=True,
        )
    function = find(entrypoint)
    try:
        made = function(context)
    except (QueryError, SinkError):
        raise
    except FAILURES as error:
        raise refusal(error, by=f"entrypoint: {entrypoint} failed: ") from error
    return _as_writer(entrypoint, made, session)


def find(entrypoint: str) -> Callable[[TaskContext], Any]:
    """The function of that name; importing its module runs it, once in a worker's life.

    Raises:
        QueryError: there is no such module or function, or the module fails.
    """
    module_name, _, function_name = entrypoint.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise QueryError(
            f"entrypoint: cannot import {module_name}: no module named {error.name}", permanent=True
        ) from error
    except FAILURES as error:
        raise QueryError(f"entrypoint: importing {module_name} failed: {describe(error)}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise QueryError(f"entrypoint: {module_name} has no function {function_name}", permanent=True)
    return function  # type: ignore[no-any-return]  # what it is made of shows when it is called


def _as_writer(entrypoint: str, made: Any, session: QuerySession) -> DataStreamWriter:
    if isinstance(made, session.writer_type):
        return made
    if isinstance(made, session.query_type):
        made.stop()
        raise QueryError(f"entrypoint: {entrypoint} started its query; return the writer without start()")
    raise QueryError(f"entrypoint: {entrypoint} returned {type(made).__name__}, not a DataStreamWriter")
