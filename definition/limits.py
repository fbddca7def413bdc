"""How much a task may take, and what becomes of one that takes more (protocol §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

from definition.reading import Constraint, Section, readable
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from definition.memory import Memory

Action: TypeAlias = Literal["warn", "restart", "quarantine"]

NAMES: Final = ("batch_s", "batch_rows", "state_rows", "state_mb", "heap_mb", "hung_s")
"""What can be limited."""
HUNG_S: Final = 300.0
"""Silence that is told of a task which does not limit it, in seconds."""


def _max_fault(most: float) -> str | None:
    return None if 0 < most < float("inf") else "must be a finite number above 0"


_Most = Annotated[float, Constraint(_max_fault), msgspec.Meta(extra_json_schema={"exclusiveMinimum": 0})]


class Limit(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most `max`; beyond it, `action`: tell it, start the query anew, or have nobody run it any more."""

    max: _Most
    action: Action = "warn"


class Limits(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each a `Limit`, or a number, which only warns.

    `batch_s` is how long a batch takes, in seconds, `batch_rows` how many rows it reads; `state_rows` and
    `state_mb` are what all state stores of the query have together. `heap_mb` is how much heap it holds, in
    MiB; what it may have is `definition.memory`. `hung_s` is for how many seconds no batch is finished though
    there is work.
    """

    batch_s: _Most | Limit | None = None
    batch_rows: _Most | Limit | None = None
    state_rows: _Most | Limit | None = None
    state_mb: _Most | Limit | None = None
    heap_mb: _Most | Limit | None = None
    hung_s: _Most | Limit | None = None

    def given(self) -> Iterator[tuple[str, Limit]]:
        """Those that there are, by name."""
        for name in NAMES:
            limit = getattr(self, name)
            if limit is not None:
                yield name, limit if isinstance(limit, Limit) else Limit(max=limit)

    @property
    def silence_s(self) -> float:
        """After how many seconds without a finished batch, though there is work, a query counts as hung."""
        return next((limit.max for name, limit in self.given() if name == "hung_s"), HUNG_S)


class _Read(msgspec.Struct):
    limits: Limits | None = None


def heap_limit_in(document: bytes | msgspec.Raw) -> Limit | None:
    """`limits.heap_mb` of a document that was found sound before, without reading all of it.

    None of one that this version cannot read: another one may have stored it.
    """
    text = bytes(document)
    if b"heap_mb" not in text and b"\\u" not in text:  # most have none, and many are asked for at once
        return None
    try:
        limits = msgspec.json.decode(document, type=_Read).limits
    except msgspec.ValidationError:
        return None
    return None if limits is None else dict(limits.given()).get("heap_mb")


def heap_faults(limits: Limits | None, memory: Memory | None) -> Iterator[Problem]:
    """A task that ends at `memory.heap_mb` never comes to a `limits.heap_mb` that is not below it."""
    if limits is None or memory is None or not readable(limits, memory):
        return
    soft, hard = limits.heap_mb, memory.heap_mb
    if soft is None or hard is None or not readable(soft, hard):
        return
    path, most = ("limits.heap_mb.max", soft.max) if isinstance(soft, Limit) else ("limits.heap_mb", soft)
    if readable(most) and most >= hard:
        yield Problem(path, f"must be below memory.heap_mb ({hard}), at which the task's JVM ends")
