"""`make mutants`: breaks the rules of the core one at a time and shows that tests and simulation notice."""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.mutation.mutants import LISTS, ROOT, Mutant, Sandbox, read_mutants

SUITES = {
    "tests": ("tests/unit/manager", "tests/unit/worker/membership", "tests/unit/protocol/test_fencing.py"),
    "simulation": ("tests/simulation/test_histories.py",),
}


@click.command()
@click.argument("name", default=LISTS[0], type=click.Choice(LISTS))
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="How many to try at a time.")
def main(name: str, jobs: int) -> None:
    """Try each mutant of a list against each suite; exit 1 when one survives them all."""
    sys.exit(_run(read_mutants(name), jobs))


def _run(mutants: tuple[Mutant, ...], jobs: int) -> int:
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        sandboxes = [Sandbox(ROOT, Path(folder, str(number))) for number in range(jobs)]
        for name, suite in SUITES.items():
            if not sandboxes[0].passes(suite):
                console.print(f"the {name} fail before anything is broken")
                return 2
        caught = _try_all(console, sandboxes, mutants)
    console.print(_table(mutants, caught))
    survivors = [mutant.rule for mutant in mutants if not any(caught[mutant].values())]
    console.print(f"{len(mutants) - len(survivors)} of {len(mutants)} caught", highlight=False)
    return 1 if survivors else 0


def _try_all(
    console: Console, sandboxes: list[Sandbox], mutants: tuple[Mutant, ...]
) -> dict[Mutant, dict[str, bool]]:
    """Each mutant in whichever sandbox is free; one has one of them at a time."""
    free: SimpleQueue[Sandbox] = SimpleQueue()
    for sandbox in sandboxes:
        free.put(sandbox)

    def judge(mutant: Mutant) -> dict[str, bool]:
        sandbox = free.get()
        try:
            with sandbox.broken(mutant):
                return {name: not sandbox.passes(suite) for name, suite in SUITES.items()}
        finally:
            free.put(sandbox)

    with Progress(console=console) as progress, ThreadPoolExecutor(len(sandboxes)) as pool:
        judged = progress.track(pool.map(judge, mutants), total=len(mutants), description="mutants")
        return dict(zip(mutants, judged, strict=True))


def _table(mutants: tuple[Mutant, ...], caught: dict[Mutant, dict[str, bool]]) -> Table:
    table = Table("rule", "broken in", *SUITES)
    for mutant in mutants:
        marks = ("caught" if caught[mutant][name] else "-" for name in SUITES)
        table.add_row(mutant.rule, mutant.file, *marks)
    return table


if __name__ == "__main__":
    main()
