"""Errors of Spark as causes of a task: the line a person needs first, the details after it."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import SparkContext

from telemetry.secrets import scrub
from worker.query_engine import QueryError
from worker.sinks.errors import SinkError
from worker.spark.remedies import judge

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE = 500
MAX_DETAILS = 6000
_MAX_DEPTH = 12
_NOISE = re.compile(r"\s*SQLSTATE: \w+")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]*)\]")
_REMOTE_TRACE = "\n\nJVM stacktrace:\n"
"""What Spark Connect puts between the message of an error and Java's own account of it."""
_REMOTE_CONDITION = re.compile(r"^\((?:STREAM_FAILED|[a-z][\w.]+)\) ")
_CAUSED_BY = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_WRAPPERS = {"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "TASK_WRITE_FAILED"}
"""Conditions that say only that something else went wrong."""


class JavaError(NamedTuple):
    """One link in the chain of causes of a Java exception."""

    kind: str
    message: str


def describe(error: BaseException) -> str:
    """The cause in one line; an empty line and what it was made of follow, if there is more to say."""
    if isinstance(error, SinkError):
        return scrub(str(error))
    throwable = java_throwable(error)
    if throwable is not None:
        try:
            return describe_java(throwable)
        except Exception:  # noqa: BLE001 - the JVM that could tell is gone
            return _first_line(str(error))
    if _REMOTE_TRACE in str(error):
        return describe_remote(str(error))
    trace = "".join(traceback.format_exception(error))
    return _join(_first_line(f"{type(error).__name__}: {error}"), trace)


def describe_java(throwable: Any) -> str:
    """The cause that a Java exception (by Py4J) has at the bottom of it, and its stack trace."""
    return _join(headline(list(_chain(throwable))), _stack_trace(throwable))


def describe_remote(text: str) -> str:
    """The cause in an error of Spark Connect's, which has come as one text."""
    message, _, trace = text.strip().partition(_REMOTE_TRACE)
    message = _REMOTE_CONDITION.sub("", message)
    links = [JavaError(kind, said or "") for kind, said in _CAUSED_BY.findall(trace)]
    kind = trace.partition("\n")[0].partition(":")[0]
    return _join(headline([JavaError(kind, message), *links]), f"{message}\n\n{trace}")


def refusal(error: BaseException, *, by: str = "") -> QueryError:
    """What a start that failed with `error` is to raise; `by` goes before the cause."""
    told = judge(by + describe(error), at_start=True)
    return QueryError(told.cause, permanent=told.permanent, outage=told.outage)


def failure(cause: str, *, fenced: bool = False) -> QueryError:
    """The end of a query that has failed with `cause`, because it was `fenced` or for another reason."""
    told = judge(cause, at_start=False)
    return QueryError(told.cause, fenced, told.permanent, told.outage)


def headline(chain: list[JavaError]) -> str:
    """The line of a chain, outermost first, that says most.

    That is the innermost message with one of Spark's error conditions, else the innermost message.
    """
    told = [link for link in chain if link.message]
    for link in reversed(told):
        condition = _CONDITION.match(link.message.strip())
        if condition and condition[1] not in _WRAPPERS:
            return _first_line(link.message)
    if not told:
        return chain[-1].kind if chain else "an error without a message"
    return _first_line(f"{told[-1].kind.rpartition('.')[2]}: {told[-1].message.strip()}")


def java_throwable(error: BaseException) -> Any | None:
    """The Java exception under a Python one, None if there is none."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def _chain(throwable: Any) -> Iterator[JavaError]:
    for _ in range(_MAX_DEPTH):
        if throwable is None:
            return
        yield JavaError(throwable.getClass().getName(), throwable.getMessage() or "")
        throwable = throwable.getCause()


def _stack_trace(throwable: Any) -> str:
    """The whole chain with its frames, as Java prints it."""
    jvm: Any = SparkContext._jvm  # noqa: SLF001 - where PySpark keeps it
    return str(jvm.org.apache.spark.util.Utils.exceptionString(throwable))


def _first_line(text: str) -> str:
    """Secrets are taken out before it is cut: half of one would not be known."""
    line = _NOISE.sub("", scrub(text.strip().partition("\n")[0])).rstrip(" ;")
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"


def _join(line: str, details: str) -> str:
    return f"{line}\n\n{scrub(details.strip(), MAX_DETAILS)}"
