"""One id for something unexpected, in the log and in whatever is answered or reported because of it."""

from __future__ import annotations

import uuid


def new_cause_id() -> str:
    """An id that nothing else has."""
    return uuid.uuid4().hex
