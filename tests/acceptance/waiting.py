"""Waiting for what the daemons do, without sleeping through their deaths."""

from __future__ import annotations

import os
import select
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.acceptance.processes import Daemon

LOOK_EVERY_S = 0.1

Found = TypeVar("Found")


def eventually(
    look: Callable[[], Found | None], what: str, *, alive: Iterable[Daemon], within_s: float = 400.0
) -> Found:
    """What `look` finds, once it finds something; between looks, wait on the processes themselves.

    Fails at once when one of the `alive` daemons dies, and after `within_s` seconds.
    """
    daemons = list(alive)
    deadline = time.monotonic() + within_s
    with ExitStack() as stack:
        poll = _poll(daemons, stack)
        while (found := look()) is None or found is False:
            if poll.poll(LOOK_EVERY_S * 1000):
                raise AssertionError(f"a daemon died before {what}:\n" + _words(daemons))
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {within_s:.0f} s: {what}\n" + _words(daemons))
    return found


def _poll(daemons: Iterable[Daemon], stack: ExitStack) -> select.poll:
    """Becomes readable when one of the daemons dies."""
    poll = select.poll()
    for daemon in daemons:
        descriptor = os.pidfd_open(daemon.process.pid)
        stack.callback(os.close, descriptor)
        poll.register(descriptor, select.POLLIN)
    return poll


def _words(daemons: Iterable[Daemon]) -> str:
    return "\n".join(f"--- {daemon.name}\n{daemon.log()[-3000:]}" for daemon in daemons)
