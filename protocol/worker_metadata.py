"""What a sparkherd worker tells under each assignor it supports, and what it is given (protocol §5)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from protocol.connectors import Formats
from protocol.messages.base import MAX_INT, Revision, Token, faulty_place

PROTOCOL_TYPE = "sparkherd"

MAX_CAPACITY: Final = 1_000_000
Capacity = Annotated[float, msgspec.Meta(gt=0, le=MAX_CAPACITY)]
"""What a worker can bear, relative to the others of its group."""
MaxTasks = Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)]
"""How many tasks a worker is given at most."""


class WorkerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Join metadata of a worker.

    `owned` maps task names to the tokens they are held under. `claiming` are the tasks of claims that are not
    answered yet: they may have been granted all the same, and the answer be on its way. `max_tasks` is how
    many it is given at most, whatever the assignor; None for any number. `settles` says that
    the worker raises the fence in the sink of a task that it is granted STOPPED, before it reports that.
    `homes` says that it runs a transferred task under the names that its sink knows (protocol §5, Transfers).
    `spark` is the version of its Spark, and `formats` are those that it has, None if that is not known.
    `checks` says that it can look at definitions that are no task's (protocol §5, Checks), `quarantine` that
    it answers requests about the quarantined rows of its tasks (protocol §5, Quarantined rows), `offer_pages`
    that, as the leader, it asks for the tasks in pages (protocol §3.1), `paces` that it asks for the rest
    when it has started a part of what it is to have (protocol §5, Pace). `starting` are the tasks of its last
    assignment that it has not started yet and still waits for.
    """

    owned: dict[str, Token] = {}
    claiming: tuple[str, ...] = ()
    starting: tuple[str, ...] = ()
    capacity: Capacity = 1.0
    max_tasks: MaxTasks | None = None
    labels: dict[str, str] = {}
    url: str | None = None
    tasks_revision: Revision = 0
    settles: bool = False
    homes: bool = False
    spark: str | None = None
    formats: Formats | None = None
    checks: bool = False
    quarantine: bool = False
    offer_pages: bool = False
    paces: bool = False


class TaskAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks one worker is given; the leader's own also says why which tasks are nobody's.

    `more` is there if others are to move to it, once it has started these, and says how many.
    """

    tasks: tuple[str, ...] = ()
    left_out: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    more: Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)] | msgspec.UnsetType = msgspec.UNSET


read_metadata: Final = msgspec.json.Decoder(WorkerMetadata).decode
"""The metadata of a worker; what it does not know is passed over unread.

Raises:
    msgspec.ValidationError: it is none, or a part of it cannot be.
"""


_NO_OBJECT = "Expected `object`"


def metadata_fault(metadata: msgspec.Raw, path: str) -> str | None:
    """What is wrong with metadata that is to be found at `path`; None if nothing is.

    What is no JSON object is none of a worker's, and passed on as anybody's is.
    """
    try:
        read_metadata(metadata)
    except msgspec.ValidationError as error:
        place, text = faulty_place(error)
        return None if text.startswith(_NO_OBJECT) and not place else f"{path}{place}: {text}"
    return None
