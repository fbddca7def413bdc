"""Running a daemon to its end, whatever that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cli.exits import FAILED
from protocol.errors import StartupError
from telemetry.causes import new_cause_id

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)


def run_to_its_end(daemon: Callable[[], int]) -> int:
    """The exit code of `daemon`; a bug that ends it is a line of the log as all others are.

    Raises:
        StartupError: it could not start.
    """
    try:
        return daemon()
    except StartupError:
        raise
    except Exception:
        log.exception("a bug ends the process", cause_id=new_cause_id())
        return FAILED
