"""The whole check of a definition: its shape, and whether its SQL parses (PROTOCOL.md §6)."""

from __future__ import annotations

import msgspec

from protocol.definition import Definition, DefinitionError, parse_definition
from protocol.messages.tasks import Problem


def check_definition(document: bytes | msgspec.Raw) -> Definition | tuple[Problem, ...]:
    """The definition, or every problem it has, each with its path in the document."""
    try:
        definition = parse_definition(document)
    except DefinitionError as error:
        shape = {problem.path: problem for problem in (*_sql_problems(document), *error.problems)}
        return tuple(sorted(shape.values()))
    return _sql_problems(document) or definition


def _sql_problems(document: bytes | msgspec.Raw) -> tuple[Problem, ...]:
    from protocol.sql.check import sql_fault  # noqa: PLC0415 - brings a parser along, not for all who import this

    try:
        sql = msgspec.json.decode(document, type=_OnlySql).sql
    except (msgspec.DecodeError, RecursionError):
        return ()
    fault = None if sql is None else sql_fault(sql)
    return () if fault is None else (Problem("sql", fault),)


class _OnlySql(msgspec.Struct, frozen=True):
    sql: str | None = None
