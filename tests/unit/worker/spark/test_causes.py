from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PythonException

from telemetry.foreign_errors import first_line_of
from telemetry.secrets import MOST_READ
from tests.fakes.foreign_errors import RAISED, UNNAMED, kind_of
from worker.sinks import spark_errors
from worker.sinks.errors import SchemaError
from worker.sinks.spark_errors import MAX_LINE, REMOTE_TRACE, JavaError, headline, said
from worker.spark import causes
from worker.spark.causes import MAX_DETAILS, describe

if TYPE_CHECKING:
    from collections.abc import Callable

STREAM_FAILED = JavaError(
    "org.apache.spark.sql.streaming.StreamingQueryException",
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted\n=== Query ===",
)


def test_the_innermost_condition_is_the_headline() -> None:
    """Wrappers that only say that something went wrong are passed over; so is what has no condition."""
    chain = [
        STREAM_FAILED,
        JavaError("org.apache.spark.SparkException", "Job aborted due to stage failure\nDriver stacktrace:"),
        JavaError("org.apache.spark.SparkException", "[FAILED_READ_FILE] Cannot read x. SQLSTATE: KD001"),
        JavaError("java.io.EOFException", "early"),
    ]
    assert headline(chain) == "[FAILED_READ_FILE] Cannot read x."


def test_without_a_condition_the_innermost_message_is_it() -> None:
    """With the short name of its class, as Java people know it."""
    chain = [STREAM_FAILED, JavaError("java.io.IOException", "disk full\nsecond line"), JavaError("a.B", "")]
    assert headline(chain) == "IOException: disk full"


def test_a_chain_that_says_nothing() -> None:
    """At least its class is known."""
    assert headline([JavaError("java.lang.NullPointerException", "")]) == "java.lang.NullPointerException"
    assert headline([]) == "an error without a message"


def test_a_headline_is_a_line() -> None:
    """Whatever its length and its leading blank lines."""
    line = headline([JavaError("a.B", "\n[PARSE_SYNTAX_ERROR] " + "x" * 2000 + "\n== SQL ==")])
    assert len(line) == MAX_LINE
    assert line.startswith("[PARSE_SYNTAX_ERROR] xxx")


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
def test_whatever_is_raised_has_a_description(error: BaseException) -> None:
    """Its kind, where it does not say more; the trace follows."""
    told = describe(error)
    assert told.startswith(f"{first_line_of(error)}\n\n")
    assert said(error) == first_line_of(error)


@pytest.mark.parametrize("number", range(len(UNNAMED)))
def test_so_has_what_is_no_class_like_others(number: int) -> None:
    """By its own name."""
    error = UNNAMED[number]("enough")
    assert describe(error).startswith(f"{['Anonymous', 'Liar'][number]}: enough\n\n")


def test_a_huge_error_is_told_by_what_is_in_its_end() -> None:
    """Spark puts plans before causes, and frames behind them."""
    frames = "\n".join(f"    at org.apache.spark.sql.Frame{n}.call(Frame.scala:{n})" for n in range(4000))
    trace = f"org.apache.spark.Top: Job aborted.\n{frames}\nCaused by: java.sql.SQLException: disk full"
    remote = RuntimeError(f"(x.Top) [STREAM_FAILED] {'plan ' * MOST_READ}{REMOTE_TRACE}{trace}")
    assert describe(remote).startswith("SQLException: disk full\n")
    assert said(remote) == "SQLException: disk full"
    python = "\n".join(f'  File "q.py", line {n}, in f' for n in range(9000))
    raised = f"foreachBatch said:\nTraceback (most recent call last):\n{python}\nValueError: no such flight"
    assert headline([JavaError("a.B", raised)]).endswith("ValueError: no such flight")


@pytest.mark.parametrize("text", ["://a" * MOST_READ, "password" * MOST_READ, "\n".join(["x"] * MOST_READ)])
def test_of_a_huge_error_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """What looks for secrets and values in it keeps all threads of the process waiting meanwhile."""
    read: list[int] = []

    def spied(function: Callable[..., str]) -> Callable[..., str]:
        def look(text: str, at_most: int | None = None) -> str:
            read.append(len(text))
            return function(text) if at_most is None else function(text, at_most)

        return look

    for module in (causes, spark_errors):
        for name in ("scrub", "without_values"):
            monkeypatch.setattr(module, name, spied(getattr(module, name)))
    describe(ValueError(text))
    headline([JavaError("a.B", text)])
    assert max(read) <= MOST_READ + len("\n  …\n")


