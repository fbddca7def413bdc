"""`make mutants`: breaks the rules of the core one at a time and shows that tests and simulation notice."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.mutation.mutants import LISTS, ROOT, Mutant, Sandbox, read_mutants

SUITES = {
    "tests": ("tests/unit/manager", "tests/unit/worker/membership"),
    "simulation": ("tests/simulation/test_histories.py",),
}


@click.command()
@click.argument("name", default=LISTS[0], type=click.Choice(LISTS))
def main(name: str) -> None:
    """Try each mutant of a list against each suite; exit 1 when one survives them all."""
    sys.exit(_run(read_mutants(name)))


def _run(mutants: tuple[Mutant, ...]) -> int:
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(ROOT, Path(folder))
        for name, suite in SUITES.items():
            if not sandbox.passes(suite):
                console.print(f"the {name} fail before anything is broken")
                return 2
        caught = _try_all(console, sandbox, mutants)
    console.print(_table(mutants, caught))
    survivors = [mutant.rule for mutant in mutants if not any(caught[mutant].values())]
    console.print(f"{len(mutants) - len(survivors)} of {len(mutants)} caught", highlight=False)
    return 1 if survivors else 0


def _try_all(
    console: Console, sandbox: Sandbox, mutants: tuple[Mutant, ...]
) -> dict[Mutant, dict[str, bool]]:
    caught: dict[Mutant, dict[str, bool]] = {}
    with Progress(console=console) as progress:
        for mutant in progress.track(mutants, description="mutants"):
            with sandbox.broken(mutant):
                caught[mutant] = {name: not sandbox.passes(suite) for name, suite in SUITES.items()}
    return caught


def _table(mutants: tuple[Mutant, ...], caught: dict[Mutant, dict[str, bool]]) -> Table:
    table = Table("rule", "broken in", *SUITES)
    for mutant in mutants:
        marks = ("caught" if caught[mutant][name] else "-" for name in SUITES)
        table.add_row(mutant.rule, mutant.file, *marks)
    return table


if __name__ == "__main__":
    main()
