"""A plain query, written so that a parser made for SQL in general cannot misunderstand it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from definition.sql.keyword_roles import BEFORE_STAR, is_keyword

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from definition.sql.lexer import Token

NAME = "name_"
"""Stands for every name: it is no keyword in any dialect."""


def without_types(parts: Sequence[Token]) -> Iterator[Token]:
    """`parts` with every `CAST(a AS <anything>)` made `CAST(a)`: types have a grammar of their own."""
    openers: list[str] = []
    skipped = 0
    before = ""
    for token, after in zip(parts, (*(token.text for token in parts[1:]), ""), strict=True):
        if token.text == "(":
            openers.append(before)
        elif token.text == ")":
            openers.pop()
            skipped = 0 if skipped > len(openers) else skipped
        elif token.text == "AS" and after != ")" and not skipped and openers[-1:] == ["CAST"]:
            skipped = len(openers)
        if not skipped:
            yield token
        before = token.text


def rewrite(parts: Sequence[Token], names: Collection[int]) -> list[str]:
    """A word for each of `parts`: keywords, except those at `names`, and signs stay; the rest is replaced."""
    words: list[str] = []
    for at, token in enumerate(parts):
        words.append(_word(token, words[-1] if words else "") if at not in names else NAME)
    return words


def _word(token: Token, before: str) -> str:
    if token.text == "*" and before in BEFORE_STAR:
        return NAME
    if token.kind == "sign" or is_keyword(token):
        return token.text
    return {"number": "1", "string": "'s'"}.get(token.kind, NAME)
