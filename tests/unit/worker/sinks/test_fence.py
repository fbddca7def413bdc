from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.sinks.errors import FencedError, OutOfOrderError, SinkError
from worker.sinks.fence import FenceRow, Mark, Owner, Verdict, judge, raised, refusal

OLD = FenceRow(token=7, last=Mark("c1", 40, "p40"), rows=400)
NEW = FenceRow(token=7)
RESET = FenceRow(token=7, resets=1, last=Mark("c2", 3, "p3"))


@pytest.mark.parametrize(
    ("stored", "token", "mark", "verdict"),
    [
        (None, 7, Mark("c1", 0), Verdict.UNCLAIMED),
        (NEW, 7, Mark("c1", 0), Verdict.WRITE),
        (NEW, 7, Mark("c1", 1), Verdict.GAP),
        (NEW, 6, Mark("c1", 0), Verdict.FENCED),
        (OLD, 7, Mark("c1", 41, "p41"), Verdict.WRITE),
        (OLD, 8, Mark("c1", 41, "p41"), Verdict.WRITE),
        (OLD, 7, Mark("c1", 40, "p40"), Verdict.DUPLICATE),
        (OLD, 7, Mark("c1", 40, "q40"), Verdict.ROLLED_BACK),
        (OLD, 7, Mark("c1", 40), Verdict.DUPLICATE),
        (OLD, 7, Mark("c1", 39, "p39"), Verdict.ROLLED_BACK),
        (OLD, 7, Mark("c1", 42), Verdict.GAP),
        (OLD, 7, Mark("c2", 0), Verdict.FOREIGN),
        (OLD, 7, Mark("c2", 41), Verdict.FOREIGN),
        (OLD, 6, Mark("c1", 41), Verdict.FENCED),
        (OLD, 6, Mark("c1", 40), Verdict.FENCED),
        (OLD, 6, Mark("c2", 0), Verdict.FENCED),
        (RESET, 8, Mark("c2", 4), Verdict.FENCED),
    ],
)
def test_the_rule_of_the_fence(stored: FenceRow | None, token: int, mark: Mark, verdict: Verdict) -> None:
    """Every kind of batch meets the verdict of architecture §3; a stale token beats all else."""
    assert judge(stored, Owner("g", "t", token), mark) is verdict


ROWS = st.builds(
    FenceRow,
    st.integers(0, 9),
    st.integers(0, 2),
    st.none() | st.builds(Mark, st.sampled_from("ab"), st.integers(0, 9), st.sampled_from("pq")),
)
OWNERS = st.builds(Owner, st.just("g"), st.just("t"), st.integers(0, 9), st.integers(0, 2))
MARKS = st.builds(Mark, st.sampled_from("ab"), st.integers(0, 12), st.sampled_from("pq"))


@given(ROWS, OWNERS, MARKS)
def test_only_the_next_batch_of_the_newest_owner_is_written(
    stored: FenceRow, owner: Owner, mark: Mark
) -> None:
    """Whatever is stored, WRITE means: no older token, the same checkpoint, exactly the next batch."""
    written = judge(stored, owner, mark) is Verdict.WRITE
    last = stored.last or Mark(mark.checkpoint, -1)
    follows = mark.checkpoint == last.checkpoint and mark.batch_id == last.batch_id + 1
    assert written == (owner.token >= stored.token and owner.resets == stored.resets and follows)


@given(ROWS, OWNERS)
def test_a_fence_never_goes_down(stored: FenceRow, owner: Owner) -> None:
    """Neither token nor resets; only a reset makes it forget the last batch, nothing the rows."""
    try:
        row = raised(stored, owner)
    except FencedError:
        assert owner.token < stored.token or owner.resets < stored.resets
        return
    assert (row.token, row.resets, row.rows) == (owner.token, owner.resets, stored.rows)
    assert row.token >= stored.token
    assert row.last == (stored.last if owner.resets == stored.resets else None)


@pytest.mark.parametrize(
    ("stored", "kind", "said"),
    [
        (FenceRow(9, 0, Mark("c1", 40)), FencedError, "its token 7 is older than 9"),
        (FenceRow(9, 0, Mark("c1", 40)), FencedError, "`sparkherd db restored --above 9`"),
        (FenceRow(7, 5), FencedError, "knows of its reset 5, its manager does not"),
        (FenceRow(7, 0, Mark("c2", 40)), OutOfOrderError, "up to batch 40 of checkpoint c2"),
        (FenceRow(7, 0, Mark("c1", 3)), OutOfOrderError, "the last batch in the sink is 3"),
        (FenceRow(7, 0, Mark("c1", 9)), OutOfOrderError, "of an older copy of checkpoint c1"),
        (FenceRow(7), OutOfOrderError, "the last batch in the sink is none"),
        (None, SinkError, "the fence row of task t of group g is gone"),
    ],
)
def test_a_refusal_says_what_is_wrong(stored: FenceRow | None, kind: type[SinkError], said: str) -> None:
    """The text names the task and the figures a person needs, in one line."""
    owner, mark = Owner("g", "t", 7), Mark("c1", 5)
    error = refusal(judge(stored, owner, mark), owner, stored, mark)
    assert type(error) is kind
    assert said in str(error)
    assert "task t of group g" in str(error)
    assert "\n" not in str(error)
