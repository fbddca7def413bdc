"""Where a page of a group's alarms has ended."""

from __future__ import annotations

from typing import NamedTuple


class GroupPlace(NamedTuple):
    """What the last alarm of the page is ordered by (`manager.core.views.alarm_pages`).

    `at` is in milliseconds: since 1970, of what is pending on the monotonic clock.
    """

    state: int
    rank: int
    at: int
    rule: str
    subject: str
