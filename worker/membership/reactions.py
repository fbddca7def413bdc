"""Protocol §7 in code: what a worker does with each answer that is not the one it hoped for."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from protocol.errors import ErrorCode


class RequestKind(Enum):
    """The kinds of requests a member makes, but for its leave: after that it is gone in any case."""

    JOIN = "join"
    SYNC = "sync"
    HEARTBEAT = "heartbeat"
    CLAIM = "claim"
    RELEASE = "release"
    REPORT = "report"


class Reaction(Enum):
    """What is done about a code."""

    ADOPT_ID = auto()
    """Keep the member id that came with it and join again at once."""
    REJOIN = auto()
    """Join again at once, id and generation kept; already joining: nothing."""
    FORGET_GENERATION = auto()
    """Tasks are lost: stop, do not release; join again with the same id, owning none."""
    FORGET_MEMBERSHIP = auto()
    """Tasks are lost: stop, do not release; join as a new member."""
    YIELD = auto()
    """Another process carries this instance id: stop all and exit, never retry."""
    GIVE_UP = auto()
    """Fatal: say what to change, exit."""
    RETRY = auto()
    """Back off and ask the same again, id and generation kept."""
    STOP_QUERY = auto()
    """The task belongs to somebody else: stop its query at once."""
    LET_GO = auto()
    """The task is gone: stop its query in order."""
    CORRECT = auto()
    """Fall back to the last good assignment made valid, sync again."""
    START_OVER = auto()
    """Nothing is said of it in protocol §7: back off and join again, id kept."""


LOSSES = frozenset({Reaction.FORGET_GENERATION, Reaction.FORGET_MEMBERSHIP, Reaction.YIELD})
"""What costs a member its tasks, whatever it is doing at the moment."""


class Rule(NamedTuple):
    """One line of the table."""

    codes: frozenset[ErrorCode]
    to: frozenset[RequestKind]
    reaction: Reaction


ANY = frozenset(RequestKind)
FATAL = frozenset(
    {
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,  # the next try would say the same
    }
)
_REBALANCED = frozenset({RequestKind.HEARTBEAT, RequestKind.JOIN, RequestKind.SYNC, RequestKind.CLAIM})
# Where to ask next after the first two is found out by the client; a time-out or a broken connection is the
# second one. A retry of the *same* request is meant: a Stable leader that joined again instead would start a
# rebalance, and a manager that comes back is to be noticed by nobody (protocol §4, Failover). Whoever is
# put off for having asked too often would ask once more by joining again.
_TROUBLE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)

TABLE = (
    Rule(frozenset({ErrorCode.MEMBER_ID_REQUIRED}), frozenset({RequestKind.JOIN}), Reaction.ADOPT_ID),
    Rule(frozenset({ErrorCode.REBALANCE_IN_PROGRESS}), _REBALANCED, Reaction.REJOIN),
    Rule(frozenset({ErrorCode.ILLEGAL_GENERATION}), ANY, Reaction.FORGET_GENERATION),
    Rule(frozenset({ErrorCode.UNKNOWN_MEMBER_ID}), ANY, Reaction.FORGET_MEMBERSHIP),
    Rule(frozenset({ErrorCode.FENCED_INSTANCE_ID}), ANY, Reaction.YIELD),
    Rule(FATAL, frozenset({RequestKind.JOIN}), Reaction.GIVE_UP),
    Rule(_TROUBLE, ANY, Reaction.RETRY),
    Rule(frozenset({ErrorCode.STALE_TOKEN}), frozenset({RequestKind.REPORT}), Reaction.STOP_QUERY),
    Rule(frozenset({ErrorCode.UNKNOWN_TASK}), frozenset({RequestKind.REPORT}), Reaction.LET_GO),
    Rule(frozenset({ErrorCode.INVALID_ASSIGNMENT}), frozenset({RequestKind.SYNC}), Reaction.CORRECT),
)

_BY_CODE = {(code, to): row.reaction for row in TABLE for code in row.codes for to in row.to}


def reaction_to(code: ErrorCode, asked: RequestKind) -> Reaction:
    """What to do when a request of the kind `asked` was answered with `code`."""
    return _BY_CODE.get((code, asked), Reaction.START_OVER)
