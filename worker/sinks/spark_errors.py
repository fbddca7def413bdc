"""What an error of Spark's says in one line, in a JVM of the worker's own and behind Spark Connect alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from telemetry.foreign_errors import FAILURES, MOST_OF_A_LINE, kind_of
from telemetry.secrets import both_ends, scrub, shown
from worker.sinks.spark_values import without_values

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE: Final = 500
_MAX_DEPTH: Final = 12
_NOISE = re.compile(r"(?<!\s)\s*SQLSTATE: \w+")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]*)\]")
REMOTE_TRACE: Final = "\n\nJVM stacktrace:\n"
"""What Spark Connect puts between the message of an error and Java's own account of it."""
_REMOTE_CONDITION = re.compile(r"^\((?:STREAM_FAILED|[a-z][\w.]+)\) ")
_CAUSED_BY = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_TRACEBACK: Final = re.compile(r"(?:\+ Exception Group )?Traceback \(most recent call last\):(?=\n)")
_RAISED: Final = re.compile(r"^(?:  \| )?(?P<line>\S.*)$", re.MULTILINE)
"""What a traceback of Python's ends with: its first line that is not indented; a group's have a margin."""
_CHAINED: Final = re.compile(
    r"\n\n(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception):\n\n"
)
"""What Python puts between the traceback of an exception and that of the one that came of it."""
_WRAPPERS: Final = {"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "TASK_WRITE_FAILED"}
"""Conditions that say only that something else went wrong."""


class JavaError(NamedTuple):
    """One link in the chain of causes of a Java exception."""

    kind: str
    message: str


class RemoteError(NamedTuple):
    """An error of Spark Connect's: its chain, outermost first, its message, and Java's account of it."""

    chain: list[JavaError]
    message: str
    trace: str


def said(error: BaseException) -> str:
    """What a person needs of an error of Spark's; of any other one its first line.

    Args:
        error: as it was raised by PySpark.
    """
    try:
        if (throwable := java_throwable(error)) is not None:
            return headline(list(java_chain(throwable)))
    except FAILURES:  # the JVM that could tell is gone, or the error is none of Spark's
        return first_line(shown(error))
    text = shown(error)
    if REMOTE_TRACE in text:
        return headline(read_remote(text).chain)
    return first_line(f"{kind_of(error)}: {text}")


def headline(chain: list[JavaError]) -> str:
    """The line of a chain, outermost first, that says most.

    That is the innermost message with one of Spark's error conditions, else the innermost message.
    """
    told = [link for link in chain if link.message]
    for link in reversed(told):
        condition = _CONDITION.match(link.message.strip())
        if condition and condition[1] not in _WRAPPERS:
            return first_line(link.message)
    if not told:
        return chain[-1].kind if chain else "an error without a message"
    return first_line(f"{told[-1].kind.rpartition('.')[2]}: {told[-1].message.strip()}")


def java_throwable(error: BaseException) -> Any | None:
    """The Java exception under a Python one, None if there is none."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def java_chain(throwable: Any) -> Iterator[JavaError]:
    """A Java exception by Py4J and its causes, outermost first."""
    for _ in range(_MAX_DEPTH):
        if throwable is None:
            return
        yield JavaError(throwable.getClass().getName(), throwable.getMessage() or "")
        throwable = throwable.getCause()


def read_remote(text: str) -> RemoteError:
    """An error of Spark Connect's, which has come as one text."""
    message, _, trace = text.strip().partition(REMOTE_TRACE)
    message = _REMOTE_CONDITION.sub("", message)
    links = [JavaError(kind, words or "") for kind, words in _CAUSED_BY.findall(trace)]
    kind = trace.partition("\n")[0].partition(":")[0]
    return RemoteError([JavaError(kind, message), *links], message, trace)


def first_line(text: str) -> str:
    """Secrets and values are taken out before it is cut: half of one would not be known."""
    first, _, rest = without_values(both_ends(text)).strip().partition("\n")
    line = _NOISE.sub("", scrub(_with_announced(first.rstrip(), rest), MOST_OF_A_LINE)).rstrip(" ;")
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"


def _with_announced(first: str, rest: str) -> str:
    """A line and what it announces by a colon: the next one, or what a function of Python's has raised."""
    if not first.endswith(":"):
        return first
    text = f"{first}\n{rest}"
    traced = _TRACEBACK.search(text)
    if traced is not None and (raised := _raised(text, traced.end())) is not None:
        return f"{first[: traced.start()].rstrip()} {raised}"
    following = rest.lstrip(" -\t\n").partition("\n")[0]
    return f"{first} {following}"


def _raised(text: str, at: int) -> str | None:
    """The line that says what was raised in the end, where a traceback begins at `at`.

    The message of an exception may quote a traceback of its own, which is none of these.
    """
    raised = _RAISED.search(text, at)
    while (chained := _CHAINED.search(text, at)) is not None:
        traced = _TRACEBACK.search(text, chained.end())
        if traced is None:
            break
        at = traced.end()
        raised = _RAISED.search(text, at) or raised
    return None if raised is None else raised["line"]
