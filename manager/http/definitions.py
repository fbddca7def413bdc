"""Reading definitions for the core: checked as a whole, away from the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from manager.core.commands import NewDefinition
from protocol.definition import Definition
from protocol.definition_check import check_definition
from protocol.errors import ErrorCode, RefusedError

if TYPE_CHECKING:
    from protocol.messages.tasks import Problem

SHORT = 4096
"""Bytes of a definition that is read at once, if there is no SQL in it to parse."""


async def read_definition(document: msgspec.Raw) -> NewDefinition:
    """The definition in its plain form: one spelling for one meaning, so that equal ones are equal.

    Raises:
        RefusedError: INVALID_REQUEST with every problem, each with its path.
    """
    checked = await _check(document)
    if not isinstance(checked, Definition):
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            "; ".join(f"definition.{problem.path}: {problem.message}" for problem in checked),
            problems=checked,
        )
    plain = msgspec.json.encode(msgspec.json.decode(document), order="sorted")
    return NewDefinition(
        document=msgspec.Raw(plain), weight=checked.weight, worker=checked.worker, labels=dict(checked.labels)
    )


async def problems_of(document: msgspec.Raw) -> tuple[Problem, ...]:
    """Every problem of a definition; none for a good one."""
    checked = await _check(document)
    return () if isinstance(checked, Definition) else checked


async def _check(document: msgspec.Raw) -> Definition | tuple[Problem, ...]:
    """In a thread, unless it is soon done: a hop there and back costs more than reading a short one."""
    if len(document) <= SHORT and b'"sql"' not in bytes(document):
        return check_definition(document)
    return await asyncio.to_thread(check_definition, bytes(document))
