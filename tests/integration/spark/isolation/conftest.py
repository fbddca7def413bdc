"""An engine whose tasks have JVMs of their own; its home is a double, for another Spark has this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest_asyncio

from tests.contracts.query_engine import made_ready
from tests.fakes.query_engine import FakeEngine
from tests.integration.spark.conftest import QUICK
from worker.isolation.engine import IsolatedEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tests.integration.spark.conftest import Lease
    from worker.isolation.query import IsolatedQuery
    from worker.query_engine import QuerySpec

    StartIsolated = Callable[..., Awaitable[IsolatedQuery]]


def jvm_of(query: IsolatedQuery) -> int:
    """The process id of a query's JVM."""
    return jvm_below(query.process.pid)


def jvm_below(pid: int) -> int:
    """The process id of the JVM that the process of a task has begun."""
    return next(each.pid for each in _processes() if each.parent == pid and each.name == "java")


def left_of(pid: int) -> list[int]:
    """The processes that are left of the session that the process of a task has led."""
    return [each.pid for each in _processes() if each.session == pid and each.state not in "ZX"]


class _Process(NamedTuple):
    pid: int
    name: str
    state: str
    parent: int
    session: int


def _processes() -> Iterator[_Process]:
    """All there are.

    Each names its parent. A process that is asked for its children thread by thread may seem to have none:
    a thread that ends leaves them to another one, which has been asked by then.
    """
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = path.read_text().rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        state, parent, _, session, *_ = rest.split()
        yield _Process(int(path.parent.name), head.partition("(")[2], state, int(parent), int(session))


@pytest_asyncio.fixture(loop_scope="session")
async def isolated(lease: Lease, tmp_path: Path) -> AsyncIterator[IsolatedEngine]:
    """Its JVMs may be silent for long; the entry points of a module `batches` are allowed."""
    settings = SparkSettings(
        app_name="tests",
        checkpoint_root=str(tmp_path / "checkpoints"),
        conf=QUICK,
        allow_entrypoint=("batches",),
    )
    engine = IsolatedEngine(settings, lease, make_home=lambda *_: FakeEngine())
    await engine.open()
    yield engine
    lease.holds = True
    await engine.close()


@pytest_asyncio.fixture(loop_scope="session")
async def start_isolated(isolated: IsolatedEngine, spec: Callable[..., QuerySpec]) -> StartIsolated:
    """Starts a query in a JVM of its own."""

    async def run(
        task: str = "t", token: int = 1, *, is_prepared: bool = False, **definition: Any
    ) -> IsolatedQuery:
        wanted = spec(task, token, **definition)
        prepared = await made_ready(isolated, wanted) if is_prepared else None
        return await isolated.start(wanted, prepared=prepared)

    return run


async def until_batch(query: IsolatedQuery, batch_id: int) -> None:
    """Wait until a query has told of a batch as late as that one; fails when it ends before."""
    ended = asyncio.ensure_future(query.ended())
    async with asyncio.timeout(240):
        while (done := query.progress()) is None or done.batch_id is None or done.batch_id < batch_id:
            await asyncio.wait({ended}, timeout=0.1)
            assert not ended.done(), ended.result()
    ended.cancel()
