"""The whole check of a definition: its shape, and whether its SQL parses (protocol §6)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from definition.document import MOST_BYTES, Definition, DefinitionError, parse_definition
from definition.expectations import MOST_WHERE
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_definition(document: bytes | msgspec.Raw) -> Definition | tuple[Problem, ...]:
    """The definition that `document` holds, or every problem it has, each with its place."""
    if len(document) > MOST_BYTES:
        return (Problem("", f"is larger than {MOST_BYTES} bytes"),)
    try:
        definition = parse_definition(document)
    except DefinitionError as error:
        known = {problem.path for problem in error.problems}
        return (*error.problems, *(each for each in _sql_problems(document) if each.path not in known))
    return tuple(_sql_problems(document)) or definition


MOST_LOOKED_AT = 6_000
"""Characters of conditions, of one definition, that are looked at, for a manager does nothing else meanwhile.

Of what is behind them a worker tells at the start of the task, or in a check with Spark.
"""


class _OnlySql(msgspec.Struct, frozen=True):
    """What holds SQL, of whatever types."""

    sql: Any = None
    expect: Any = None


@lru_cache(maxsize=256)
def _sql_fault(sql: str) -> str | None:
    """Remembers the latest answers: hundreds of tasks often share a query and differ in their options."""
    from definition.sql.check import sql_fault  # noqa: PLC0415 - not for whoever only reads definitions

    return sql_fault(sql)


@lru_cache(maxsize=256)
def _condition_fault(condition: str) -> str | None:
    """As `_sql_fault`."""
    from definition.sql.check import condition_fault  # noqa: PLC0415 - as in _sql_fault

    return condition_fault(condition)


def _sql_problems(document: bytes | msgspec.Raw) -> Iterable[Problem]:
    """What is wrong with SQL and conditions, even if other parts of the document cannot be read."""
    try:
        given = msgspec.json.decode(document, type=_OnlySql)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if isinstance(given.sql, str) and (fault := _sql_fault(given.sql)):
        yield Problem("sql", fault)
    left = MOST_LOOKED_AT
    for at, where in _conditions(given.expect):
        left -= len(where)
        if left >= 0 and (fault := _condition_fault(where)):
            yield Problem(f"expect[{at}].where", fault)


def _conditions(expect: Any) -> Iterable[tuple[int, str]]:
    """Those that are no longer than conditions may be, with their places."""
    for at, each in enumerate(expect if isinstance(expect, list) else ()):
        where = each.get("where") if isinstance(each, dict) else None
        if isinstance(where, str) and where.strip() and len(where) <= MOST_WHERE:
            yield at, where
