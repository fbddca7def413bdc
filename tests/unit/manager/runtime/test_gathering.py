"""Which rows share a transaction."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from manager.core.stored_rows import GroupRow
from manager.runtime import writer as subject
from manager.runtime.writer import Writer
from tests.fakes.turns import turn, until
from tests.unit.manager.runtime.slots import OneSlot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from manager.storage.base import Storage


class Book:
    """A storage that keeps how many rows each transaction had."""

    def __init__(self) -> None:
        self.transactions: list[int] = []

    async def commit(self, changes: Sequence[object], *_: object) -> None:
        self.transactions.append(len(changes))


class Setting:
    """A writer that runs, and its storage."""

    def __init__(self) -> None:
        self.book = Book()
        storage = cast("Storage", self.book)
        self.writer = Writer(
            storage,
            OneSlot(storage).routing,
            cast("Any", SimpleNamespace(commit=lambda _: nullcontext())),
            on_lost=lambda _: None,
            on_loaded=lambda *_: None,
            on_durable=lambda _: None,
            on_fenced=lambda _: None,
            on_broken=lambda: None,
        )

    def decide(self) -> None:
        """A rule has changed one row."""
        decided = SimpleNamespace(group=SimpleNamespace(name="g"), changes=[GroupRow(group="g")], answers=[])
        self.writer.take(cast("Any", decided))


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    made = Setting()
    made.writer.start()
    yield made
    await made.writer.stop()


async def test_rows_of_requests_that_come_in_one_after_the_other_share_a_transaction(
    setting: Setting,
) -> None:
    """Each takes a few turns of the loop to its rule; a busy manager commits for many at a time."""
    for _ in range(3):
        setting.decide()
        await turn()
    await until(lambda: setting.book.transactions)
    assert setting.book.transactions == [3]


async def test_rows_wait_for_others_only_so_long(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come in without end."""
    monkeypatch.setattr(subject, "GATHER_S", 0.0)
    for _ in range(100):
        setting.decide()
        await turn()
    assert setting.book.transactions
