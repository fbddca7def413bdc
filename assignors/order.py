"""The order of members, for assignors that ask nothing else of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assignors.base import Member


def in_order(members: Iterable[Member]) -> list[Member]:
    """Static members first, by instance id, then the others by member id (Kafka's `MemberInfo`, KIP-345).

    So a static worker that was restarted has its old place, though its member id is a new one.
    """
    return sorted(
        members, key=lambda each: (each.instance_id is None, each.instance_id or "", each.member_id)
    )
