"""What the file sink promises, on a real file system; the batches are lists."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from definition.sinks.files import FilesOptions
from worker.sinks.base import Field, Written
from worker.sinks.errors import FencedError, OutOfOrderError, SchemaError, SinkError
from worker.sinks.fence import FenceRow, Mark, Owner
from worker.sinks.files import FilesSink

if TYPE_CHECKING:
    from collections.abc import Callable


class Reader:
    """An ordinary reader: all files of a pattern, however deep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def rows(self) -> list[str]:
        files = sorted(self.folder.rglob("*.json"))
        return [json.loads(line)[0] for file in files for line in file.read_text().splitlines()]

    def batches(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def manifest(self, name: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.folder / name / "_manifest").read_text())
        return told


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "out")


@pytest.fixture
def open_files(reader: Reader) -> Callable[..., FilesSink]:
    def make(token: int, *, task: str = "t", resets: int = 0, path: str | None = None) -> FilesSink:
        options = FilesOptions(path=path or str(reader.folder), format="json")
        sink = FilesSink(options, Owner("g", task, token, resets))
        sink.claim()
        sink.prepare([Field("carrier", "string")])
        return sink

    return make


def test_a_batch_is_a_folder_with_a_manifest(open_files: Any, batch: Any, reader: Reader) -> None:
    """Rows in order, partitions as files, nothing of Spark's own; an empty batch is a manifest alone."""
    sink = open_files(3)
    assert sink.write(batch(0, [("UA",), ("AA",)], [("B6",)])) == Written(rows=3, total=3)
    assert sink.write(batch(1, [])) == Written(rows=0, total=3)
    assert sink.write(batch(2, [("DL",)])) == Written(rows=1, total=4)
    assert reader.rows() == ["UA", "AA", "B6", "DL"]
    assert reader.batches() == [f"sparkherd_batch=0_00000000000{n}" for n in range(3)]
    assert reader.manifest("sparkherd_batch=0_000000000000") == {
        "group": "g",
        "task": "t",
        "token": 3,
        "resets": 0,
        "checkpoint": "c1",
        "batch_id": 0,
        "plan": "as planned 0",
        "rows": 3,
        "total": 3,
        "files": ["part-0.json", "part-1.json"],
    }
    assert reader.manifest("sparkherd_batch=0_000000000001")["files"] == []
    assert sink.claim() == FenceRow(3, 0, Mark("c1", 2, "as planned 2"), 4)


def test_a_batch_seen_before_is_passed_over(open_files: Any, batch: Any, reader: Reader) -> None:
    """By whoever comes next; planned otherwise, left out or from another checkpoint it is refused."""
    open_files(1).write(batch(0, [("UA",)]))
    sink = open_files(2)
    assert sink.write(batch(0, [("UA",)])) == Written(rows=0, total=1, duplicate=True)
    for wrong in (batch(0, plan="anew"), batch(2), batch(1, checkpoint="c2")):
        with pytest.raises(OutOfOrderError):
            sink.write(wrong)
    assert reader.rows() == ["UA"]


def test_a_zombie_publishes_nothing(open_files: Any, batch: Any, reader: Reader) -> None:
    """After the claim its next batch is refused before it is computed; it cannot claim again either."""
    zombie = open_files(1)
    zombie.write(batch(0, [("UA",)]))
    open_files(2)
    late = batch(1, [("AA",)])
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        zombie.write(late)
    assert late.computed == 0
    with pytest.raises(FencedError):
        open_files(1)
    assert reader.rows() == ["UA"]


def test_a_zombie_between_staging_and_publishing(open_files: Any, batch: Any, reader: Reader) -> None:
    """It finds that a newer owner has claimed the task, whether or not that has written the batch yet."""
    frozen = batch(0, [("zombie",)])
    frozen.before_return = lambda: open_files(2).write(batch(0, [("owner",)]))
    with pytest.raises(FencedError):
        open_files(1).write(frozen)
    frozen = batch(1, [("zombie",)])
    frozen.before_return = lambda: open_files(4)
    with pytest.raises(FencedError):
        open_files(3).write(frozen)
    assert reader.rows() == ["owner"]


def test_a_zombie_frozen_before_it_stages(open_files: Any, batch: Any, reader: Reader) -> None:
    """Spark makes the folders anew that the newer owner has moved away; what is in them stays there."""
    frozen = batch(0, [("zombie",)])
    frozen.before_computing = lambda: open_files(2)
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        open_files(1).write(frozen)
    assert reader.rows() == []


