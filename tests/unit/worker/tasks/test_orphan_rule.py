"""The rule by which queries that nobody owns any more are ended."""

from __future__ import annotations

from worker.query_engine import NotedQuery
from worker.tasks.orphans import OrphanedQueries

PATIENCE_S = 60.0
OLD, NEW, OTHER = NotedQuery("t", 4, "a"), NotedQuery("t", 7, "b"), NotedQuery("u", 5, "c")


def look(
    orphans: OrphanedQueries, *noted: NotedQuery, stale: tuple[NotedQuery, ...], now: float
) -> list[NotedQuery]:
    """One look; what is due is ended."""
    asked = orphans.doubtful(noted)
    due = orphans.due([query for query in asked if query in stale], now)
    for query in due:
        orphans.ended(query)
    return list(due)


def test_what_is_stale_for_long_enough_is_ended() -> None:
    """Its owner may be alive, and has had the time that any owner has to let go of a task."""
    orphans = OrphanedQueries(PATIENCE_S)
    assert look(orphans, OLD, OTHER, stale=(OLD,), now=0) == []
    assert orphans.are_there
    assert look(orphans, OLD, OTHER, stale=(OLD,), now=PATIENCE_S - 1) == []
    assert look(orphans, OLD, OTHER, stale=(OLD,), now=PATIENCE_S) == [OLD]
    assert not orphans.are_there


def test_what_the_manager_does_not_call_stale_is_never_ended() -> None:
    """It is owned, or of another manager's group of the same name."""
    orphans = OrphanedQueries(PATIENCE_S)
    for minutes in range(10):
        assert look(orphans, OLD, OTHER, stale=(), now=60.0 * minutes) == []
    assert not orphans.are_there


def test_a_task_that_is_created_again_begins_anew() -> None:
    """Its new query is another one, whatever was found of the one before under the same name."""
    orphans = OrphanedQueries(PATIENCE_S)
    look(orphans, OLD, stale=(OLD,), now=0)
    assert look(orphans, NEW, stale=(), now=PATIENCE_S) == []
    assert look(orphans, NEW, stale=(NEW,), now=PATIENCE_S + 1) == []
    assert look(orphans, NEW, stale=(NEW,), now=2 * PATIENCE_S + 1) == [NEW]


def test_one_that_is_over_meanwhile_is_not_waited_for() -> None:
    """Its entry has been replaced, or the folder was removed."""
    orphans = OrphanedQueries(PATIENCE_S)
    look(orphans, OLD, stale=(OLD,), now=0)
    look(orphans, stale=(), now=1)
    assert not orphans.are_there


def test_what_has_been_ended_is_asked_about_no_more() -> None:
    """And is remembered only as long as it is noted down."""
    orphans = OrphanedQueries(0.0)
    assert look(orphans, OLD, OTHER, stale=(OLD,), now=0) == [OLD]
    assert orphans.doubtful((OLD, OTHER)) == (OTHER,)
    assert orphans.doubtful((OTHER,)) == (OTHER,)
    assert orphans._ended == set()
    assert orphans.doubtful((OLD,)) == (OLD,)


def test_what_could_not_be_ended_is_left() -> None:
    """And due again at the next look."""
    orphans = OrphanedQueries(0.0)
    assert orphans.due((OLD,), 0) == (OLD,)
    assert orphans.are_there
    assert orphans.due((OLD,), 1) == (OLD,)


def test_a_query_under_a_newer_token_than_is_noted_down_is_asked_about_by_that() -> None:
    """Whoever noted it down came late; it goes on as long as the newer token is not stale, and no longer."""
    orphans = OrphanedQueries(PATIENCE_S)
    newer, newest = NotedQuery("t", 6, "a"), NotedQuery("t", 9, "a")
    orphans.doubtful((OLD, OTHER))
    assert orphans.due((OLD,), 0) == ()
    assert orphans.due((OLD,), PATIENCE_S) == (OLD,)
    orphans.is_under(OLD, newer)
    assert not orphans.are_there
    assert orphans.doubtful((OLD, OTHER)) == (newer, OTHER)
    orphans.is_under(newer, newest)
    assert orphans.doubtful((OLD, OTHER)) == (newest, OTHER)
    assert look(orphans, OLD, stale=(newest,), now=200.0) == []
    assert look(orphans, OLD, stale=(newest,), now=200.0 + PATIENCE_S) == [newest]
    assert orphans.doubtful((OTHER,)) == (OTHER,)
    assert orphans.doubtful((OLD,)) == (OLD,)
