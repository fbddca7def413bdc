"""The states of groups, tasks and targets; their spelling is part of the contract (protocol §4, §5)."""

from __future__ import annotations

from enum import Enum
from typing import Final

UNREADABLE: Final = "Unreadable"
"""What is shown instead of a group's state when its rows make no sense; a group is in no such state."""


class GroupState(Enum):
    """Where a group stands in its rebalance (protocol §4)."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    AWAITING_SYNC = "AwaitingSync"
    STABLE = "Stable"
    DEAD = "Dead"


class TaskState(Enum):
    """What a task is doing, as last reported or as follows from losing its owner (protocol §5)."""

    UNASSIGNED = "UNASSIGNED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    RESTARTING = "RESTARTING"
    FAILED = "FAILED"
    COMPLETED = "COMPLETED"


class Target(Enum):
    """What is wanted of a task."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class TransferStep(Enum):
    """How far a task has come on its way into another group (protocol §5, Transfers).

    The first five are of the group that it leaves, which decides; GIVEN is the point of no return. The last
    three are of the group that it goes to.
    """

    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    GIVEN = "GIVEN"
    DONE = "DONE"
    CANCELLED = "CANCELLED"
    ARRIVED = "ARRIVED"
    STARTED = "STARTED"
    REFUSED = "REFUSED"
