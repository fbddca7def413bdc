"""Join and sync of many members, first request to last answer, against as many requests to a bare server.

Both are asked by the same load (`tools/rebalance_load.py`), in turn. How busy that is itself, as a share of
the time that the bare server takes, says whether it is what a round waits for.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import TYPE_CHECKING

import uvloop

from benchmarks.tools.figures import Curve, ResultLine, growth, summary
from benchmarks.tools.http_dialect import HttpDialect
from benchmarks.tools.rebalance_load import Rounds
from benchmarks.tools.servers import ServerProcess, bare, manager, raise_limit_of_connections

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMBERS = (10, 100, 1_000)
GROUPS = 1_000
MEMBERS_OF_MANY = 5
RUNS = 9
WARM_UP = 2
GOAL = 2.0
LOAD_GOAL = 0.8
REASONS = {
    10: "two durable transactions one after the other, as the generation and the assignment are told only"
    " then: 1.0 ms each, 0.44 ms of it SQLite by itself, and as much again as the bare server's time for the"
    " rules of 20 requests"
}
"""By the number of members: the more there are, the less the transactions weigh."""
MANY_REASON = (
    "a profile (py-spy, seven rounds) gives 18 % of the manager's time to the rules of groups, 12 % to what"
    " is stored, 6 % to metrics; the bare server has none of these"
)


def measure() -> Iterator[ResultLine | Curve]:
    """One group at three sizes, then a thousand small ones at once."""
    raise_limit_of_connections()
    medians = {members: uvloop.run(_compare(1, members)) for members in MEMBERS}
    for members, (ours, theirs, busy) in medians.items():
        what = f"join + sync of {members:,} members"
        yield from _lines(what, ours, theirs, busy, REASONS.get(members, ""))
    seconds = {members: statistics.median(ours) for members, (ours, _, _) in medians.items()}
    yield growth("join + sync: growth of time with members", 1.1, MEMBERS, list(seconds.values()))
    yield Curve(
        "join + sync of one group",
        "members",
        "seconds",
        {
            "sparkherd": list(seconds.items()),
            "bare server": [
                (members, statistics.median(theirs)) for members, (_, theirs, _) in medians.items()
            ],
        },
    )
    many = uvloop.run(_compare(GROUPS, MEMBERS_OF_MANY))
    yield from _lines(f"join + sync of {GROUPS:,} groups of {MEMBERS_OF_MANY} at once", *many, MANY_REASON)


def quick() -> Iterator[ResultLine | Curve]:
    """One group of middling size."""
    raise_limit_of_connections()
    yield from _lines("join + sync of 100 members", *uvloop.run(_compare(1, 100)))


async def _compare(groups: int, members: int) -> tuple[list[float], list[float], float]:
    """Seconds of our rounds and of the bare server's, and the share that the load had in the latter."""
    with ExitStack() as stack:
        ours = await _rounds(stack.enter_context(manager()), groups, members)
        theirs = await _rounds(stack.enter_context(bare()), groups, members)
        pairs = [(await ours.one(), await theirs.one(), theirs.spent) for _ in range(WARM_UP + RUNS)]
    taken, compared, spent = zip(*pairs[WARM_UP:], strict=True)
    return list(taken), list(compared), statistics.median(spent)


async def _rounds(server: ServerProcess, groups: int, members: int) -> Rounds:
    rounds = Rounds(HttpDialect(server.url))
    await rounds.connect(server.address, groups, members)
    return rounds


def _lines(
    what: str, ours: list[float], theirs: list[float], busy: float, reason: str = ""
) -> Iterator[ResultLine]:
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    note = f"{statistics.median(ours) * 1000:.3g} ms, bare {statistics.median(theirs) * 1000:.3g} ms"
    yield ResultLine(f"{what} against a bare server", GOAL, *summary(ratios), "times", note, reason)
    yield ResultLine(f"{what}: the load's share of the bare server's time", LOAD_GOAL, busy, 0, "share")
