"""What anybody may read of a database's error about rows: it may quote a value; rules without I/O.

Anybody may read the cause of a task, also who is not to see its rows (docs/security.md, Quarantined rows).
So of a message only that is shown which the database itself is known to say without a value: its own words
where they are, and names of constraints, columns and tables. Of any other, as triggers and functions of
users make them, what is shown is the kind of the error and those names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SQLITE: Final = {
    "SQLITE_CONSTRAINT_CHECK",
    "SQLITE_CONSTRAINT_DATATYPE",
    "SQLITE_CONSTRAINT_FOREIGNKEY",
    "SQLITE_CONSTRAINT_NOTNULL",
    "SQLITE_CONSTRAINT_PRIMARYKEY",
    "SQLITE_CONSTRAINT_ROWID",
    "SQLITE_CONSTRAINT_UNIQUE",
    "SQLITE_MISMATCH",
    "SQLITE_TOOBIG",
}
"""Errors whose messages have names, types and conditions in them; a trigger's have a code of their own."""
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


def is_of_users(error: Any) -> bool:
    """Whether a function of theirs has raised it in PostgreSQL, under whatever code."""
    by = getattr(getattr(error, "diag", None), "source_function", None)
    return by is not None and _RAISES.match(by) is not None


def public(error: Any) -> str:
    """What anybody may read of an error that is about rows, as the driver has raised it."""
    said = str(error).strip().partition("\n")[0]
    state = getattr(error, "sqlstate", None)
    if state is None:
        kind = str(getattr(error, "sqlite_errorname", type(error).__name__))
        return said if kind in _SQLITE else kind
    names = {each: name for each in _NAMES if (name := getattr(error.diag, each))}
    return said if _SAID.fullmatch(_without(said, names.values())) else _kind(error, state, names)


def _without(said: str, names: Iterable[str]) -> str:
    """The message with a sign for each of the names in it."""
    for name in names:
        said = said.replace(f'"{name}"', "\0")
    return said


def _kind(error: Any, state: str, names: Mapping[str, str]) -> str:
    """The driver's name of the error as words, and what it is about."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    about = "".join(f", {each.removesuffix('_name')} {name}" for each, name in names.items())
    return f"{words} (SQLSTATE {state}){about}"
