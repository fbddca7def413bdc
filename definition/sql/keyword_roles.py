"""Which words of a statement are keywords and which are names, as far as that is certain.

Spark lets nearly every keyword be a name. A word that is no keyword at all is a name, and one that is has
a certain role only where the other one is impossible:

* It is a keyword, if it is one of the few in `_TABLE`, where an operand ends before it and another begins
  after it: as a name it would be an alias there, and after an alias no operand can follow.
* It is a name where nothing but an operand can stand: where one of these few or a sign asks for one, and
  what comes next cannot belong to it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from definition.sql.words import KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from definition.sql.lexer import Token

Faces: TypeAlias = frozenset[str]
"""What a neighbour looks like: a sign, a keyword of `_TABLE`, or one of the next four."""

NAME, VALUE, STAR, EDGE = "a name", "a value", "all columns", "the edge of the statement"


def _faces(*texts: str) -> Faces:
    return frozenset(word for text in texts for word in text.split())


_CONSTANTS = _faces("NULL TRUE FALSE")
_COMPARISONS = _faces("= < > <= >= <> != == <=>")
_SIGNS = _faces("( ) [ ] , . + - * / % ||") | _COMPARISONS
"""The signs of plain SQL."""

_ENDS = _faces(") ] END") | _CONSTANTS | {NAME, VALUE}
"""What an operand ends with."""

_BEGINS = _faces("( - + NOT CASE") | _CONSTANTS | {NAME, VALUE}
"""What an operand begins with."""

_ASKS = _faces("( [ , + - / % || SELECT DISTINCT WHERE HAVING BY AND OR ON WHEN THEN ELSE") | _COMPARISONS
"""What an operand of any kind must follow."""

_ASKS_NO_TABLE = _ASKS - {"(", ","}
"""What an operand must follow and a table, which can have any name, may not."""

_FOLLOWS = _COMPARISONS | _faces(
    ") ] , . [ + - * / % || FROM WHERE HAVING GROUP ORDER AND OR WHEN THEN ELSE END AS ON USING",
    "JOIN INNER LEFT RIGHT FULL CROSS UNION NOT IN IS LIKE BETWEEN",
)
"""What may follow an operand and cannot be the rest of it."""

_TABLE: tuple[tuple[str, Faces, Faces], ...] = (
    # keywords, what stands before them, what stands after them
    ("SELECT", _faces("( ) UNION ALL") | {EDGE}, _BEGINS | {"DISTINCT", STAR}),
    ("DISTINCT", _faces("SELECT"), _BEGINS | {STAR}),
    ("FROM", _ENDS | {STAR}, _faces("(") | {NAME}),
    ("WHERE HAVING AND OR THEN ELSE ON", _ENDS, _BEGINS),
    ("GROUP", _ENDS, _faces("BY")),
    ("ORDER", _ENDS | {"("}, _faces("BY")),
    ("PARTITION", _faces("("), _faces("BY")),
    ("BY", _faces("GROUP ORDER PARTITION"), _BEGINS),
    ("NOT", _ASKS_NO_TABLE, _BEGINS),
    ("NOT", _ENDS, _faces("IN LIKE BETWEEN")),
    ("NOT", _faces("IS"), _CONSTANTS),
    ("IS", _ENDS, _CONSTANTS | {"NOT"}),
    ("IN", _ENDS | {"NOT"}, _faces("(")),
    ("LIKE BETWEEN", _ENDS | {"NOT"}, _BEGINS),
    ("NULL TRUE FALSE", _ASKS_NO_TABLE | {"IS", "NOT"}, _FOLLOWS | {EDGE}),
    ("CASE", _ASKS, _BEGINS | {"WHEN"}),
    ("WHEN", _ENDS | {"CASE"}, _BEGINS),
    ("END", _ENDS, _FOLLOWS | {EDGE, NAME}),
    ("AS", _ENDS, _faces("(") | {NAME}),
    ("JOIN", _ENDS | _faces("INNER CROSS LEFT RIGHT FULL OUTER"), _faces("(") | {NAME}),
    ("INNER CROSS", _ENDS, _faces("JOIN")),
    ("LEFT RIGHT FULL", _ENDS, _faces("JOIN OUTER")),
    ("OUTER", _faces("LEFT RIGHT FULL"), _faces("JOIN")),
    ("USING", _ENDS, _faces("(")),
    ("UNION", _ENDS, _faces("SELECT ALL (")),
    ("ALL", _faces("UNION"), _faces("SELECT (")),
    ("WITH", frozenset({EDGE}), frozenset({NAME})),
    ("OVER", _faces(")"), _faces("(")),
)

_PLACES: dict[str, list[tuple[Faces, Faces]]] = {}
for _words, _before, _after in _TABLE:
    for _word in _words.split():
        _PLACES.setdefault(_word, []).append((_before, _after))

_BEFORE_NAME = _ASKS | _faces(". AS FROM JOIN NOT LIKE BETWEEN")
"""What any name may follow, and no keyword but those of `_TABLE`."""

BEFORE_STAR = _faces("SELECT DISTINCT ( , .")
"""Where a star is no multiplication."""

_ENDS_EXPRESSION = _faces(") ] , SELECT FROM WHERE HAVING GROUP ORDER BY AS JOIN ON USING UNION") | {EDGE}
"""What never stands inside an expression but within brackets."""

_NEVER_NAMES = _faces("AS JOIN ON USING UNION")
"""Keywords of `_TABLE` that even Spark takes for nothing else after an operand."""

_FUNCTIONS = _faces(
    "ANY_VALUE ARRAY BIGINT BINARY BOOLEAN CAST CHAR CURRENT_DATE CURRENT_TIMESTAMP DATE DATEADD DATEDIFF",
    "DATE_ADD DATE_DIFF DAY DAYOFYEAR DECIMAL DOUBLE EXISTS FIRST FLOAT HOUR IF INT LAST MAP MAX MINUTE",
    "MONTH QUARTER REPLACE SECOND SMALLINT STRING TIMESTAMP TINYINT WINDOW YEAR",
)
"""Keywords that are plain functions where a bracket follows (CAST is, once its type is gone)."""

_NEVER_PLAIN = _faces(
    "ANTI ANY ASOF CLUSTER DISTRIBUTE EXCEPT IDENTIFIER INTERSECT INTERVAL LATERAL LIMIT MINUS NATURAL",
    "OFFSET PIVOT QUALIFY RANGE REDUCE ROWS SEMI SOME SORT STREAM TABLE TABLESAMPLE TRANSFORM UNNEST",
    "UNPIVOT VALUES WATERMARK",
)
"""Keywords that begin something of their own, even where a name could stand."""

_VIEW = "SOURCE"
"""What every task's SQL reads from; a keyword in MERGE alone."""


