"""Takes Spark SQL apart into tokens, as Spark's own lexer does (`SqlBaseLexer.g4`).

Only what a token is and where it ends is kept, which quotes and comments make hard enough. A hint is no
comment: its inside consists of tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["word", "name", "number", "string", "sign", "open"]

_TOKEN = re.compile(
    r"""
    (?P<space>  \s+ | --(?:\\\n|[^\r\n])* )
  | (?P<comment> /\*(?!\+) )
  | (?P<string> [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]++|\\.|'')*+' | "(?:[^"\\]++|\\.|"")*+" )
  | (?P<name>   `(?:[^`]++|``)*+` )
  | (?P<number> (?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[lLsSyYdDfF]|[bB][dD])?(?!\w) )
  | (?P<word>   \w+ )
  | (?P<open>   ['"`] )
  | (?P<sign>   /\*\+ | \*/ | >>> | <=> | [<>!=]= | <> | << | >> | -> | => | \|\| | \|> | :: | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ALIKE = {"TRY_CAST": "CAST"}
"""Words that the same may stand around as around others."""

_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Token:
    """One token: a `word` is bare, a `name` is in backquotes; `open` is a quote or comment without an end.

    `text` is in upper case if it is a word, else as written; `start` is its place in the SQL.
    """

    kind: Kind
    text: str
    start: int


def tokens(sql: str) -> Iterator[Token]:
    """The tokens of `sql`, without spaces and comments."""
    position = 0
    while match := _TOKEN.match(sql, position):
        position = match.end()
        kind = match.lastgroup
        if kind == "comment":
            end = _comment_end(sql, position)
            if end is None:
                yield Token("open", "/*", match.start())
                return
            position = end
        elif kind != "space":
            text = _ALIKE.get(word := match[0].upper(), word) if kind == "word" else match[0]
            yield Token(kind, text, match.start())  # type: ignore[arg-type]  # the groups are named after the kinds


def _comment_end(sql: str, position: int) -> int | None:
    """Where the comment ends whose inside starts at `position`; comments may hold comments."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(sql, position):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return None
