"""The file sink where a client knows folders by handles and remembers what they held: as NFS has it.

A handle stays that of its folder when the folder is moved, and a name that was looked up, or a list that was
read, may be answered from memory for a minute. What the server itself holds to is each single call: a rename
finds its name or not, and only an empty folder is removed. An open descriptor of a folder is such a handle on
a local file system, too, so the calls are the real ones here; no NFS is mounted.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from definition.sinks.files import FilesOptions
from worker.sinks.base import Field
from worker.sinks.errors import FencedError, OutOfOrderError, SinkError
from worker.sinks.fence import FenceRow, Mark, Owner
from worker.sinks.files import FilesSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHANGES = ("mkdir", "link", "utime", "rename", "unlink", "rmdir")
"""The calls that change a folder; `utime` is what a touch begins with."""
ROWS = [[("a",)], [("b",)], [("c",)]]


class Steps:
    """Does something else before the n-th change that a piece of code makes to the file system, once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.struck = False
        self._patch = monkeypatch

    @contextmanager
    def before(self, nth: int, meanwhile: Callable[[], object]) -> Iterator[None]:
        """`struck` tells afterwards whether there were as many."""
        self.struck = False
        left = itertools.count(nth - 1, -1)

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def change(*arguments: Any, **more: Any) -> Any:
                if next(left) == 0:
                    self.struck = True
                    meanwhile()
                return real(*arguments, **more)

            return change

        with self._patch.context() as patch:
            for name in CHANGES:
                patch.setattr(os, name, counted(getattr(os, name)))
            yield


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def opened(out: Path) -> Callable[..., FilesSink]:
    def make(token: int, resets: int = 0, folder: Path = out) -> FilesSink:
        sink = FilesSink(FilesOptions(path=str(folder), format="json"), Owner("g", "t", token, resets))
        sink.prepare([Field("carrier", "string")])
        return sink

    return make


def rows(out: Path) -> list[str]:
    """What a reader finds, in order."""
    return sorted(json.loads(line)[0] for file in out.rglob("*.json") for line in file.read_text().split())


def blind(sink: FilesSink) -> FilesSink:
    """One whose machine answers from memory that no newer owner is there."""
    sink._ownership.require_newest = lambda: None  # type: ignore[method-assign]  # a stale list
    return sink


class Publishing:
    """A zombie stopped at its very last call, which it makes by handles."""

    def __init__(self, sink: FilesSink, batch: Any) -> None:
        self.published = False
        rename = os.rename

        def stop(path: Path, target: Path) -> Path:
            if target.parent == sink._folder:
                self._names = path.name, target.name
                self._handles = os.open(path.parent, os.O_RDONLY), os.open(target.parent, os.O_RDONLY)
                raise InterruptedError
            rename(path, target)
            return target

        with pytest.MonkeyPatch.context() as patch, suppress(SinkError):
            patch.setattr(Path, "rename", stop)
            sink.write(batch(0, *ROWS))
        self._rename = rename

    def go_on(self) -> None:
        """The rename."""
        with suppress(OSError):
            self._rename(*self._names, src_dir_fd=self._handles[0], dst_dir_fd=self._handles[1])
            self.published = True


def test_a_zombie_publishes_by_handles_at_any_step_of_a_claim(
    opened: Any, batch: Any, tmp_path: Path, steps: Steps
) -> None:
    """A whole batch, which the new owner knows of, or none: no part of one, and nothing after the claim."""
    outcomes = []
    for nth in itertools.count(1):
        out = tmp_path / str(nth)
        former, owner = opened(1, folder=out), opened(2, folder=out)
        former.claim()
        zombie = Publishing(former, batch)
        with steps.before(nth, zombie.go_on):
            row = owner.claim()
        if not steps.struck:
            zombie.go_on()
            assert not zombie.published
            break
        assert rows(out) == (["a", "b", "c"] if zombie.published else []), nth
        assert row.last == (Mark("c1", 0, "as planned 0") if zombie.published else None)
        assert owner.write(batch(0, *ROWS)).duplicate is zombie.published
        assert owner.write(batch(1, [("d",)])).total == 4
        assert rows(out) == ["a", "b", "c", "d"]
        outcomes.append(zombie.published)
    assert sorted(outcomes, reverse=True) == outcomes  # once it is too late it stays so
    assert set(outcomes) == {True, False}


def test_a_claim_that_is_overtaken_at_any_step(opened: Any, batch: Any, tmp_path: Path, steps: Steps) -> None:
    """An older owner whose claim a newer one overtakes publishes nothing, even if it never hears of that."""
    for nth in itertools.count(1):
        out = tmp_path / str(nth)
        older, newer = opened(3, folder=out), opened(4, folder=out)
        with steps.before(nth, newer.claim), suppress(FencedError):
            older.claim()
        if not steps.struck:
            break
        with pytest.raises(SinkError):
            blind(older).write(batch(0, [("zombie",)]))
        assert rows(out) == [], nth
        assert newer.write(batch(0, [("owner",)])).rows == 1
    assert nth > 5


