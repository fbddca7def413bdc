"""Round after round of the chaos run."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from tests.acceptance.chaos.aimed import AimedBlow
from tests.acceptance.chaos.balance import Balance
from tests.acceptance.chaos.mending import Mending
from tests.acceptance.chaos.plan import IN_COMMIT, OF_REPLAYS, Into, Source, plan, replays, script
from tests.acceptance.chaos.replay_blow import ReplayBlow
from tests.acceptance.chaos.report import HEAD, Line, Report
from tests.acceptance.chaos.stage import Stage
from tests.acceptance.chaos.strikes import Blow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.acceptance.chaos.plan import Round, Script


def run(
    folder: Path,
    postgres: str,
    *,
    rounds: int,
    seed: int,
    source: Source = Source.FILES,
    into: Into = Into.SQL,
    drawn_from: Script | None = None,
    fenced: bool = True,
    bad_rows: bool = False,
    say: Callable[[str], None] = print,
) -> Report:
    """Play `rounds` drawn rounds and those of every plan; a fenced run ends where rows are not right.

    The strikes are those of the source and the sinks, unless `drawn_from` says otherwise.
    With `bad_rows` some are among the others, by the same seed, and are put aside; what is wrong with them is
    mended behind the last round, and they are played again.
    """
    drawn_from = drawn_from or script(source, into, fenced=fenced, bad_rows=bad_rows)
    seed_of_bad = seed if bad_rows else None
    report = Report(seed, fenced)
    with closing(Stage(folder, postgres, source, into, fenced=fenced, bad_rows=seed_of_bad)) as stage:
        stage.open()
        say(HEAD)
        mended = ""
        is_right = _play_all(stage, plan(seed, rounds, drawn_from), report, say)
        _look(stage, report)
        if bad_rows and is_right:
            report.before = report.places
            mending = Mending(stage)
            _replay_all(stage, replays(into, len(report.lines)), report, say, mending)
            _look(stage, report)
            mended = str(mending)
        report.faults = tuple(stage.faults_of_told())
        report.notes = tuple(filter(None, [*stage.summaries(), mended]))
    say(str(report))
    return report


def _play_all(
    stage: Stage,
    rounds: Iterable[Round],
    report: Report,
    say: Callable[[str], None],
    mending: Mending | None = None,
) -> bool:
    """Whether all rows are right after each; a fenced run ends where they are not."""
    for planned in rounds:
        line = _play(stage, planned, mending)
        report.lines.append(line)
        say(str(line))
        if stage.fenced and line.balance != Balance():
            return False
    return True


def _replay_all(
    stage: Stage, rounds: Iterable[Round], report: Report, say: Callable[[str], None], mending: Mending
) -> None:
    """Of some tasks while workers are struck, then of the others."""
    if not _play_all(stage, rounds, report, say, mending):
        return
    for flow in stage.flows:
        if not flow.mended:
            mending.mend(flow)
    mending.empty_mended()
    stage.await_calm("all that was put aside is played again")


def _look(stage: Stage, report: Report) -> None:
    """At each place, as it is now."""
    report.balance = stage.balance()
    report.rows = stage.due()


def _blow(stage: Stage, planned: Round, mending: Mending | None) -> Blow:
    if planned.moment in OF_REPLAYS:
        assert mending is not None
        return ReplayBlow(stage, planned, mending)
    return (AimedBlow if planned.moment in IN_COMMIT else Blow)(stage, planned)


def _play(stage: Stage, planned: Round, mending: Mending | None) -> Line:
    """One round, from calm to calm."""
    start, tokens, refused = time.monotonic(), stage.tokens(), stage.refusals()
    blow = _blow(stage, planned, mending)
    with blow.moment():
        make_good = blow.strike()
    stage.feed.add()
    make_good()
    if mending is not None:
        mending.empty_mended()
    stage.await_calm(f"round {planned.number} is over")
    refused_now = stage.refusals()
    return Line(
        planned=planned,
        victim=blow.victim,
        moved=sum(token != tokens[task] for task, token in stage.tokens().items()),
        by_fence=refused_now[0] - refused[0],
        by_lease=refused_now[1] - refused[1],
        rows=sum(stage.due().values()),
        balance=sum(stage.balance().values(), Balance()),
        seconds=time.monotonic() - start,
        commit=blow.commit or "",
    )
