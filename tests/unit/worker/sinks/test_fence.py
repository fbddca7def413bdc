from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.sinks.base import Owner
from worker.sinks.errors import FencedError, OutOfOrderError, SinkError
from worker.sinks.fence import FenceRow, Verdict, judge, refusal

OLD = FenceRow(token=7, checkpoint="c1", batch_id=40, rows=400)
NEW = FenceRow(token=7)


@pytest.mark.parametrize(
    ("stored", "token", "checkpoint", "batch_id", "verdict"),
    [
        (None, 7, "c1", 0, Verdict.UNCLAIMED),
        (NEW, 7, "c1", 0, Verdict.WRITE),
        (NEW, 7, "c1", 1, Verdict.GAP),
        (NEW, 6, "c1", 0, Verdict.FENCED),
        (OLD, 7, "c1", 41, Verdict.WRITE),
        (OLD, 8, "c1", 41, Verdict.WRITE),
        (OLD, 7, "c1", 40, Verdict.DUPLICATE),
        (OLD, 7, "c1", 39, Verdict.DUPLICATE),
        (OLD, 7, "c1", 42, Verdict.GAP),
        (OLD, 7, "c2", 0, Verdict.FOREIGN),
        (OLD, 7, "c2", 41, Verdict.FOREIGN),
        (OLD, 6, "c1", 41, Verdict.FENCED),
        (OLD, 6, "c1", 40, Verdict.FENCED),
        (OLD, 6, "c2", 0, Verdict.FENCED),
    ],
)
def test_the_rule_of_the_fence(
    stored: FenceRow | None, token: int, checkpoint: str, batch_id: int, verdict: Verdict
) -> None:
    """Every kind of batch meets the verdict of DESIGN.md §3; a stale token beats all else."""
    assert judge(stored, token, checkpoint, batch_id) is verdict


@given(
    st.builds(FenceRow, st.integers(0, 9), st.sampled_from("ab"), st.integers(0, 9)),
    st.integers(0, 9),
    st.sampled_from("ab"),
    st.integers(0, 12),
)
def test_only_the_next_batch_of_the_newest_owner_is_written(
    stored: FenceRow, token: int, checkpoint: str, batch_id: int
) -> None:
    """Whatever is stored, WRITE means: no older token, the same checkpoint, exactly the next batch."""
    written = judge(stored, token, checkpoint, batch_id) is Verdict.WRITE
    assert stored.batch_id is not None
    follows = checkpoint == stored.checkpoint and batch_id == stored.batch_id + 1
    assert written == (token >= stored.token and follows)


@pytest.mark.parametrize(
    ("stored", "kind", "said"),
    [
        (FenceRow(9, "c1", 40), FencedError, "its token 7 is older than 9"),
        (FenceRow(7, "c2", 40), OutOfOrderError, "up to batch 40 of checkpoint c2"),
        (FenceRow(7, "c1", 3), OutOfOrderError, "the last batch in the sink is 3"),
        (FenceRow(7), OutOfOrderError, "the last batch in the sink is none"),
        (None, SinkError, "the fence row of task t of group g is gone"),
    ],
)
def test_a_refusal_says_what_is_wrong(stored: FenceRow | None, kind: type[SinkError], said: str) -> None:
    """The text names the task and the figures a person needs, in one line."""
    verdict = judge(stored, 7, "c1", 5)
    error = refusal(verdict, Owner("g", "t", 7), stored, "c1", 5)
    assert type(error) is kind
    assert said in str(error)
    assert "task t of group g" in str(error)
    assert "\n" not in str(error)
