"""Whether SQL is certain not to parse in Spark (protocol §6).

The check never refuses what Spark accepts; where it is unsure it accepts, and the worker decides. That takes
care: no parser but Spark's own knows all of Spark's SQL, and nearly every keyword may be a name as well
(`SELECT a FROM source WHERE` is a query; WHERE is what it calls its table). So there are three steps:

1. What is wrong in any reading: nothing at all, a first word that begins no statement, a quote, comment or
   bracket that is not closed, several statements, signs that never meet.
2. Every word gets its role from its neighbours (`definition.sql.keyword_roles`). A word or sign that is
   beyond that makes the whole statement unsure. A few keywords that may be names are tried both ways.
3. What is left is plain. Its names are replaced by one that is no keyword anywhere, and sqlglot, which knows
   plain SQL well, has the last word.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING

from definition.sql.keyword_roles import suspects
from definition.sql.lexer import Token, tokens
from definition.sql.plain import rewrite, without_types
from definition.sql.words import QUERY_STARTS, STATEMENT_STARTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

MAX_LENGTH = 100_000
"""Characters of SQL; anything longer is accepted unread, for a check must not take long."""

MAX_PARSED = 4_000
"""Tokens that are parsed in all, for the same reason: they double with every word that may be a name."""

MAX_DEPTH = 20
"""Brackets in brackets, for the same reason."""

_BEFORE, _AFTER = "SELECT 1 FROM source WHERE (", ")"
"""What makes a query of a condition."""
_CLOSING = {"(": ")", "[": "]"}
_PLAIN_STARTS = ("SELECT", "WITH", "(")
_NEVER_MEET = {(",", ","), (",", ")"), (",", "]"), (",", ""), ("(", ","), ("[", ","), ("[", "]"), (".", "")}
"""Signs that no sign of the other kind may follow in any query, "" being its end."""


def sql_fault(sql: str) -> str | None:
    """Why Spark is certain to refuse `sql`, with the place; None if it may accept it."""
    if len(sql) > MAX_LENGTH:
        return None
    parts = list(tokens(sql))
    if fault := _start_fault(parts):
        return fault
    if parts[0].text not in QUERY_STARTS:
        return None  # other statements may hold raw text, for which none of these rules is meant
    while parts[-1].text == ";":
        parts.pop()
    if faulty := _first_fault(parts):
        return faulty[0] + _place(faulty[1], sql)
    if parts[0].text not in _PLAIN_STARTS or _depth(parts) > MAX_DEPTH:
        return None
    stumbled = _parse_fault(list(without_types(parts)))
    return "does not parse" + _place(stumbled, sql) if stumbled else None


def condition_fault(condition: str) -> str | None:
    """As `sql_fault` of a condition, as it stands behind WHERE."""
    if len(condition) > MAX_LENGTH:
        return None
    parts = list(tokens(condition))
    if not parts:
        return "is empty"
    if faulty := _sign_fault(parts):
        return faulty[0] + _place(faulty[1], condition)
    if _depth(parts) >= MAX_DEPTH:
        return None
    whole = [*tokens(_BEFORE), *parts, *tokens(_AFTER)]
    stumbled = _parse_fault(list(without_types(whole)))
    if stumbled is None:
        return None
    return "does not parse" + _place(stumbled if stumbled in parts else parts[-1], condition)


def _start_fault(parts: Sequence[Token]) -> str | None:
    """Whether there is nothing, or what no statement begins with."""
    if all(token.text == ";" for token in parts):
        return "is empty"
    first = parts[0].text
    if first in STATEMENT_STARTS:
        return None
    alike = get_close_matches(first[:40], STATEMENT_STARTS, n=1)
    return f"begins with {first[:40]}, as no statement does" + (
        f"; did you mean {alike[0]}?" if alike else ""
    )


def _first_fault(parts: Sequence[Token]) -> tuple[str, Token] | None:
    """What no reading of the words can put right, and where."""
    return ("is no whole query", parts[0]) if len(parts) == 1 else _sign_fault(parts)


def _sign_fault(parts: Sequence[Token]) -> tuple[str, Token] | None:
    """What no reading of the words can put right of the signs between them, and where."""
    for token, after in zip(parts, (*(token.text for token in parts[1:]), ""), strict=True):
        if token.kind == "open":
            return f"has a {token.text} that is not closed", token
        if token.text == ";":
            return "holds more than one statement", token
        if (token.text, after) in _NEVER_MEET:
            return "does not parse", token
    return _bracket_fault(parts)


def _bracket_fault(parts: Sequence[Token]) -> tuple[str, Token] | None:
    opened: list[Token] = []
    for token in parts:
        if token.text in _CLOSING:
            opened.append(token)
        elif token.text in _CLOSING.values() and (not opened or _CLOSING[opened.pop().text] != token.text):
            return f"has a {token.text} that closes nothing", token
    return (f"has a {opened[-1].text} that is not closed", opened[-1]) if opened else None


def _depth(parts: Iterable[Token]) -> int:
    """How many brackets are open at once, at most."""
    depth = deepest = 0
    for token in parts:
        depth += (token.text in _CLOSING) - (token.text in _CLOSING.values())
        deepest = max(deepest, depth)
    return deepest


def _parse_fault(parts: Sequence[Token]) -> Token | None:
    """Where plain SQL does not parse, whichever suspects are names; None if it may parse."""
    unsure = suspects(parts)
    if unsure is None or len(parts) << len(unsure) > MAX_PARSED:
        return None
    first = None
    for names in _subsets(unsure):
        stumbled = _stumbles(parts, names)
        if stumbled is None:
            return None
        first = first or stumbled
    return first


def _subsets(unsure: Iterable[int]) -> Iterator[Collection[int]]:
    """All choices of suspects, none of them first."""
    ordered = sorted(unsure)
    return (some for size in range(len(ordered) + 1) for some in combinations(ordered, size))


def _stumbles(parts: Sequence[Token], names: Collection[int]) -> Token | None:
    """Where sqlglot cannot go on, if the keywords at `names` are names."""
    import sqlglot  # noqa: PLC0415 - slow to import, and whoever only runs tasks never needs it

    words = rewrite(parts, names)
    try:
        sqlglot.parse_one(" ".join(words), read="spark")
    except sqlglot.ParseError as error:
        return _token_at(error.errors[0]["col"], words, parts)
    except Exception:  # noqa: BLE001 - sqlglot's own trouble is no fault of the SQL; the worker decides
        return None
    return None


def _token_at(column: int, words: Iterable[str], parts: Sequence[Token]) -> Token:
    """The token whose word is at `column` when all are joined by spaces."""
    end = 0
    for word, token in zip(words, parts, strict=True):
        end += len(word) + 1
        if end > column:
            return token
    return parts[-1]


def _place(token: Token, sql: str) -> str:
    line = sql.count("\n", 0, token.start) + 1
    column = token.start - sql.rfind("\n", 0, token.start)
    text = sql[token.start : token.start + min(len(token.text), 40)]
    return f" near {text!r} (line {line}, column {column})"
