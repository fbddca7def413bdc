"""`make mutants`: breaks the rules of the core one at a time and shows that tests and simulation notice."""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.mutation.mutants import LISTS, ROOT, Mutant, Sandbox, read_mutants
from tests.mutation.suites import SUITES, Judge

if TYPE_CHECKING:
    from tests.mutation.reach import Reach

_MARKS = {True: "caught", False: "-", None: "not asked"}


@click.command()
@click.argument("name", default=LISTS[0], type=click.Choice(LISTS))
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="How many to try at a time.")
@click.option("--all-suites", is_flag=True, help="Ask the other suites, too, when one has caught a mutant.")
def main(name: str, jobs: int, *, all_suites: bool) -> None:
    """Try each mutant of a list against the suites; exit 1 when one survives them all."""
    sys.exit(run(read_mutants(name), jobs, all_suites=all_suites))


def run(mutants: tuple[Mutant, ...], jobs: int, *, all_suites: bool = False) -> int:
    """Judge them, print the table; returns the exit code."""
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        first = Sandbox.of(ROOT, Path(folder, "0"))
        reach: dict[str, Reach] = {}
        for name, places in SUITES.items():
            verdict = first.run_whole(first.files(places))
            if not verdict.passed:
                console.print(f"the {name} fail before anything is broken:\n{verdict.told}", markup=False)
                return 2
            reach[name] = first.reach()
        sandboxes = [first, *(first.twin(Path(folder, str(number))) for number in range(1, jobs))]
        caught = _try_all(console, sandboxes, mutants, Judge(reach), all_suites=all_suites)
    console.print(_table(mutants, caught))
    survivors = [mutant.rule for mutant in mutants if not any(caught[mutant].values())]
    console.print(f"{len(mutants) - len(survivors)} of {len(mutants)} caught", highlight=False)
    return 1 if survivors else 0


def _try_all(
    console: Console,
    sandboxes: list[Sandbox],
    mutants: tuple[Mutant, ...],
    judging: Judge,
    *,
    all_suites: bool,
) -> dict[Mutant, dict[str, bool]]:
    """Each mutant in whichever sandbox is free; one has one of them at a time."""
    free: SimpleQueue[Sandbox] = SimpleQueue()
    for sandbox in sandboxes:
        free.put(sandbox)

    def judge(mutant: Mutant) -> dict[str, bool]:
        sandbox = free.get()
        try:
            with sandbox.broken(mutant):
                return _caught_by(judging, mutant, sandbox, all_suites=all_suites)
        finally:
            free.put(sandbox)

    with Progress(console=console) as progress, ThreadPoolExecutor(len(sandboxes)) as pool:
        judged = progress.track(pool.map(judge, mutants), total=len(mutants), description="mutants")
        return dict(zip(mutants, judged, strict=True))


def _caught_by(judging: Judge, mutant: Mutant, sandbox: Sandbox, *, all_suites: bool) -> dict[str, bool]:
    """By suite; without `all_suites` only up to the first that catches it."""
    caught: dict[str, bool] = {}
    for name in SUITES:
        if all_suites or not any(caught.values()):
            caught[name] = judging.catches(name, mutant, sandbox)
    return caught


def _table(mutants: tuple[Mutant, ...], caught: dict[Mutant, dict[str, bool]]) -> Table:
    table = Table("rule", "broken in", *SUITES)
    for mutant in mutants:
        marks = (_MARKS[caught[mutant].get(name)] for name in SUITES)
        table.add_row(mutant.rule, mutant.file, *marks)
    return table


if __name__ == "__main__":
    main()
