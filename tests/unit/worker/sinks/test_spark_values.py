from __future__ import annotations

import pytest

from worker.sinks.spark_errors import JavaError, headline
from worker.sinks.spark_values import without_values
from worker.spark.causes import describe_remote

CAST = (
    '[CAST_INVALID_INPUT] The value {} of the type "STRING" cannot be cast to "INT" because it is malformed.'
    " Use `try_cast`. SQLSTATE: 22018"
)
DELTA = (
    "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint short (length(name) < 3) violated by row with"
    " values:\n{}"
)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (CAST.format("'sesame'"), CAST.format("…")),
        (CAST.format("'se\nsa of the type \"x\" me'"), CAST.format("…")),
        (DELTA.format(" - name : sesame\n - id : 1"), DELTA.format("…")),
        (
            "[CANNOT_PARSE_TIMESTAMP] Text 'sesame' could not be parsed. Use `f` to tolerate it.",
            "[CANNOT_PARSE_TIMESTAMP] …. Use `f` to tolerate it.",
        ),
        (
            "[INVALID_URL] The url is invalid: sesame. Use that. SQLSTATE: 22P02",
            "[INVALID_URL] … SQLSTATE: 22P02",
        ),
        (
            "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 99 cannot be represented as Decimal(1, 0).",
            "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] … cannot be represented as Decimal(1, 0).",
        ),
        (
            "[CANNOT_PARSE_JSON_FIELD] sesame\nCaused by: NumberFormatException: sesame\n\tat a.B(C.java)",
            "[CANNOT_PARSE_JSON_FIELD] …\nCaused by: NumberFormatException: …\n\tat a.B(C.java)",
        ),
        (
            'java.lang.NumberFormatException: For input string: "an option"',
            'java.lang.NumberFormatException: For input string: "an option"',
        ),
        ("[USER_RAISED_EXCEPTION] The value 'sesame'", "[USER_RAISED_EXCEPTION] The value 'sesame'"),
        ("[DIVIDE_BY_ZERO] Division by zero.", "[DIVIDE_BY_ZERO] Division by zero."),
        (
            "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL constraint violated for column: name.",
            "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL constraint violated for column: name.",
        ),
    ],
)
def test_values_that_spark_quotes_are_masked(said: str, shown: str) -> None:
    """Names of columns and types stay, and what a query raises itself."""
    assert without_values(said) == shown


def test_no_line_and_no_details_have_a_value() -> None:
    """Neither where a message is told first, nor within a stack trace, however long it is."""
    said = CAST.format(f"'{'sesame' * 200}'")
    assert headline([JavaError("a.B", said)]) == CAST.format("…").partition(" SQLSTATE")[0]
    told = describe_remote(
        f"{said}\n\nJVM stacktrace:\na.B: {said}\n\tat a.B(C.java)\nCaused by: a.B: {said}"
    )
    assert "sesame" not in told
    assert told.count("The value … of the type") == 4
