"""Round after round of the chaos run."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from tests.acceptance.chaos.aimed import AimedBlow
from tests.acceptance.chaos.balance import Balance
from tests.acceptance.chaos.plan import IN_COMMIT, Into, Source, plan, script
from tests.acceptance.chaos.report import HEAD, Line, Report
from tests.acceptance.chaos.stage import Stage
from tests.acceptance.chaos.strikes import Blow

if TYPE_CHECKING:
    from collections.abc import Callable
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
    With `bad_rows` some are among the others, by the same seed, and are put aside.
    """
    drawn_from = drawn_from or script(source, into, fenced=fenced, bad_rows=bad_rows)
    seed_of_bad = seed if bad_rows else None
    report = Report(seed, fenced)
    with closing(Stage(folder, postgres, source, into, fenced=fenced, bad_rows=seed_of_bad)) as stage:
        stage.open()
        say(HEAD)
        for planned in plan(seed, rounds, drawn_from):
            line = _play(stage, planned)
            report.lines.append(line)
            say(str(line))
            if fenced and line.balance != Balance():
                break
        # What was put aside is to be replayed here, once it can be, and looked for in the sinks.
        report.balance = stage.balance()
        report.rows = stage.due()
        report.faults = tuple(stage.faults_of_told())
        report.notes = tuple(filter(None, stage.summaries()))
    say(str(report))
    return report


def _play(stage: Stage, planned: Round) -> Line:
    """One round, from calm to calm."""
    start, tokens, refused = time.monotonic(), stage.tokens(), stage.refusals()
    blow = (AimedBlow if planned.moment in IN_COMMIT else Blow)(stage, planned)
    with blow.moment():
        make_good = blow.strike()
    stage.feed.add()
    make_good()
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
