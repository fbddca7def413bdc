"""What lies between: messages that come late, twice, out of order or not at all, connections that break."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

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


class Network:
    """Carries a request there and its one answer back; the caller always hears something."""

    def __init__(self, world: World, cluster: Cluster, weather: Weather) -> None:
        self.world = world
        self.cluster = cluster
        self.weather = weather

    def delay(self) -> int:
        """How long a message takes; so one may overtake another."""
        return self.world.some(*self.weather.delay_ms)


class Route:
    """A client's way to the manager of a group; it asks the one it knows until told otherwise."""

    def __init__(self, network: Network, group: str) -> None:
        self.network = network
        self.group = group
        self.is_cut = False
        self._known: SimManager | None = None

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


class _Call:
    """One request on one connection."""

    def __init__(self, route: Route, request: Request, answer: Callable[[Any], None]) -> None:
        self.route = route
        self.network = route.network
        self.request = request
        self.answer = answer
        self.asked: Asked | None = None
        self.life = -1
        self.is_over = False

    def travel(self, manager: SimManager) -> None:
        world = self.network.world
        world.after(self.network.delay(), partial(self.arrive, manager))
        if world.happens(self.network.weather.cut):
            world.after(world.some(0, 2000), partial(self.cut, manager))

    def arrive(self, manager: SimManager) -> None:
        if not self.is_over:
            self.life = manager.life
            self.asked = Asked(self.route.group, self.request, self.network.world.now, self.answered)
            manager.receive(self.asked)

    def answered(self, outcome: Any) -> None:
        world = self.network.world
        lost = self.route.is_cut or world.happens(self.network.weather.lost)
        world.after(self.network.delay(), partial(self.finish, BROKEN if lost else outcome))

    def cut(self, manager: SimManager) -> None:
        """The connection breaks: the manager notices, and so does the caller."""
        if self.asked is not None and not self.is_over:
            manager.disconnect(self.asked, self.life)
        self.finish(BROKEN)

    def finish(self, outcome: Any) -> None:
        if not self.is_over:
            self.is_over = True
            self.route.heard(outcome)
            self.answer(outcome)
