"""Who has which task before an assignment, and so what a move is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.base import Member


def holders(members: Sequence[Member], current: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The member that has each task: the one that says it runs it, else the one it was last assigned to.

    If two say so, one of them is a zombie, and the last assignment decides, then the order of `members`.
    A task of which no present member is the holder is missing: to place it is no move.
    """
    planned = {name: member.member_id for member in members for name in current.get(member.member_id, ())}
    owners: dict[str, str] = {}
    for member in members:
        for name in member.owned:
            if name not in owners or planned.get(name) == member.member_id:
                owners[name] = member.member_id
    return planned | owners