def test_a_zombie_frozen_on_the_very_last_step(
    open_files: Any, batch: Any, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past its last look at the claims, with only the rename to do: it has nothing to rename any more."""
    zombie = open_files(1)
    rename = Path.rename

    def frozen_rename(path: Path, target: Path) -> Path:
        if target.parent == reader.folder:
            monkeypatch.undo()
            open_files(2)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", frozen_rename)
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        zombie.write(batch(0, [("zombie",)]))
    assert reader.rows() == []
    open_files(3).write(batch(0, [("owner",)]))
    assert reader.rows() == ["owner"]


def test_a_straggler_that_makes_its_folder_anew(open_files: Any, batch: Any, reader: Reader) -> None:
    """An attempt of Spark's that lives on after a claim stages where nobody publishes from."""
    zombie = open_files(1)
    staging = reader.folder.with_name(".out.sparkherd") / "staging"
    frozen = batch(0, [("zombie",)])
    frozen.before_return = lambda: open_files(2)
    with pytest.raises(FencedError):
        zombie.write(frozen)
    (staging / "1" / "0-straggler").mkdir(parents=True)
    (staging / "1" / "0-straggler" / "part-0.json").write_text('["half"]\n')
    open_files(3).write(batch(0, [("owner",)]))
    assert reader.rows() == ["owner"]
    assert {path.name.partition("-")[0] for path in staging.iterdir()} == {"3"}


def test_what_failed_leaves_nothing(open_files: Any, batch: Any, reader: Reader) -> None:
    """A batch that dies while it is staged is invisible, and is done again by the same or the next owner."""
    sink = open_files(1)
    dying = batch(0, [("UA",)])

    def die() -> None:
        raise RuntimeError("the power is gone")

    dying.before_return = die
    with pytest.raises(RuntimeError):
        sink.write(dying)
    assert reader.batches() == []
    assert sink.write(batch(0, [("UA",)])).rows == 1
    open_files(2)
    assert len(list(reader.folder.with_name(".out.sparkherd").rglob("*.json"))) == 1  # owner.json


def test_readers_see_whole_batches_only(open_files: Any, batch: Any, reader: Reader) -> None:
    """While a writer publishes batches of 4 files each, every look finds multiples of a batch's 40 rows."""
    sink = open_files(1)
    done = threading.Event()

    def write() -> None:
        for number in range(60):
            sink.write(batch(number, *[[(f"{number}",)] * 10] * 4))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    looks = set()
    while not done.is_set():
        looks.add(len(reader.rows()))
    writer.join()
    looks.add(len(reader.rows()))
    assert {look % 40 for look in looks} == {0}
    assert max(looks) == 2400
    assert len(looks) > 2


def test_a_reset_starts_anew(open_files: Any, batch: Any, reader: Reader) -> None:
    """Its batches have numbers of their own, beside those from before; the total goes on."""
    old = open_files(1)
    old.write(batch(0, [("UA",)]))
    new = open_files(2, resets=1)
    assert new.write(batch(0, [("UA",)], checkpoint="c2")) == Written(rows=1, total=2)
    assert reader.batches() == ["sparkherd_batch=0_000000000000", "sparkherd_batch=1_000000000000"]
    with pytest.raises(FencedError, match="the sink knows of its reset 1, its manager does not"):
        open_files(3)


def test_a_folder_has_one_task(open_files: Any) -> None:
    """Two tasks would number their batches alike."""
    open_files(1)
    with pytest.raises(SinkError, match=r"out is that of task t of group g"):
        open_files(1, task="other")


def test_what_files_cannot_hold_is_named(open_files: Any) -> None:
    """Types without a file format's own, twins, and the sink's own column."""
    sink = open_files(1)
    for field, said in [
        (Field("a", "interval"), "files cannot hold a of type interval, select CAST"),
        (Field("a", "void"), "files cannot hold a of type void"),
        (Field("sparkherd_batch", "long"), "has the name of the sink's own"),
    ]:
        with pytest.raises(SchemaError, match=said):
            sink.prepare([field])
    with pytest.raises(SchemaError, match="several columns of the name a"):
        sink.prepare([Field("a", "long"), Field("A", "long")])


def test_a_place_that_cannot_be_used_is_named(open_files: Any, tmp_path: Path) -> None:
    """One line with the operating system's reason; a file where a folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match=r"file/out cannot be used: Not a directory"):
        open_files(1, path=f"{tmp_path}/file/out")


def test_a_damaged_manifest_is_named(open_files: Any, batch: Any, reader: Reader) -> None:
    """Without the last batch's manifest nobody knows what comes next."""
    open_files(1).write(batch(0, [("UA",)]))
    (reader.folder / "sparkherd_batch=0_000000000000" / "_manifest").write_text("{")
    with pytest.raises(SinkError, match=r"the manifest of .*batch=0_0+ cannot be read"):
        open_files(2)


def test_executors_that_see_another_disk(open_files: Any, batch: Any) -> None:
    """Rows that were written, but not where the worker looks, are an error and not an empty batch."""
    sink = open_files(1)
    elsewhere = batch(0, [("UA",)])
    staging = sink._ownership.staging

    def vanish() -> None:
        for file in staging.rglob("part-*"):
            file.unlink()

    elsewhere.before_return = vanish
    with pytest.raises(SinkError, match="the executors wrote their files elsewhere"):
        sink.write(elsewhere)


def test_what_else_is_among_the_claims(open_files: Any, batch: Any, reader: Reader) -> None:
    """A client of NFS keeps a file that was removed while it was open, under a name of its own."""
    open_files(1).write(batch(0, [("UA",)]))
    claims = reader.folder.with_name(".out.sparkherd") / "claims"
    for strange in (".nfs000000000001", "notes_2", "7", "8_1_2", "9_x"):
        (claims / strange).touch()
    owner = open_files(2)
    assert owner.newest() == FenceRow(2, 0, Mark("c1", 0, "as planned 0"), 1)
    assert owner.write(batch(1, [("UA",)])).total == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"group": "g"}', "\x80"])
def test_a_damaged_owner_is_named(open_files: Any, reader: Reader, text: str) -> None:
    """Nobody knows then whose the folder is."""
    open_files(1)
    (reader.folder.with_name(".out.sparkherd") / "owner.json").write_text(text, encoding="latin-1")
    with pytest.raises(SinkError, match=r"owner\.json does not say whose folder .*out is: remove it if"):
        open_files(2)


def test_a_file_in_the_folder_s_place(open_files: Any, reader: Reader) -> None:
    """It is no batch that somebody else has written."""
    reader.folder.write_text("")
    with pytest.raises(SinkError, match="out cannot be used: File exists") as refused:
        open_files(1)
    assert not isinstance(refused.value, FencedError)
