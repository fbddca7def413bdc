"""A group on a fake clock whose turns are watched as the runtime's are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.metrics.groups import GroupReader
from manager.metrics.turn_observer import TurnObserver
from tests.unit.manager.core.bench import Ask, Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.group import Group
    from manager.core.turn import Turn
    from protocol.messages.base import Request


class WatchedBench(Bench):
    """As `Bench`; `value` is what a scrape would show."""

    is_healthy = True
    parked = 0
    put_off = 0

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.watch = TurnObserver()
        self.watch.meter.instruments.read_at_scrape(GroupReader(self))
        self._asked: type[Request] | None = None
        self._restores = False

    def living(self) -> Iterator[Group]:
        return self.coordinator.living()

    def ask(self, request: Request) -> Ask:
        self._asked = type(request)
        try:
            asked = super().ask(request)
        finally:
            self._asked = None
        for answer in asked.answers:
            self.watch.meter.answered(type(request), answer)
        return asked

    def crash(self) -> None:
        self._restores = True
        super().crash()
        self._restores = False

    def _take(self, turn: Turn) -> None:
        if self._restores:
            self.watch.loaded(turn)
        else:
            self.watch.turned(self._asked, turn)
        super()._take(turn)

    def value(self, name: str, **labels: str) -> float | None:
        """One sample of a scrape, None if it is not there."""
        return self.watch.meter.instruments.registry.get_sample_value(name, labels)

    def series(self, name: str) -> dict[str, float]:
        """All samples of `name` that are not 0, by the value of their last label, groups left out."""
        samples = [s for m in self.watch.meter.instruments.registry.collect() for s in m.samples]
        return {list(s.labels.values())[-1]: s.value for s in samples if s.name == name and s.value}
