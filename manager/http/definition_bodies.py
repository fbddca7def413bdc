"""Reading definitions for the core: checked as a whole, away from the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import msgspec

from definition.check import check_definition
from definition.document import Definition
from definition.reading import MOST_PROBLEMS
from manager.core.commands import NewDefinition
from protocol.errors import ErrorCode, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from protocol.messages.tasks import Problem

T = TypeVar("T")

AT_ONCE = 50
"""Definitions that are read in one go, of many."""
SHORT = 4096
"""Bytes of a definition that is read at once, if there is no SQL in it to parse."""


async def read_definition(document: msgspec.Raw) -> NewDefinition:
    """The definition in its plain form: one spelling for one meaning, so that equal ones are equal.

    Raises:
        RefusedError: INVALID_REQUEST with every problem, each with its path.
    """
    read = await _aside(_read, document)
    if isinstance(read, NewDefinition):
        return read
    raise RefusedError(
        ErrorCode.INVALID_REQUEST,
        "; ".join(f"{'.'.join(filter(None, ('definition', each.path)))}: {each.message}" for each in read),
        problems=read,
    )


async def read_definitions(
    documents: Sequence[msgspec.Raw],
) -> list[NewDefinition | tuple[Problem, ...]]:
    """Each of many definitions, or its problems; away from the event loop, which goes on meanwhile.

    What comes after more problems than anybody is told is not read.
    """
    read: list[NewDefinition | tuple[Problem, ...]] = []
    for start in range(0, len(documents), AT_ONCE):
        some = [bytes(document) for document in documents[start : start + AT_ONCE]]
        read += await asyncio.to_thread(_read_all, some)
        if sum(len(each) for each in read[-AT_ONCE:] if isinstance(each, tuple)) > MOST_PROBLEMS:
            break
    return read


async def problems_of(document: msgspec.Raw) -> tuple[Problem, ...]:
    """Every problem of a definition; none for a good one."""
    checked = await _aside(check_definition, document)
    return () if isinstance(checked, Definition) else checked


def _read(document: bytes | msgspec.Raw) -> NewDefinition | tuple[Problem, ...]:
    checked = check_definition(document)
    if not isinstance(checked, Definition):
        return checked
    plain = msgspec.json.encode(msgspec.json.decode(document), order="sorted")
    return NewDefinition(
        document=msgspec.Raw(plain),
        weight=checked.weight,
        worker=checked.worker,
        labels=dict(checked.labels),
        needs=checked.needs,
        entrypoint=checked.entrypoint,
        exclusive=checked.exclusive,
    )


def _read_all(documents: Iterable[bytes]) -> list[NewDefinition | tuple[Problem, ...]]:
    return [_read(document) for document in documents]


async def _aside(read: Callable[[bytes | msgspec.Raw], T], document: msgspec.Raw) -> T:
    """In a thread, unless it is soon done: a hop there and back costs more than reading a short one."""
    if len(document) <= SHORT and b'"sql"' not in bytes(document):
        return read(document)
    return await asyncio.to_thread(read, bytes(document))
