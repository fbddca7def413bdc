"""Every order of two owners' steps: no batch is lost, none is there twice, no older owner after the claim."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.worker.sinks.iceberg.table_model import MAIN, Explorer, Model, at_once, driven
from worker.sinks.errors import SinkError
from worker.sinks.fence import Mark, Owner
from worker.sinks.iceberg.publishing import Publisher

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from tests.unit.worker.sinks.iceberg.table_model import Script

FOREIGN = "x"
OLD, NEW, THIRD = "a", "b", "c"


def publisher(token: int, resets: int = 0) -> Publisher:
    return Publisher(Owner("g", "t", token, resets), MAIN)


def begun(*, compares: bool = True, **tokens: tuple[int, int]) -> Model:
    """The old owner has claimed the table and written batch 0; the others have done nothing yet."""
    model = Model(compares=compares)
    old = model.publishers[OLD] = publisher(1)
    at_once(model, OLD, old.claim())
    at_once(model, OLD, old.put(Mark("c", 0, "p0"), 1), "0")
    for who, (token, resets) in tokens.items():
        model.publishers[who] = publisher(token, resets)
    return model


def owner(who: str, batches: Iterable[int], *, claims: bool = True, checkpoint: str = "c") -> Script:
    """Claims, and puts these batches into the table, from the last one on that it is told of."""

    def script(model: Model, outcome: list[Any]) -> Generator[Any, Any, None]:
        own = model.publishers[who]
        last = -1
        try:
            if claims:
                row = yield from driven(own.claim())
                last = -1 if row.last is None else row.last.batch_id
                outcome.append(("claimed", last))
            for number in (each for each in batches if each >= last):
                name = f"{number}" if checkpoint == "c" else f"{checkpoint}{number}"
                yield from driven(own.put(Mark(checkpoint, number, f"p{number}"), 1), name)
                outcome.append(("put", name))
        except SinkError as error:
            outcome.append((type(error).__name__, str(error)))

    return script


def janitor(*actions: str) -> Script:
    """Somebody who commits rows of his own, and has snapshots expire."""

    def script(model: Model, outcome: list[Any]) -> Generator[Any, Any, None]:
        del outcome
        for action in actions:
            yield partial(ACTIONS[action], model), None

    return script


ACTIONS = {
    "commit": lambda model, _: model.commit("z", None, FOREIGN),
    "expire": lambda model, _: model.expire(),
}


def require_sound(model: Model, outcomes: dict[str, Any], *, refusals: tuple[str, ...] = ()) -> None:
    """What has to hold in each state, whatever happens next, or if nothing does.

    An owner is refused for a newer one, or for what begins so or is said so in `refusals`.
    """
    batches = [each for each in model.content if each != FOREIGN]
    assert len(set(batches)) == len(batches), f"twice: {batches}"
    assert batches == sorted(batches), f"out of order: {batches}"
    marks = [model.commits[at].mark for at in model.ancestors(model.head)]
    tokens = [json.loads(mark)["token"] for mark in marks if mark is not None]
    assert tokens == sorted(tokens, reverse=True), f"an older owner was let in after a newer one: {tokens}"
    for who, outcome in outcomes.items():
        for what, said in outcome:
            if what == "put":
                assert said in batches, f"{who} was told of {said}, which is lost: {batches}"
            elif what != "claimed":
                allowed = any(each in f"{what}: {said}" for each in ("FencedError", *refusals))
                assert allowed, f"{who} failed: {what}: {said}"


def explored(
    start: Any, scripts: dict[str, Script], *, refusals: tuple[str, ...] = (), loses: str = ""
) -> Explorer:
    explorer = Explorer(start, scripts, partial(require_sound, refusals=refusals))
    explorer.loses_answers = frozenset(loses)
    explorer.run()
    return explorer


TWO = {OLD: owner(OLD, [1, 2], claims=False), NEW: owner(NEW, [1, 2])}
ONE = {OLD: owner(OLD, [1], claims=False), NEW: owner(NEW, [1])}
CLAIM = {OLD: owner(OLD, [1], claims=False), NEW: owner(NEW, [])}
BEHIND = ("OutOfOrderError",)
"""Of two processes under one token one may be told so that the other has gone on."""


def test_an_owner_and_the_next_one() -> None:
    """The former one goes on as if nothing had happened, for two batches."""
    done = explored(partial(begun, b=(2, 0)), TWO)
    assert all(end.startswith("('0', '1', '2')") for end in done.ends)
    assert done.states > 100, done.states


def test_two_processes_under_one_token() -> None:
    """As a query that was started again on a server where the process before still runs."""
    done = explored(partial(begun, b=(1, 0)), TWO, refusals=BEHIND)
    assert all(end.startswith("('0', '1', '2')") for end in done.ends)


def test_two_that_claim_at_once() -> None:
    """Whoever has the higher token writes last, whatever the owner before them does meanwhile."""
    scripts = {OLD: owner(OLD, [1, 2], claims=False), NEW: owner(NEW, []), THIRD: owner(THIRD, [1, 2])}
    done = explored(partial(begun, b=(2, 0), c=(3, 0)), scripts)
    assert all(end.startswith("('0', '1', '2')") for end in done.ends)


@pytest.mark.parametrize("who", [OLD, NEW, OLD + NEW])
def test_answers_that_are_lost(who: str) -> None:
    """Whoever is not told whether the commit came about looks, and is never wrong about it."""
    done = explored(partial(begun, b=(2, 0)), TWO, loses=who)
    assert all(end.startswith("('0', '1', '2')") for end in done.ends)


def test_a_reset_in_the_midst_of_a_batch() -> None:
    """Nothing of the checkpoint before comes after the first batch of the new one."""
    scripts = {OLD: owner(OLD, [1, 2], claims=False), NEW: owner(NEW, [0, 1], checkpoint="n")}
    done = explored(partial(begun, b=(2, 1)), scripts)
    assert all("'n0', 'n1')" in end for end in done.ends)


@pytest.mark.parametrize("actions", [("commit", "commit"), ("commit", "expire", "commit", "expire")])
def test_somebody_else_commits_and_has_snapshots_expire(actions: tuple[str, ...]) -> None:
    """All that no branch or tag is at, at any time: the last batch is known."""
    done = explored(partial(begun, b=(2, 0)), {**TWO, "z": janitor(*actions)}, loses=OLD)
    assert all([each for each in "012" if f"'{each}'" in end] == [*"012"] for end in done.ends)


def test_that_the_commit_compares_the_head_is_needed() -> None:
    """If it looked for the head by itself, batches would be there twice."""
    with pytest.raises(AssertionError, match=r"twice|let in|out of order"):
        explored(partial(begun, compares=False, b=(2, 0)), ONE)


def test_that_the_tag_is_kept_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the marks in the head's past have expired, nothing else tells."""
    keep = Model.expire

    def forget(model: Model) -> None:
        model.tag = None
        keep(model)

    monkeypatch.setattr(Model, "expire", forget)
    with pytest.raises(AssertionError):
        explored(partial(begun, b=(2, 0)), {NEW: owner(NEW, [1]), "z": janitor("commit", "expire")})
