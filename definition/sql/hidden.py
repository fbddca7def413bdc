"""The column `_metadata` that Spark adds to a source of files unseen, in texts of SQL and in schemas."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from definition.sql.lexer import tokens

if TYPE_CHECKING:
    from definition.sql.lexer import Token

METADATA: Final = "_metadata"


def calls_it(sql: str, view: str) -> bool:
    """Whether a text reads that column of `view`: by its bare name, or with the view's before it.

    Behind another name and a dot it is a field of that, or of another source; behind AS a name that is given.
    """
    if METADATA not in sql.lower():
        return False  # most have none, and to take a text apart takes long
    parts = [None, None, *tokens(sql)]
    for before, dot, token in zip(parts, parts[1:], parts[2:], strict=False):
        is_of_view = _text(dot) != "." or _name(before) == view.lower()
        if _name(token) == METADATA and _text(dot) != "AS" and is_of_view:
            return True
    return False


def makes_it(sql: str) -> bool:
    """Whether a query names a column of its own so."""
    if METADATA not in sql.lower():
        return False
    return any(_text(word) == "AS" and _name(name) == METADATA for word, name in pairwise(tokens(sql)))


def columns(schema: str) -> frozenset[str]:
    """The columns of a schema of Spark's, in small letters, without what is nested in them."""
    names, depth, is_first = set(), 0, True
    for token in tokens(schema):
        if is_first:
            names.add(_name(token))
        is_first = depth == 0 and token.text == ","
        if token.kind == "sign":
            depth += sum(token.text.count(sign) for sign in "<(")
            depth -= sum(token.text.count(sign) for sign in ">)")
    return frozenset(name for name in names if name is not None)


def _name(token: Token | None) -> str | None:
    """What a token names, in small letters; None if it is no name."""
    if token is None or token.kind not in {"word", "name"}:
        return None
    return (token.text[1:-1].replace("``", "`") if token.kind == "name" else token.text).lower()


def _text(token: Token | None) -> str:
    return "" if token is None else token.text