def test_a_line_that_announces_another_is_both() -> None:
    """As Iceberg's, whose reasons are a list."""
    error = JavaError("a.B", "Invalid schema for v2:\n- Invalid type for v: variant is not supported\nmore")
    assert headline([error]) == "B: Invalid schema for v2: Invalid type for v: variant is not supported"


FRAMES = """Traceback (most recent call last):
  File "queries.py", line 49, in eat
    eaten.append(b"x" * MB)
                 ~~~~~^~~~
"""


MEANWHILE = "During handling of the above exception, another exception occurred:"


@pytest.mark.parametrize(
    "message",
    [
        f"{FRAMES}MemoryError\n",
        f"{FRAMES}KeyError: 7\n\n{MEANWHILE}\n\n{FRAMES}MemoryError\n\tat a.B",
    ],
)
def test_what_a_function_of_python_s_has_raised_is_the_line(message: str) -> None:
    """Spark's word for it is a whole traceback, of which the last line says what was wrong."""
    kind = "org.apache.spark.api.python.PythonException"
    assert headline([STREAM_FAILED, JavaError(kind, message)]) == "PythonException: MemoryError"


def eaten() -> None:
    raise MemoryError


def quoting() -> None:
    raise OSError(f"the child said:\n{traced(eaten)}")


def naming() -> None:
    raise OSError("no Traceback (most recent call last):\n  in the log")


def caused() -> None:
    try:
        quoting()
    except OSError as error:
        raise LookupError("all of it") from error


def handling() -> None:
    try:
        caused()
    except LookupError:
        raise KeyError(7) from None


def grouped() -> None:
    raise ExceptionGroup("two", [OSError(), OSError()])


def of_a_group() -> None:
    try:
        grouped()
    except ExceptionGroup:
        int("x")


def traced(raises: Callable[[], None]) -> str:
    """As Python itself prints what is raised."""
    try:
        raises()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return "".join(traceback.format_exception(error))
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("raises", "line"),
    [
        (quoting, "OSError: the child said:"),
        (naming, "OSError: no Traceback (most recent call last):"),
        (caused, "LookupError: all of it"),
        (handling, "KeyError: 7"),
        (grouped, "ExceptionGroup: two (2 sub-exceptions)"),
        (of_a_group, "ValueError: invalid literal for int() with base 10: 'x'"),
    ],
)
def test_a_traceback_within_a_message_is_not_taken_for_the_end(raises: Callable[[], None], line: str) -> None:
    """Nor for what was raised: that is what the last traceback of Python's own ends with."""
    kind = "org.apache.spark.api.python.PythonException"
    assert headline([JavaError(kind, traced(raises))]) == f"PythonException: {line}"


def test_so_it_is_where_pyspark_raises_it() -> None:
    """Its own class for that begins with an empty line, and then announces the traceback."""
    told = f"\n  An exception was thrown from the Python worker. Please see the stack trace below.\n{FRAMES}"
    text = describe(PythonException(f"{told}MemoryError\n"))
    assert text.startswith("PythonException: MemoryError\n\n")


def test_a_traceback_that_was_cut_is_a_line_all_the_same() -> None:
    """The first that there is of it."""
    line = headline([JavaError("a.B", FRAMES)])
    assert line == 'B: Traceback (most recent call last): File "queries.py", line 49, in eat'


def test_errors_of_python_have_their_trace() -> None:
    """First the line, then where it came from, within bounds."""
    with pytest.raises(ValueError, match="no such") as raised:
        raise ValueError("no such\nflight" + "!" * MAX_DETAILS)
    text = describe(raised.value)
    assert text.startswith("ValueError: no such\n\nTraceback")
    assert "test_errors_of_python" in text
    assert len(text) < MAX_DETAILS + MAX_LINE


def test_errors_of_sinks_need_no_trace() -> None:
    """They were written for the user."""
    assert describe(SchemaError("the table t has no column a")) == "the table t has no column a"
