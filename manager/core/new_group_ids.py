"""Which ids were handed out in groups that do not exist yet (protocol §4, Member ids)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from manager.core.group import Group

MOST_IN_NEW_GROUPS: Final = 10_000
"""In all of them together; a group takes 5 kB."""


class NewGroupIds:
    """The ids of groups that do not exist yet, in the order they were handed out.

    Those of a group that became such a one are the oldest. Were they the newest, whoever makes and unmakes a
    group would have all other ids forgotten, with as few requests.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], Group] = {}

    def add(self, group: Group, member_id: str) -> None:
        """An id of `group` was handed out."""
        if group.is_new:
            self._ids[group.name, member_id] = group

    def discard(self, group: Group, member_id: str) -> None:
        """It was used, given back or forgotten."""
        self._ids.pop((group.name, member_id), None)

    def forget(self, group: Group) -> None:
        """`group` is not in memory any more, or more than its ids."""
        for member_id in group.outstanding:
            self.discard(group, member_id)

    def look_at(self, group: Group) -> None:
        """`group` may have become more than its ids, or be no more than they by now."""
        first = next(iter(group.outstanding), None)
        if first is None or group.is_new == ((group.name, first) in self._ids):
            return
        if group.is_new:
            theirs = dict.fromkeys(((group.name, member_id) for member_id in group.outstanding), group)
            self._ids = theirs | self._ids
        else:
            self.forget(group)

    def surplus(self) -> tuple[Group, str] | None:
        """The oldest of too many, and its group; None if there is room for all."""
        if len(self._ids) <= MOST_IN_NEW_GROUPS:
            return None
        (_, member_id), group = next(iter(self._ids.items()))
        return group, member_id
