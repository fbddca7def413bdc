"""Functions whose value is another one each time: what hangs on them comes out otherwise when done again."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from definition.sql.lexer import tokens

_WITHOUT_BRACKETS = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"})
_OF_A_FILE = frozenset({"INPUT_FILE_BLOCK_LENGTH", "INPUT_FILE_BLOCK_START", "INPUT_FILE_NAME"})
_VOLATILE = (
    _WITHOUT_BRACKETS
    | _OF_A_FILE
    | {
        *("CURDATE", "LOCALTIME", "MONOTONICALLY_INCREASING_ID", "NOW", "RAND", "RANDN", "RANDOM", "RANDSTR"),
        *("SHUFFLE", "SPARK_PARTITION_ID", "UNIFORM", "UNIX_TIMESTAMP", "UUID"),
    }
)


_RANDOM = frozenset({"RAND", "RANDN", "RANDOM", "RANDSTR", "SHUFFLE", "UNIFORM"})


def volatile_function(condition: str) -> str | None:
    """The first of them that a condition calls, as it is written there; None if there is none.

    One of those that need no brackets may be the name of a column, too: then it is taken for the function.
    """
    return _first(condition, _VOLATILE)


def random_function(sql: str) -> str | None:
    """The same of those whose value is drawn: a row that hangs on one may be there once and not again.

    What hangs on the time of day is not among them, for a stream's is part of its batch.
    """
    return _first(sql, _RANDOM)


def file_function(sql: str) -> str | None:
    """The same of those that tell of the file which Spark is at."""
    return _first(sql, _OF_A_FILE)


@cache
def _any_of(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(sorted(names)), re.IGNORECASE)


def _first(condition: str, names: frozenset[str]) -> str | None:
    if _any_of(names).search(condition) is None:
        return None  # most have none, and to take a text apart takes long
    parts = list(tokens(condition))
    for token, after in pairwise([*parts, None]):
        name = token.text.upper().strip("`") if token is not None else ""
        is_called = name in _WITHOUT_BRACKETS or (after is not None and after.text == "(")
        if token is not None and name in names and is_called and token.kind in {"word", "name"}:
            return condition[token.start : token.start + len(token.text)]
    return None
