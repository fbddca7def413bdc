from __future__ import annotations

from dataclasses import replace

import pytest

from protocol.messages.tasks import Reached
from worker.query_engine import QueryError
from worker.sinks.errors import OutOfOrderError
from worker.sinks.fence import FenceRow, Mark, Owner
from worker.spark.checkpoint_rules import Checkpoint, check_entry, fits, knows_of, read_query_id, whole

OWNER = Owner("g", "t", 7)
EMPTY = Checkpoint("/c")
AT_3 = Checkpoint("/c", "q", planned=3, plan="p3", committed=3)
IN_3 = replace(AT_3, committed=2)
ROW = FenceRow(7, 0, Mark("q", 3, "p3"))


@pytest.mark.parametrize("checkpoint", [EMPTY, Checkpoint("/c", "q"), Checkpoint("/c", "q", 0), AT_3, IN_3])
def test_a_whole_checkpoint(checkpoint: Checkpoint) -> None:
    """Never used, started, inside its first batch, between two, inside one."""
    whole(checkpoint)


@pytest.mark.parametrize(
    ("planned", "has"), [(None, "holds no batch"), (0, "ends with batch 0"), (2, "ends with batch 2")]
)
def test_a_checkpoint_that_does_not_know_how_far_the_task_has_come(planned: int | None, has: str) -> None:
    """Another one, or an older copy: both places are named, and another try would end the same way."""
    with pytest.raises(QueryError) as refused:
        knows_of("/c", planned, Reached(3, "/shared/g/t", "w1-4f"))
    assert str(refused.value).startswith(
        f"the checkpoint /c {has}, but the task has come to batch 3 in the checkpoint /shared/g/t at w1-4f; "
    )
    assert refused.value.permanent


@pytest.mark.parametrize("planned", [3, 4])
def test_a_checkpoint_that_knows_how_far_the_task_has_come(planned: int) -> None:
    """Wherever it is: a whole copy is as good, and the batch after may have been begun."""
    knows_of("/c", planned, Reached(3, "/shared/g/t", "w1-4f"))


@pytest.mark.parametrize(
    "checkpoint",
    [replace(AT_3, query_id=None), replace(AT_3, planned=None), replace(AT_3, planned=2)],
    ids=["no metadata", "no offsets", "an older offsets log"],
)
def test_a_part_is_missing(checkpoint: Checkpoint) -> None:
    """Spark would go on from each of them as if nothing were wrong."""
    with pytest.raises(QueryError, match="the checkpoint /c is damaged"):
        whole(checkpoint)


@pytest.mark.parametrize(
    ("checkpoint", "row"),
    [
        (EMPTY, FenceRow(7)),
        (Checkpoint("/c", "q", 0, "p0"), FenceRow(7)),
        (AT_3, ROW),
        (IN_3, ROW),
        (IN_3, FenceRow(7, 0, Mark("q", 2, "p2"))),
        (replace(AT_3, planned=4, plan="p4"), ROW),
        (AT_3, FenceRow(7, 0, Mark("q", 3))),
    ],
    ids=["new", "first batch", "at rest", "written, not committed", "not written", "next one", "no plan"],
)
def test_a_checkpoint_that_fits(checkpoint: Checkpoint, row: FenceRow) -> None:
    """Every state in which a worker can die leaves checkpoint and sink at most one batch apart."""
    fits(checkpoint, OWNER, row)


@pytest.mark.parametrize(
    ("checkpoint", "row", "said"),
    [
        (EMPTY, ROW, "runs on an empty checkpoint"),
        (replace(AT_3, query_id="r"), ROW, "runs on checkpoint r"),
        (replace(AT_3, planned=2, plan="p2", committed=2), ROW, "is at batch 3 of an older copy"),
        (Checkpoint("/c", "q"), ROW, "is at batch 0 of an older copy"),
        (replace(IN_3, plan="anew"), ROW, "is at batch 3 of an older copy"),
        (AT_3, FenceRow(7), "is at batch 4, but the last batch in the sink is none"),
        (AT_3, FenceRow(7, 0, Mark("q", 2, "p2")), "is at batch 4, but the last batch in the sink is 2"),
    ],
)
def test_a_checkpoint_that_does_not_fit(checkpoint: Checkpoint, row: FenceRow, said: str) -> None:
    """Lost, another's, older, planned anew; or the sink is: each is told with the figures."""
    with pytest.raises(OutOfOrderError, match=said):
        fits(checkpoint, OWNER, row)


@pytest.mark.parametrize(
    "text",
    ["", "v1", "v1\n", "v1\n{}", "v1\n{}\n", 'v1\n{}\n{"logOff', "{}\n{}\n{}", "v1\n{\n{}"],
)
def test_an_entry_that_was_cut_off(text: str) -> None:
    """At any point: no version, a line too few, half a line."""
    with pytest.raises(QueryError, match="its entry offsets/3 cannot be read"):
        check_entry("/c", "offsets/3", text, 2)


@pytest.mark.parametrize(
    "text", ['v1\n{}\n{"logOffset":0}', "v1\n{}\n-", "v2\n{}\n5\n[1]", "v1\n{}\nanything a source likes"]
)
def test_an_entry_of_any_source(text: str) -> None:
    """Offsets are JSON, numbers, a dash for none, or the source's own text."""
    check_entry("/c", "offsets/3", text, 2)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "5"])
def test_metadata_without_an_id(text: str) -> None:
    """It has one thing to say."""
    assert read_query_id("/c", '{"id":"q"}') == "q"
    with pytest.raises(QueryError, match="metadata cannot be read"):
        read_query_id("/c", text)
