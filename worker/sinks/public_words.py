"""What anybody may read of a database's error while rows are written; rules without I/O.

Anybody may read the cause of a task, also who is not to see its rows (docs/security.md, Quarantined rows).
So of a message about rows only that is shown which the database itself is known to say without a value: its
own words where they are, and names of constraints, columns and tables. Of any other, what is shown is the
kind of the error and those names; of one that a trigger or a function of users has raised the kind only, for
they may call whatever they like a constraint. An error that is about something else is shown, but for what
may be a value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from worker.sinks.masked_words import masked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_SQLITE: Final = {
    275: "SQLITE_CONSTRAINT_CHECK",
    3091: "SQLITE_CONSTRAINT_DATATYPE",
    787: "SQLITE_CONSTRAINT_FOREIGNKEY",
    1299: "SQLITE_CONSTRAINT_NOTNULL",
    1555: "SQLITE_CONSTRAINT_PRIMARYKEY",
    2579: "SQLITE_CONSTRAINT_ROWID",
    2067: "SQLITE_CONSTRAINT_UNIQUE",
    20: "SQLITE_MISMATCH",
    18: "SQLITE_TOOBIG",
}
"""Errors whose messages have names, types and conditions in them; a trigger's have a code of their own.

By numbers, as SQLite has them: Python 3.11 has no name for each.
"""
_SQLITE_ERROR: Final = 1
"""Of a statement; the low byte of a code."""
_NAMES: Final = ("table_name", "column_name", "constraint_name", "datatype_name")
_RAISES: Final = re.compile(r"exec_stmt_(?:raise|assert)$|PLy_|plperl|pltcl")
"""What in PostgreSQL's own code raises errors for PL/pgSQL, Python, Perl and Tcl."""
_SAID: Final = re.compile(
    r"duplicate key value violates unique constraint \0"
    r"|null value in column \0 of relation \0 violates not-null constraint"
    r"|new row for relation \0 violates check constraint \0"
    r"|insert or update on table \0 violates foreign key constraint \0"
    r"|conflicting key value violates exclusion constraint \0"
    r"|value too long for type character(?: varying)?\(\d{1,8}\)"
    r"|numeric field overflow|(?:smallint|integer|bigint) out of range|division by zero"
)
"""What PostgreSQL says itself, a NUL for each name that it tells of besides."""
_OWN: Final = (
    *("08", "0A", "25", "28", "3D", "3F", "40", "42", "53", "54", "55", "57", "58"),
    *("XX001", "XX002"),
)
"""SQLSTATEs, or classes of them, under which PostgreSQL itself says what is wrong with it or a statement."""
_OF_SYSTEM: Final = ("08", "28", "53", "57", "58", "XX")
_OUTSIDE: Final = re.compile(r"(?:COPY|while) .*")
"""Lines of the context of an error that no function has met; in another language there is none of these."""


def is_of_users(error: Any) -> bool:
    """Whether a function of theirs has raised it in PostgreSQL, under whatever code."""
    by = getattr(getattr(error, "diag", None), "source_function", None)
    return by is not None and _RAISES.match(by) is not None


def public(error: Any) -> str:
    """What anybody may read of an error that is about rows, as the driver has raised it."""
    said = str(error).strip().partition("\n")[0]
    if getattr(error, "sqlstate", None) is None:
        is_plain = getattr(error, "sqlite_errorcode", None) in _SQLITE
        return said if is_plain else str(getattr(error, "sqlite_errorname", type(error).__name__))
    is_own = not is_of_users(error)
    return said if is_own and _SAID.fullmatch(_without(said, _names(error).values())) else _kind(error)


def public_of_others(error: Any, names: Collection[str]) -> str:
    """What anybody may read of an error that is not about rows, met while they were written.

    Args:
        error: as the driver has raised it.
        names: of the task's tables, schemas and columns, which are no values.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return masked(str(error), names, is_of_statement=code & 0xFF == _SQLITE_ERROR)
    said = getattr(getattr(error, "diag", None), "message_primary", None)
    if said is None:  # no database has said it, but the driver, such as of a connection
        return str(error).strip().partition("\n")[0]
    state = str(error.sqlstate)
    if is_of_users(error) or _is_within_function(error) or not state.startswith(_OWN):
        return _kind(error)
    return masked(said, names, is_of_statement=not state.startswith(_OF_SYSTEM))


def _is_within_function(error: Any) -> bool:
    """Whether a function or another server was at it, whose words and statements may be made of values."""
    lines = (error.diag.context or "").splitlines()
    return not all(_OUTSIDE.match(line) for line in lines)


def _names(error: Any) -> dict[str, str]:
    return {each: name for each in _NAMES if (name := getattr(error.diag, each))}


def _without(said: str, names: Iterable[str]) -> str:
    """The message with a sign for each of the names in it."""
    for name in names:
        said = said.replace(f'"{name}"', "\0")
    return said


def _kind(error: Any) -> str:
    """The driver's name of the error as words, and what it is about, as the database itself has it."""
    names: Mapping[str, str] = {} if is_of_users(error) else _names(error)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    about = "".join(f", {each.removesuffix('_name')} {name}" for each, name in names.items())
    return f"{words} (SQLSTATE {error.sqlstate}){about}"
