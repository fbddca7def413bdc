"""One harm from beginning to end: the neighbours before it, with it, beside its remains, after a restart."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.acceptance.harms.catalogue import HARMS
from tests.acceptance.harms.stage import WORKERS, Stage, code_in_reach

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.acceptance.harms.fate import Fate
    from tests.acceptance.harms.keeper import Death
    from tests.acceptance.harms.pace import Pace
    from tests.soak.places import Fault


@dataclass
class Outcome:
    """What was seen; times are by a monotonic clock, in seconds.

    Args:
        harm: its name.
        isolate: whether each task had a JVM of its own.
        began: when the harmful task was created.
        fate: what the manager said of it.
        settled_s: how long after that it was in its last state, and all neighbours ran; None if that did not
            come about.
        is_quarantined: whether the manager has told so.
        watched: the states in which it was seen after that.
        after_restart: those in which it was seen from the restart of its worker on; None without a restart.
        paces: of the neighbours, by when that was.
        deaths: of workers.
        ended_jvms: how many have ended, by whose they were; those that were asked to, too.
        restarted: neighbours that were not run under one token from the harm to where it had settled.
        ends: the neighbours' states.
        faults: what is wrong in their tables.
        rows: how many each of these should have.
        log_mb: what workers have logged and printed.
    """

    harm: str
    isolate: bool
    began: float
    fate: Fate
    settled_s: float | None = None
    is_quarantined: bool = False
    watched: set[str] = field(default_factory=set)
    after_restart: set[str] | None = None
    paces: dict[str, Pace] = field(default_factory=dict)
    deaths: list[Death] = field(default_factory=list)
    ended_jvms: dict[str, int] = field(default_factory=dict)
    restarted: list[str] = field(default_factory=list)
    ends: dict[str, str] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    rows: int = 0
    log_mb: float = 0.0


class Trial:
    """The steps, each of which notes what it has seen."""

    def __init__(self, stage: Stage, name: str, *, isolate: bool, patience: float) -> None:
        self._stage = stage
        self._harm = HARMS[name]
        self._patience = patience
        self.outcome = Outcome(name, isolate, 0.0, stage.fate)

    def look_before(self, seconds: float) -> None:
        """The neighbours by themselves."""
        begin = time.monotonic()
        self._stage.look_on(seconds)
        self._note_pace("before", begin)

    def harm(self) -> None:
        """Create the harmful task, and wait until it has ended and the neighbours run."""
        stage, outcome = self._stage, self.outcome
        tokens = {task.task: task.token for task in stage.neighbours_told()}
        outcome.began = time.monotonic()
        jvms = stage.keeper.ended_jvms.copy()
        stage.harm()
        if self._harm.goes_on:
            stage.look_on(self._harm.within_s)
        else:
            stage.until(self._is_settled, self._harm.within_s * self._patience)
        if self._is_settled():
            outcome.settled_s = time.monotonic() - outcome.began
        self._note_pace("with it", outcome.began)
        outcome.restarted = [each.task for each in stage.neighbours_told() if each.token != tokens[each.task]]
        outcome.ended_jvms = dict(stage.keeper.ended_jvms - jvms)
        outcome.is_quarantined = stage.is_quarantined()

    def watch(self, seconds: float) -> None:
        """Whether it stays as it is."""
        begin = time.monotonic()
        self._stage.look_on(seconds)
        self._note_pace("watched", begin)
        self.outcome.watched = self._stage.fate.states_since(begin)

    def restart(self, seconds: float) -> None:
        """Restart its worker, and see whether it still stays."""
        begin = time.monotonic()
        self._stage.restart_owner()
        self._stage.until(self._stage.is_well, self._harm.within_s * self._patience)
        self._stage.look_on(seconds)
        self.outcome.after_restart = self._stage.fate.states_since(begin)

    def end(self) -> None:
        """Let all rows arrive, and count them."""
        stage, outcome = self._stage, self.outcome
        outcome.faults = stage.have_all_arrive(60 * self._patience)
        outcome.rows = stage.feed.rows
        outcome.ends = {task.task: task.state for task in stage.neighbours_told()}
        outcome.deaths = stage.keeper.deaths
        outcome.log_mb = stage.keeper.log_bytes() / 2**20

    def _is_settled(self) -> bool:
        return self._stage.fate.state == self._harm.last_state and self._stage.is_well()

    def _note_pace(self, when: str, begin: float) -> None:
        self.outcome.paces[when] = self._stage.paces.between(begin, time.monotonic())


def trial(
    folder: Path,
    postgres: str,
    name: str,
    *,
    isolate: bool,
    good: int = 4,
    workers: Sequence[str] = WORKERS,
    seconds: float = 30.0,
    patience: float = 1.0,
    restart: bool = True,
) -> Outcome:
    """All of it, in `folder`.

    Args:
        folder: where logs, databases and checkpoints are left.
        postgres: the URL of a database.
        name: of the harm.
        isolate: whether each task is to have a JVM of its own.
        good: how many neighbours there are.
        workers: their names.
        seconds: how long it is looked at before, after the harm has settled, and after the restart.
        patience: how many times as long as on a quiet machine things may take.
        restart: whether the worker of the harmful task is restarted.
    """
    with code_in_reach():
        stage = Stage(folder, postgres, HARMS[name], isolate=isolate, good=good, workers=workers)
        with closing(stage):
            stage.open()
            run = Trial(stage, name, isolate=isolate, patience=patience)
            run.look_before(seconds)
            run.harm()
            run.watch(seconds)
            if restart:
                run.restart(seconds)
            run.end()
            return run.outcome