def test_a_claim_that_an_older_one_comes_into(opened: Any, batch: Any, tmp_path: Path, steps: Steps) -> None:
    """At whichever step: what the newer owner has made by then is let be."""
    for nth in itertools.count(1):
        out = tmp_path / str(nth)
        older, newer = opened(3, folder=out), opened(4, folder=out)

        def come(older: FilesSink = older) -> None:
            with suppress(FencedError):
                older.claim()

        with steps.before(nth, come):
            newer.claim()
        if not steps.struck:
            break
        assert newer.write(batch(0, [("owner",)])).rows == 1
        with pytest.raises(SinkError):
            blind(older).write(batch(1, [("zombie",)]))
        assert rows(out) == ["owner"], nth
    assert nth > 5


def test_the_same_owner_once_more(opened: Any, batch: Any, out: Path) -> None:
    """A query that is started again under its token ends the one before, wherever that is."""
    former, owner = opened(1), opened(1)
    former.claim()
    frozen = batch(0, [("former",)])
    frozen.before_return = owner.claim
    with pytest.raises(SinkError):
        former.write(frozen)
    assert owner.write(batch(0, [("owner",)])).rows == 1
    assert rows(out) == ["owner"]


def test_a_zombie_that_stages_after_the_claim(opened: Any, batch: Any, out: Path) -> None:
    """Spark makes its folders anew, and its machine knows of no newer owner; but it has no outbox."""
    zombie = opened(1)
    zombie.claim()
    frozen = batch(0, [("zombie",)])
    frozen.before_computing = lambda: opened(2).claim()
    with pytest.raises(SinkError):
        blind(zombie).write(frozen)
    assert rows(out) == []


def test_a_zombie_after_a_reset(opened: Any, batch: Any, out: Path) -> None:
    """Its batches have other numbers, so no folder of the new owner's stands in their way."""
    zombie = opened(1)
    zombie.claim()
    zombie.write(batch(0, [("old",)]))
    frozen = batch(1, [("zombie",)])
    frozen.before_computing = lambda: opened(2, resets=1).claim()
    with pytest.raises(SinkError):
        blind(zombie).write(frozen)
    assert rows(out) == ["old"]


def test_a_batch_that_the_claim_did_not_see(
    opened: Any, batch: Any, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of batches was from memory; the rename finds what is there, and that it is the same batch."""
    former = opened(1)
    former.claim()
    former.write(batch(0, [("a",)]))
    owner = opened(2)
    with monkeypatch.context() as patch:
        patch.setattr("worker.sinks.files.published", lambda _: [])
        assert owner.claim() == FenceRow(2)
    written = owner.write(batch(0, [("a",)]))
    assert (written.rows, written.total, written.duplicate) == (0, 1, True)
    assert owner.write(batch(1, [("b",)])).total == 2
    assert rows(out) == ["a", "b"]
    assert list((out.with_name(".out.sparkherd")).rglob("part-*")) == []


def test_another_batch_that_the_claim_did_not_see(
    opened: Any, batch: Any, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was planned otherwise is never passed over."""
    former = opened(1)
    former.claim()
    former.write(batch(0, [("a",)]))
    owner = opened(2)
    with monkeypatch.context() as patch:
        patch.setattr("worker.sinks.files.published", lambda _: [])
        owner.claim()
    with pytest.raises(OutOfOrderError, match="planned otherwise"):
        owner.write(batch(0, [("b",)], plan="planned anew"))
    assert rows(out) == ["a"]


def test_an_answer_that_was_lost(opened: Any, batch: Any, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server renamed, the client asked once more, and was told that there is nothing of that name."""
    owner = opened(1)
    owner.claim()
    rename = Path.rename

    def renamed_twice(path: Path, target: Path) -> Path:
        done = rename(path, target)
        if target.parent == out:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        return done

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", renamed_twice)
        assert owner.write(batch(0, [("a",)])).total == 1
    assert owner.write(batch(1, [("b",)])).total == 2
    assert rows(out) == ["a", "b"]


def test_a_former_owner_that_will_not_rest(
    opened: Any, batch: Any, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its folder cannot be removed the claim is none; the next one is."""
    opened(1).claim()
    busy = [errno.ENOTEMPTY]
    rmdir = os.rmdir

    def refused(path: Any, **more: Any) -> None:
        if busy and Path(path).name.startswith("1-"):
            raise OSError(busy[0], "Directory not empty", str(path))
        rmdir(path, **more)

    monkeypatch.setattr(os, "rmdir", refused)
    with pytest.raises(SinkError, match=r"a former owner of task t of group g still writes to .*/staging/1-"):
        opened(2).claim()
    busy.clear()
    owner = opened(2)
    owner.claim()
    assert owner.write(batch(0, [("a",)])).rows == 1
    assert rows(out) == ["a"]
