"""Errors of Spark as causes of a task: the line a person needs first, the details after it."""

from __future__ import annotations

from typing import Any, Final

from pyspark import SparkContext

from telemetry.foreign_errors import FAILURES, kind_of, text_of, trace_of
from telemetry.secrets import beginning, scrub, shown
from worker.query_engine import QueryError
from worker.sinks.errors import SinkError
from worker.sinks.spark_errors import (
    REMOTE_TRACE,
    first_line,
    headline,
    java_chain,
    java_throwable,
    read_remote,
)
from worker.sinks.spark_values import without_values
from worker.spark.remedies import judge

MAX_DETAILS: Final = 6000


def describe(error: BaseException) -> str:
    """The cause in one line; an empty line and what it was made of follow, if there is more to say."""
    if issubclass(type(error), SinkError):
        return scrub(text_of(error))
    try:
        if (throwable := java_throwable(error)) is not None:
            return describe_java(throwable)
    except FAILURES:  # the JVM that could tell is gone, or the error is none of Spark's
        return first_line(shown(error))
    text = shown(error)
    if REMOTE_TRACE in text:
        return describe_remote(text)
    return _join(first_line(f"{kind_of(error)}: {text}"), trace_of(error))


def describe_java(throwable: Any) -> str:
    """The cause that a Java exception (by Py4J) has at the bottom of it, and its stack trace."""
    return _join(headline(list(java_chain(throwable))), _stack_trace(throwable))


def describe_remote(text: str) -> str:
    """The cause in an error of Spark Connect's, which has come as one text."""
    remote = read_remote(text)
    return _join(headline(remote.chain), f"{remote.message}\n\n{remote.trace}")


def refusal(error: BaseException, *, by: str = "") -> QueryError:
    """What a start that failed with `error` is to raise; `by` goes before the cause."""
    told = judge(by + describe(error), at_start=True)
    return QueryError(told.cause, permanent=told.permanent, outage=told.outage)


def failure(cause: str, *, fenced: bool = False) -> QueryError:
    """The end of a query that has failed with `cause`, because it was `fenced` or for another reason."""
    told = judge(cause, at_start=False)
    return QueryError(told.cause, fenced, told.permanent, told.outage)


def _stack_trace(throwable: Any) -> str:
    """The whole chain with its frames, as Java prints it."""
    jvm: Any = SparkContext._jvm  # noqa: SLF001 - where PySpark keeps it
    return str(jvm.org.apache.spark.util.Utils.exceptionString(throwable))


def _join(line: str, details: str) -> str:
    return f"{line}\n\n{scrub(without_values(beginning(details)).strip(), MAX_DETAILS)}"
