"""A quarantine that a task has no more: what is asked of it, and when."""

from __future__ import annotations

from typing import Any

import pytest

from definition.quarantine import Quarantine
from tests.fakes.foreign_errors import RAISED, kind_of
from worker.query_engine import QueryError
from worker.sinks.errors import FencedError, SinkError
from worker.sinks.fence import FenceRow, Mark
from worker.spark.checkpoint import CheckpointFolder
from worker.spark.checkpoint_rules import Checkpoint
from worker.spark.quarantine.identity import shown
from worker.spark.quarantine.moved import NOTE_FILE, leave_former

FORMER = Quarantine(format="fenced_files", options={"path": "/former"})
PRESENT = Quarantine(format="fenced_files", options={"path": "/present"}, max_quarantined_ratio=0.5)
DONE = Checkpoint("place", "query", planned=4, plan="p", committed=4)
BEGUN = Checkpoint("place", "query", planned=5, plan="p", committed=4)
IS_THERE = FenceRow(1, last=Mark("query", 5, "p"))
WRITTEN = FenceRow(1, last=Mark("query", 4, "p"))
"""What the sink says, unless it is of batch 5, too."""


class Folder(CheckpointFolder):
    """A checkpoint in memory, of a task that had a quarantine."""

    def __init__(self) -> None:
        super().__init__("folder")
        self.files: dict[str, str] = {}
        leave_former(self, FORMER, self.claim, DONE, ())
        self.claimed: list[Quarantine] = []
        self.answer: FenceRow | BaseException = FenceRow(1, last=Mark("query", 4, "p"))

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def last(self, log: str) -> int | None:
        raise NotImplementedError(log)

    def create(self, name: str, text: str) -> None:
        self.files[name] = text

    def claim(self, former: Quarantine) -> FenceRow:
        self.claimed.append(former)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def leave(
        self, present: Quarantine | None = PRESENT, reached: Checkpoint = BEGUN, *rows: FenceRow
    ) -> list[Quarantine]:
        """Returns whose fences were raised."""
        self.claimed.clear()
        leave_former(self, present, self.claim, reached, rows or (WRITTEN,))
        return list(self.claimed)


@pytest.mark.parametrize("present", [PRESENT, None, Quarantine(table="beside")])
def test_a_former_quarantine_is_claimed_once(present: Quarantine | None) -> None:
    """Also where the task has none elsewhere; then the present one is noted, whatever its bounds are."""
    folder = Folder()
    assert folder.leave(FORMER) == []
    assert folder.leave(present) == [FORMER]
    assert folder.leave(present) == []


def test_a_batch_that_is_put_aside_there_and_not_written_is_refused() -> None:
    """Again and again, until it is done with that quarantine."""
    folder = Folder()
    folder.answer = IS_THERE
    for _ in range(2):
        with pytest.raises(
            QueryError, match=r"batch 5 were put aside at fenced_files \(path /former\)"
        ) as refused:
            folder.leave(None)
        assert refused.value.permanent
    assert folder.leave(FORMER) == []
    assert folder.leave(None, Checkpoint("place", "query", 5, "p", 5), IS_THERE) == [FORMER]


@pytest.mark.parametrize("last", [Mark("query", 4, "p"), Mark("another", 5, "p"), None])
def test_a_batch_of_which_nothing_was_put_aside_is_done(last: Mark | None) -> None:
    """What is there is of an earlier batch, of another checkpoint, or nothing."""
    folder = Folder()
    folder.answer = FenceRow(1, last=last)
    assert folder.leave(PRESENT, BEGUN, WRITTEN) == [FORMER]


def test_a_batch_that_an_older_owner_puts_aside_meanwhile_is_refused() -> None:
    """It had planned none when the checkpoint was read; the fences say what it came to since."""
    folder = Folder()
    folder.answer = IS_THERE
    with pytest.raises(QueryError, match="rows of batch 5 were put aside"):
        folder.leave(PRESENT, DONE, WRITTEN)


def test_a_batch_that_the_sink_has_is_over() -> None:
    """Though Spark has not noted it."""
    folder = Folder()
    folder.answer = IS_THERE
    assert folder.leave(None, BEGUN, IS_THERE) == [FORMER]


@pytest.mark.parametrize("answer", [SinkError("is away"), *RAISED], ids=kind_of)
def test_a_former_quarantine_that_does_not_answer_is_waited_for_where_a_batch_was_begun_only(
    answer: BaseException,
) -> None:
    """It may be what the task was given another for."""
    folder = Folder()
    folder.answer = answer
    with pytest.raises(QueryError, match="does not answer: whether rows of batch 5") as refused:
        folder.leave()
    assert not refused.value.permanent
    assert folder.leave(PRESENT, DONE) == [FORMER]
    assert folder.leave() == []


