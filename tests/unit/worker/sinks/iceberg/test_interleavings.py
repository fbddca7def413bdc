"""Every order of two owners' steps: no batch is lost, none is there twice, no older owner after the claim."""

from __future__ import annotations

import json
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.worker.sinks.iceberg.table_model import MAIN, Explorer, Model, RowsError, at_once, driven
from worker.sinks.errors import SinkError
from worker.sinks.fence import Mark, Owner
from worker.sinks.iceberg.marks import read_ref_name, refs_digest
from worker.sinks.iceberg.publishing import Publisher

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from tests.unit.worker.sinks.iceberg.table_model import Script

FOREIGN = "x"
OLD, NEW, THIRD = "a", "b", "c"


def publisher(who: str, token: int, resets: int = 0) -> Publisher:
    numbers = count()
    return Publisher(Owner("g", "t", token, resets), MAIN, lambda: f"{who}{next(numbers):x}")


def begun(*, compares_all: bool = True, hides_parents: bool = False, **tokens: tuple[int, int]) -> Model:
    """The old owner has claimed the table and written batch 0; the others have done nothing yet."""
    model = Model(compares_all=compares_all, hides_parents=hides_parents)
    old = model.publishers[OLD] = publisher(OLD, 1)
    at_once(model, OLD, old.claim())
    at_once(model, OLD, old.put(Mark("c", 0, "p0"), 1), "0")
    for who, (token, resets) in tokens.items():
        model.publishers[who] = publisher(who, token, resets)
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
        except (SinkError, RowsError) as error:
            outcome.append((type(error).__name__, str(error)))

    return script


def janitor(*actions: str) -> Script:
    """Somebody who commits rows of his own, has snapshots expire, and drops branches of the sink's."""

    def script(model: Model, outcome: list[Any]) -> Generator[Any, Any, None]:
        del outcome
        for action in actions:
            yield partial(ACTIONS[action], model), None

    return script


def _commit(model: Model, _: Any) -> None:
    model.point(MAIN, model.commit("z", model.refs[MAIN].snapshot, None, FOREIGN))


def _drop(model: Model, _: Any) -> None:
    digest = refs_digest(Owner("g", "t", 0), MAIN)
    for name, ref in list(model.refs.items()):
        if read_ref_name(name, digest) is not None and not ref.is_tag:
            del model.refs[name]
            model.version += 1


ACTIONS = {"commit": _commit, "drop": _drop, "expire": lambda model, _: model.expire()}


def require_sound(model: Model, outcomes: dict[str, Any], *, refusals: tuple[str, ...] = ()) -> None:
    """What has to hold in each state, whatever happens next, or if nothing does.

    An owner is refused for a newer one, or for what begins so or is said so in `refusals`.
    """
    batches = [each for each in model.content if each != FOREIGN]
    assert len(set(batches)) == len(batches), f"twice: {batches}"
    assert batches == sorted(batches), f"out of order: {batches}"
    marks = [model.commits[at].mark for at in model.ancestors(model.refs[MAIN].snapshot)]
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
BEHIND = ("OutOfOrderError",)
"""Of two processes under one token one may be told so that the other has gone on."""
UNSURE = ("have expired", "no such snapshot")
"""Nothing was done then; the second is of a head that was gone before a branch was made there."""


ONE = {OLD: owner(OLD, [1], claims=False), NEW: owner(NEW, [1])}
CLAIM = {OLD: owner(OLD, [1], claims=False), NEW: owner(NEW, [])}


@pytest.mark.parametrize("compares_all", [True, False])
def test_an_owner_and_the_next_one(*, compares_all: bool) -> None:
    """The former one goes on as if nothing had happened, for two batches."""
    done = explored(partial(begun, compares_all=compares_all, b=(2, 0)), TWO)
    assert all(end.startswith("('0', '1', '2')") for end in done.ends)
    assert done.states > 5000, done.states


def test_two_processes_under_one_token() -> None:
    """As a query that was started again on a server where the process before still runs."""
    done = explored(partial(begun, b=(1, 0)), ONE, refusals=BEHIND)
    assert all(end.startswith("('0', '1')") for end in done.ends)


def test_two_that_claim_at_once() -> None:
    """Whoever has the higher token writes last."""
    scripts = {NEW: owner(NEW, []), THIRD: owner(THIRD, [1])}
    done = explored(partial(begun, b=(2, 0), c=(3, 0)), scripts)
    assert all(end.startswith("('0', '1')") for end in done.ends)


@pytest.mark.parametrize("who", [OLD, NEW])
def test_answers_that_are_lost(who: str) -> None:
    """Whoever is not told whether the head has moved looks, and is never wrong about it."""
    done = explored(partial(begun, b=(2, 0)), ONE, loses=who)
    assert all(end.startswith("('0', '1')") for end in done.ends)


def test_a_reset_in_the_midst_of_a_batch() -> None:
    """Nothing of the checkpoint before comes after the first batch of the new one."""
    scripts = {OLD: owner(OLD, [1], claims=False), NEW: owner(NEW, [0, 1], checkpoint="n")}
    done = explored(partial(begun, b=(2, 1)), scripts)
    assert all("'n0', 'n1')" in end for end in done.ends)


@pytest.mark.parametrize("actions", [("drop",), ("commit",)])
def test_somebody_else_commits_or_drops_branches(actions: tuple[str, ...]) -> None:
    """A branch that was dropped is made anew by the next write to it, wherever the head is then."""
    explored(partial(begun, compares_all=False, b=(2, 0)), {**CLAIM, "z": janitor(*actions)})


@pytest.mark.parametrize("script", [{OLD: owner(OLD, [1, 2], claims=False)}, {NEW: owner(NEW, [1, 2])}])
def test_snapshots_expire(script: dict[str, Script]) -> None:
    """All that no branch or tag is at, at any time: the last batch is known, or said not to be."""
    scripts = {**script, "z": janitor("commit", "commit", "expire")}
    explored(partial(begun, compares_all=False, b=(2, 0)), scripts, refusals=UNSURE)


def test_that_what_was_written_is_looked_at_is_needed() -> None:
    """If the parent of what was written were not looked at, batches would be there twice."""
    with pytest.raises(AssertionError, match=r"twice|let in"):
        explored(partial(begun, hides_parents=True, b=(2, 0)), {**ONE, "z": janitor("drop")})