def suspects(parts: Sequence[Token]) -> frozenset[int] | None:
    """Which tokens are keywords of `_TABLE` that may be names all the same; None if there is worse.

    That is a sign that plain SQL does not have, or another keyword in a place where it need not be a name.
    What depends on a suspect to be certain is a suspect, too.
    """
    if any(token.text == "FROM" and before.text == "(" for before, token in pairwise(parts)):
        return None  # a query that begins with FROM
    found = _uncertain(parts)
    reached = set(found)
    while found:
        beside = {at + step for at in found for step in (-1, 1) if 0 <= at + step < len(parts)}
        found = {at for at in beside - reached if _is_reserved(parts[at]) or parts[at].text == "*"}
        reached |= found
    reached -= {at for at in reached if parts[at].text == "*"}
    return frozenset(reached) if all(is_keyword(parts[at]) for at in reached) else None


def is_keyword(token: Token) -> bool:
    """Whether `token` is a keyword of `_TABLE`, unless it is a suspect and so may be a name."""
    return token.kind == "word" and token.text in _PLACES


def _is_reserved(token: Token) -> bool:
    return token.kind == "word" and token.text in KEYWORDS and token.text != _VIEW


def _uncertain(parts: Sequence[Token]) -> set[int]:
    """The tokens that could have another role than their neighbours suggest."""
    faces = [EDGE]
    for token in parts:
        faces.append(_face(token, faces[-1]))
    faces.append(EDGE)
    found = {at for at in range(len(parts)) if not _is_certain(parts, at, faces[at], faces[at + 2])}
    if not _cases_nest(faces):
        found |= {at for at, token in enumerate(parts) if token.text in ("CASE", "END")}
    return found


def _cases_nest(faces: Sequence[str]) -> bool:
    """Whether every CASE has its END in the same brackets and nothing between them ends an expression."""
    open_cases = [0]
    for face in faces:
        if face in ("(", "["):
            open_cases.append(0)
        elif face == "CASE":
            open_cases[-1] += 1
        elif face == "END":
            open_cases[-1] -= 1
        elif (face in _ENDS_EXPRESSION and open_cases[-1] > 0) or open_cases[-1] < 0:
            return False
        if face in (")", "]"):
            open_cases.pop()
    return True


def _face(token: Token, before: str) -> str:
    if token.kind in ("number", "string"):
        return VALUE
    if token.text == "*" and before in BEFORE_STAR:
        return STAR
    return token.text if token.kind == "sign" or is_keyword(token) else NAME


def _is_certain(parts: Sequence[Token], at: int, before: str, after: str) -> bool:
    token = parts[at]
    if token.kind == "sign":
        return token.text in _SIGNS
    if not _is_reserved(token):
        return True
    if places := _PLACES.get(token.text):
        could_be_alias = after == "(" and token.text not in _NEVER_NAMES and _are_columns(parts, at + 2)
        return not could_be_alias and any(before in left and after in right for left, right in places)
    if token.text in _NEVER_PLAIN:
        return False
    ends = after == EDGE or after in _FOLLOWS or (after == "(" and token.text in _FUNCTIONS)
    return before in _BEFORE_NAME and ends


def _are_columns(parts: Sequence[Token], at: int) -> bool:
    """Whether the brackets whose inside begins at `at` may hold the column names of an alias."""
    for name, comma in zip(parts[at::2], parts[at + 1 :: 2], strict=False):
        if name.kind not in ("word", "name") or comma.text not in (",", ")"):
            return False
        if comma.text == ")":
            return True
    return False
