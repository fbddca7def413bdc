"""`make simulate N=…`: many histories, a progress bar, figures; what fails is printed as a short history."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict

import click
from rich.console import Console
from rich.progress import Progress

from tests.simulation.campaign import Outcome, explain, run_many
from tests.simulation.plan import TRANSFERS

SHOWN = 3


@click.command()
@click.option("-n", "--histories", default=1000, show_default=True, help="How many histories to run.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first one; the next has the next.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes to run them in.")
@click.option(
    "--transfers",
    type=click.FloatRange(0, 1),
    default=TRANSFERS,
    show_default=True,
    help="In which share of them tasks go from group to group; the others are the same whatever it is.",
)
def main(histories: int, seed: int, jobs: int, transfers: float) -> None:
    """Run many simulated histories of the group core; exit 1 when an invariant does not hold."""
    console = Console()
    began = time.monotonic()
    outcome = Outcome()
    with Progress(console=console) as progress:
        bar = progress.add_task(f"histories from seed {seed}", total=histories)
        for part in run_many(seed, histories, jobs, transfers):
            outcome.add(part)
            progress.update(bar, completed=outcome.figures.histories + len(outcome.faults))
    _report(console, outcome, time.monotonic() - began, transfers)
    for fault in sorted(outcome.faults, key=lambda fault: fault.plan.seed)[:SHOWN]:
        console.print(explain(fault), markup=False, highlight=False)
    sys.exit(1 if outcome.faults else 0)


def _report(console: Console, outcome: Outcome, seconds: float, transfers: float) -> None:
    for name, figure in asdict(outcome.figures).items():
        console.print(f"{name.replace('_', ' '):>16} {figure:>14,}", highlight=False)
    console.print(f"{'violations':>16} {len(outcome.faults):>14,}", highlight=False)
    console.print(f"{'seconds':>16} {seconds:>14,.0f}", highlight=False)
    if outcome.faults:
        seeds = ", ".join(str(fault.plan.seed) for fault in outcome.faults[:20])
        again = f"make simulate N=1 SEED=… TRANSFERS={transfers}"
        console.print(f"failing seeds: {seeds}; run one with: {again}", highlight=False)


if __name__ == "__main__":
    main()
