"""Options that SQL gives to a table, `FROM t WITH (name = 'value')`: they reach its catalog's driver."""

from __future__ import annotations

import re
from typing import Final

OPTIONS_IN_SQL: Final = (
    "gives options to a table by WITH (...), which is off in the sql of a task:"
    " make it a source of the definition, with table and options"
)
MAYBE_OPTIONS_IN_SQL: Final = (
    f"{OPTIONS_IN_SQL}; behind a Spark Connect server, texts that have WITH before a bracket, and comments"
    " right after WITH, count as well"
)
_WITH: Final = re.compile(r"(?<![^\W\d])WITH\s*+(?:\(|/\*|--)")


def may_have_options(sql: str) -> bool:
    """Whether SQL may give options to a table, where no lexer of Spark's is at hand.

    What is within texts counts as well, and so does a comment right after WITH, which may hide a bracket:
    rather one query too many is refused than one too few. Spark reads words in capitals (Java's, of any `i`),
    and takes a number before a word for its end.
    """
    return _WITH.search(sql.upper()) is not None
