"""The whole check of a definition: its shape, and whether its SQL parses (protocol §6)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from definition.document import MOST_BYTES, Definition, DefinitionError, parse_definition
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


class _OnlySql(msgspec.Struct, frozen=True):
    sql: str | None = None


@lru_cache(maxsize=256)
def _sql_fault(sql: str) -> str | None:
    """Remembers the latest answers: hundreds of tasks often share a query and differ in their options."""
    from definition.sql.check import sql_fault  # noqa: PLC0415 - not for whoever only reads definitions

    return sql_fault(sql)


def _sql_problems(document: bytes | msgspec.Raw) -> Iterable[Problem]:
    """What is wrong with the SQL, even if other parts of the document cannot be read."""
    try:
        sql = msgspec.json.decode(document, type=_OnlySql).sql
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if sql is not None and (fault := _sql_fault(sql)):
        yield Problem("sql", fault)
