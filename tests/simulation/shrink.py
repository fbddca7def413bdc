"""Cutting a plan down: what need not be there for the fault to show is taken out, piece by piece."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.plan import CALM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.plan import Action, Plan, Weather


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """The smallest plan found that still `fails`; `plan` itself does (delta debugging, Zeller 2002)."""
    found = True
    while found:
        smaller = next((candidate for candidate in _smaller(plan) if fails(candidate)), None)
        found = smaller is not None
        plan = smaller or plan
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less in them, the boldest cuts first."""
    size = len(plan.actions)
    while size:
        for start in range(0, len(plan.actions), size):
            yield replace(plan, actions=_without(plan.actions, start, size))
        size //= 2
    yield from (
        replace(plan, weather=weather) for weather in _milder(plan.weather) if weather != plan.weather
    )
    if plan.managers > 1:
        yield replace(plan, managers=plan.managers - 1)
    last = plan.actions[-1].at_ms if plan.actions else 0
    if last < plan.storm_ms:
        yield replace(plan, storm_ms=last)


def _milder(weather: Weather) -> tuple[Weather, ...]:
    return (
        CALM,
        replace(weather, lost=0.0),
        replace(weather, twice=0.0),
        replace(weather, cut=0.0),
        replace(weather, failed=0.0),
    )


def _without(actions: tuple[Action, ...], start: int, size: int) -> tuple[Action, ...]:
    return actions[:start] + actions[start + size :]
