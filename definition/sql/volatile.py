"""Functions whose value is another one each time: what hangs on them comes out otherwise when done again."""

from __future__ import annotations

from itertools import pairwise

from definition.sql.lexer import tokens

_WITHOUT_BRACKETS = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"})
_VOLATILE = _WITHOUT_BRACKETS | {
    *("CURDATE", "LOCALTIME", "MONOTONICALLY_INCREASING_ID", "NOW", "RAND", "RANDN", "RANDOM", "RANDSTR"),
    *("SHUFFLE", "SPARK_PARTITION_ID", "UNIFORM", "UNIX_TIMESTAMP", "UUID"),
    *("INPUT_FILE_BLOCK_LENGTH", "INPUT_FILE_BLOCK_START", "INPUT_FILE_NAME"),
}


def volatile_function(condition: str) -> str | None:
    """The first of them that a condition calls, as it is written there; None if there is none.

    One of those that need no brackets may be the name of a column, too: then it is taken for the function.
    """
    parts = list(tokens(condition))
    for token, after in pairwise([*parts, None]):
        name = token.text.upper().strip("`") if token is not None else ""
        is_called = name in _WITHOUT_BRACKETS or (after is not None and after.text == "(")
        if token is not None and name in _VOLATILE and is_called and token.kind in {"word", "name"}:
            return condition[token.start : token.start + len(token.text)]
    return None
