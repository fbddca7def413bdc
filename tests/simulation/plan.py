"""What befalls a history: drawn from a seed, printable, and cut down piece by piece when it shows a fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from protocol.messages.membership import EngineEnd

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES = ((4, 0.80), (10, 0.17), (30, 0.03))
"""How many members a history has at the most, and how often."""

TIMEOUTS_MS = ((2000, 3000), (2000, 3000), (4000, 1500))
"""Sessions and rebalances, either the longer one."""

EVERY_MS = {
    "hire": 2500,
    "stop": 6000,
    "kill": 5000,
    "freeze": 6000,
    "isolate": 6000,
    "lie": 400,
    "steer": 900,
    "begin_anew": 4000,
    "crash": 6000,
    "pause": 9000,
    "hand_over": 9000,
    "outage": 12_000,
    "start_afresh": 15_000,
}
"""What happens during the storm, and how often on the average."""


TRANSFERS = 0.25
"""In which share of the histories tasks go from group to group."""
WITH_TRANSFERS_MS = {
    "transfer": 450,
    "cancel_transfer": 3000,
    "replace_task": 1500,
    "fail": 2000,
    "leave_running": 6000,
    "sweep": 700,
}
"""What happens in these besides, and how often on the average."""
LONGER_MS = 3000
"""So much longer is their storm: tasks are to run before they go."""
MEMBERS_FOR_TWO = 6
"""Members that a history of transfers has at least: two groups are to have workers."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something done to those who take part; `seed` settles all that is random about it."""

    at_ms: int
    what: str
    seed: int


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad the network and the storage are: probabilities a message, or a transaction."""

    lost: float = 0.0
    twice: float = 0.0
    cut: float = 0.0
    failed: float = 0.0
    late: float = 0.0
    delay_ms: tuple[int, int] = (1, 5)
    commit_ms: tuple[int, int] = (0, 5)


CALM = Weather()


@dataclass(frozen=True, slots=True)
class Plan:
    """One history: the same plan gives the same steps.

    `poison` says that one task of the first herd kills every worker that is given it, and how: EXITED is told
    by the worker as it leaves, KILLED by nobody. `former` is the share of workers that cannot settle a task,
    `lacking` that of workers whose Spark has no Kafka, if workers tell what theirs has; None if none does.
    `limited` is the share of workers that are given so many tasks at most. None is where a task kills: how
    many workers that costs, and how soon it is found, hangs on there being room for its suspects. `at_once`
    is how many running tasks a leader has move to a member at the same time, 0 for any number. `transfers`
    says whether tasks go from group to group; managers look for transfers only then.
    """

    seed: int
    managers: int
    herds: int
    readers: int
    members: int
    group_max_size: int | None
    initial_delay_ms: int
    session_ms: int
    rebalance_ms: int
    lost_task_delay_ms: int
    storm_ms: int
    poison: EngineEnd | None
    former: float
    lacking: float | None
    limited: float
    at_once: int
    transfers: bool
    weather: Weather
    actions: tuple[Action, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups, herds of workers first."""
        return tuple([f"herd-{n}" for n in range(self.herds)] + [f"readers-{n}" for n in range(self.readers)])


def draw(seed: int, transfers: float = TRANSFERS) -> Plan:
    """The plan of a seed.

    Args:
        seed: the same one gives the same plan.
        transfers: in which share of the histories tasks go from group to group; the others are the same
            whatever it is.
    """
    plan = _draw_plan(seed)
    chance = Random(f"transfers {seed}")
    return _with_transfers(plan, chance) if chance.random() < transfers else plan


def _with_transfers(plan: Plan, chance: Random) -> Plan:
    """The same with a second herd at least, somebody in it, and transfers."""
    members = max(plan.members, MEMBERS_FOR_TWO)
    hired = [Action(chance.randint(0, 1000), "hire", chance.getrandbits(32)) for _ in range(2)]
    storm_ms = plan.storm_ms + LONGER_MS
    actions = [*plan.actions, *hired, *_draw_often(chance, WITH_TRANSFERS_MS, storm_ms)]
    return replace(
        plan,
        herds=max(plan.herds, 2),
        members=members,
        storm_ms=storm_ms,
        transfers=True,
        actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
    )


def _draw_plan(seed: int) -> Plan:
    chance = Random(seed)
    members = chance.choices([n for n, _ in SIZES], [often for _, often in SIZES])[0]
    storm_ms = chance.randint(1500, 9000)
    poison = Random(f"poison {seed}").choice([None, None, None, EngineEnd.EXITED, EngineEnd.KILLED])
    session_ms, rebalance_ms = chance.choice(TIMEOUTS_MS)
    return Plan(
        seed=seed,
        managers=chance.randint(1, 3),
        herds=chance.choice([1, 1, 2]),
        readers=chance.choice([0, 1]),
        members=members,
        group_max_size=chance.choice([None, None, None, members // 2 + 1]),
        initial_delay_ms=chance.choice([0, 500, 1500]),
        session_ms=session_ms,
        rebalance_ms=rebalance_ms,
        lost_task_delay_ms=chance.choice([0, 0, 1200, 6000]),
        storm_ms=storm_ms,
        poison=poison,
        former=Random(f"former {seed}").choice([0, 0, 0.3]),
        lacking=Random(f"lacking {seed}").choice([None, 0.3, 0.6]),
        limited=Random(f"limited {seed}").choice([0, 0, 0.4, 1]) if poison is None else 0,
        at_once=Random(f"pace {seed}").choice([0, 0, 1, 2]),
        transfers=False,
        weather=_draw_weather(chance),
        actions=tuple(sorted(_draw_actions(chance, members, storm_ms), key=lambda action: action.at_ms)),
    )


def _draw_weather(chance: Random) -> Weather:
    return Weather(
        lost=chance.choice([0, 0.01, 0.05]),
        twice=chance.choice([0, 0.02, 0.05]),
        cut=chance.choice([0, 0.01, 0.05]),
        failed=chance.choice([0, 0.01, 0.1]),
        late=chance.choice([0, 0, 0.02, 0.2]),
        delay_ms=(0, chance.choice([5, 30, 150])),
        commit_ms=(0, chance.choice([0, 20, 200])),
    )


def _draw_actions(chance: Random, members: int, storm_ms: int) -> list[Action]:
    actions = [
        Action(chance.randint(0, 1000), "hire", chance.getrandbits(32)) for _ in range(members // 2 + 1)
    ]
    actions += [Action(chance.randint(0, 500), "add_task", chance.getrandbits(32)) for _ in range(8)]
    return actions + _draw_often(chance, EVERY_MS, storm_ms)


def _draw_often(chance: Random, every: Mapping[str, int], storm_ms: int) -> list[Action]:
    actions = []
    for what, every_ms in every.items():
        at = 0.0
        while (at := at + chance.expovariate(1 / every_ms)) < storm_ms:
            actions.append(Action(int(at), what, chance.getrandbits(32)))
    return actions