def test_a_newer_owner_there_is_one_of_the_task() -> None:
    """So this one is not to go on."""
    folder = Folder()
    folder.answer = FencedError("newer")
    with pytest.raises(FencedError):
        folder.leave(PRESENT, DONE)


def test_a_note_that_cannot_be_read_stops_nobody() -> None:
    """On local disks, whoever is killed over writing it may leave half of it."""
    folder = Folder()
    folder.files[NOTE_FILE] = '{"elsewhere": {'
    assert folder.leave(FORMER) == []
    assert folder.leave(None) == [FORMER]


def test_a_task_that_never_had_one_notes_nothing() -> None:
    """Most have none."""
    folder = Folder()
    folder.files.clear()
    assert folder.leave(None) == []
    assert folder.files == {}


def test_options_may_be_anything_a_definition_may_have() -> None:
    """They come back as they were."""
    folder = Folder()
    options: dict[str, Any] = {"path": "${env:PLACE}", "n": 3, "deep": {"a": [1, None]}}
    former = Quarantine(format="fenced_files", options=options)
    folder.leave(former)
    assert folder.leave(former) == []
    assert folder.leave(None) == [former]


def sql(url: str, table: str = "aside") -> Quarantine:
    return Quarantine(format="sql", options={"url": url, "table": table})


@pytest.mark.parametrize(
    ("quarantine", "place"),
    [
        (FORMER, "fenced_files (path /former)"),
        (Quarantine(format="delta", options={"path": "s3a://k:pw@b/x"}), "delta (path s3a://***@b/x)"),
        (Quarantine(format="iceberg", table="lake.db.aside"), "iceberg (table lake.db.aside)"),
        (Quarantine(format="plugged", options={"password": "pw"}), "plugged"),
        (sql("sqlite:////d/a.db?timeout=5"), "sql (sqlite:////d/a.db, table aside)"),
        (sql("postgresql://u:pw@h/d?password=pw"), "sql (postgresql://u:***@h/d, table aside)"),
        (
            sql("postgresql://${env:U}:${env:PW}@${env:H}:${env:P}/d"),
            "sql (postgresql://${env:U}:***@${env:H}:${env:P}/d, table aside)",
        ),
        (sql("${env:URL}"), "sql (${env:URL}, table aside)"),
        (sql("${env:URL}:pw@h"), "sql (a URL that is a secret, table aside)"),
    ],
)
def test_a_quarantine_is_told_by_its_place(quarantine: Quarantine, place: str) -> None:
    """So that a person knows which to bring back, and without passwords."""
    assert shown(quarantine) == place


@pytest.mark.parametrize(
    ("former", "present"),
    [
        (FORMER, Quarantine(format="fenced_files", options={"path": "/former/"})),
        (sql("sqlite:////d/a.db"), sql("sqlite:////d/a.db?timeout=5", "ASIDE")),
        (sql("postgresql://u:${env:PW}@h/d"), sql("postgresql://v@h:5432/d", "public.aside")),
        (Quarantine(format="iceberg", table="lake.db.t"), Quarantine(format="iceberg", table="lake.`db`.t")),
    ],
)
def test_the_same_place_written_otherwise_is_no_other(former: Quarantine, present: Quarantine) -> None:
    """Nothing is left there; the new way of writing it is noted."""
    folder = Folder()
    leave_former(folder, former, folder.claim, DONE, (WRITTEN,))
    folder.answer = IS_THERE
    assert folder.leave(present) == []
    assert folder.leave(former) == []


@pytest.mark.parametrize(
    ("former", "present"),
    [
        (FORMER, Quarantine(format="fenced_files", options={"path": "/former/in"})),
        (FORMER, Quarantine(format="delta", options={"path": "/former"})),
        (sql("sqlite:////d/a.db"), sql("sqlite:////d/a.db", "b")),
        (sql("postgresql://h/d"), sql("postgresql://h/d?options=-csearch_path%3Dx")),
        (sql("postgresql://h/d", "x.aside"), sql("postgresql://h/d", "aside")),
        (Quarantine(format="plugged", options={"a": 1}), Quarantine(format="plugged", options={"a": 2})),
    ],
)
def test_another_place_is_left(former: Quarantine, present: Quarantine) -> None:
    """Also one that is in it, and one that only may be it."""
    folder = Folder()
    leave_former(folder, None, folder.claim, DONE, (WRITTEN,))
    leave_former(folder, former, folder.claim, DONE, (WRITTEN,))
    assert folder.leave(present, DONE) == [former]
