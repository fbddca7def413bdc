"""What lies between: messages that come late, twice, out of order or not at all, connections that break."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from manager.core.member import Connection
from protocol.errors import ErrorCode, Failure
from tests.simulation.manager import Asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.base import Request
    from tests.simulation.cluster import Cluster
    from tests.simulation.manager import SimManager
    from tests.simulation.plan import Weather
    from tests.simulation.world import World

BROKEN = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the connection broke")
NOBODY = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no manager has the group")
ELSEWHERE = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}

DROPPED = 0.1
"""How often a client that keeps connections closes one after a request all the same."""


class Network:
    """Carries a request there and its one answer back; the caller always hears something."""

    def __init__(self, world: World, cluster: Cluster, weather: Weather) -> None:
        self.world = world
        self.cluster = cluster
        self.weather = weather
        self.drops = DROPPED

    def delay(self) -> int:
        """How long a message takes; so one may overtake another."""
        return self.world.some(*self.weather.delay_ms)


class Wire:
    """A connection to one life of a manager."""

    def __init__(self, manager: SimManager) -> None:
        self.manager = manager
        self.life = manager.life
        self.link = Connection("sim")

    def leads_to(self, manager: SimManager) -> bool:
        """Whether a request to `manager`, as it lives now, may go over it."""
        return self.manager is manager and self.life == manager.life

    def close(self) -> None:
        """The manager notices, if it is the one it was."""
        self.manager.closed(self.link, self.life)


class Route:
    """A client's way to the manager of a group; it asks the one it knows until told otherwise.

    One that keeps its connections uses them again, and at times closes one for which it has no use.
    """

    def __init__(self, network: Network, group: str, *, keeps: bool = False) -> None:
        self.network = network
        self.group = group
        self.is_cut = False
        self._keeps = keeps
        self._known: SimManager | None = None
        self._wires: dict[Wire, None] = {}
        self._idle: list[Wire] = []

    def ask(self, request: Request, answer: Callable[[Any], None]) -> None:
        """Send `request`; `answer` is called once, with the manager's answer or with broken news."""
        world, weather = self.network.world, self.network.weather
        call = _Call(self, request, answer)
        if self.is_cut or world.happens(weather.lost):
            world.after(world.some(50, 500), partial(call.finish, BROKEN))
            return
        manager = self._known or self.network.cluster.owner(self.group)
        if manager is None:
            world.after(self.network.delay(), partial(call.finish, NOBODY))
            return
        self._known = manager
        call.travel(manager)
        if world.happens(weather.twice):
            _Call(self, request, lambda _: None).travel(manager)

    def heard(self, outcome: Any) -> None:
        """An answer came: where it says that the group is elsewhere, look for it anew."""
        if isinstance(outcome, Failure) and outcome.code in ELSEWHERE:
            self._known = None

    def wire_to(self, manager: SimManager) -> Wire:
        """A connection that has nothing to do, or a new one."""
        self._idle = [wire for wire in self._idle if wire.leads_to(manager)]
        wire = self._idle.pop() if self._idle else Wire(manager)
        self._wires[wire] = None
        return wire

    def done_with(self, wire: Wire, *, is_broken: bool) -> None:
        """A request on it is over."""
        if self._keeps and not is_broken and not self.network.world.happens(self.network.drops):
            self._idle.append(wire)
        else:
            self._close(wire)

    def hang_up(self) -> None:
        """The client is gone, and with it every connection it has; they close one by one."""
        for wire in tuple(self._wires):
            self._close(wire)

    def _close(self, wire: Wire) -> None:
        self._wires.pop(wire, None)
        self.network.world.after(self.network.delay(), wire.close)


class _Call:
    """One request on one connection."""

    def __init__(self, route: Route, request: Request, answer: Callable[[Any], None]) -> None:
        self.route = route
        self.network = route.network
        self.request = request
        self.answer = answer
        self.wire: Wire | None = None
        self.is_over = False

    def travel(self, manager: SimManager) -> None:
        world = self.network.world
        world.after(self.network.delay(), partial(self.arrive, manager))
        if world.happens(self.network.weather.cut):
            world.after(world.some(0, 2000), partial(self.finish, BROKEN))

    def arrive(self, manager: SimManager) -> None:
        if not self.is_over:
            self.wire = self.route.wire_to(manager)
            now = self.network.world.now
            manager.receive(Asked(self.route.group, self.request, now, self.answered, self.wire.link))

    def answered(self, outcome: Any) -> None:
        world = self.network.world
        lost = self.route.is_cut or world.happens(self.network.weather.lost)
        world.after(self.network.delay(), partial(self.finish, BROKEN if lost else outcome))

    def finish(self, outcome: Any) -> None:
        """It was answered, or its connection broke: the manager notices, and so does the caller."""
        if not self.is_over:
            self.is_over = True
            if self.wire is not None:
                self.route.done_with(self.wire, is_broken=outcome is BROKEN)
            self.route.heard(outcome)
            self.answer(outcome)
