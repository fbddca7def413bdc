"""What runs found, written down: as JSON, which keeps what a run leaves out, and as Markdown with plots."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from benchmarks.tools.figures import Curve, ResultLine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFACE = """# Benchmarks

Written by `make bench ARGS="--docs docs"`; `benchmarks/README.md` tells what each line measures and how.
Lower is better in every line. "± x" is half the distance between the quartiles of the runs; a figure without
it was measured once. "times" is against what the line names, measured in the same run, in turn; seconds
are of this machine, and of what else it had to do. Where a goal is missed, what was found to be the reason
stands beside it.
"""


@dataclass(slots=True)
class ReportSection:
    """What one benchmark found, when, and how many processes wanted the processors when it began.

    `pyspark` is its version; sections are measured one by one, and the others stay as they were.
    """

    day: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    load: float = field(default_factory=lambda: round(os.getloadavg()[0], 1))
    lines: list[ResultLine] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    pyspark: str = field(default_factory=lambda: version("pyspark"))

    def add(self, result: ResultLine | Curve) -> None:
        """Take in a line or a curve."""
        if isinstance(result, Curve):
            self.curves.append(result)
        else:
            self.lines.append(result)

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        lines = [{**asdict(line), "verdict": line.verdict} for line in self.lines]
        return {**asdict(self), "lines": lines}


@dataclass(slots=True)
class Report:
    """All sections, by the name of the benchmark."""

    machine: dict[str, str]
    sections: dict[str, ReportSection] = field(default_factory=dict)

    def write_json(self, path: Path) -> None:
        """For machines, and for the next run."""
        sections = {name: section.as_dict() for name, section in self.sections.items()}
        told = {"machine": self.machine, "benchmarks": sections}
        path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")

    def write_docs(self, folder: Path) -> None:
        """`benchmarks.md` in `folder`; in `benchmarks/` beside it the plots, and all of it as JSON."""
        from benchmarks.tools.plots import plot  # noqa: PLC0415 - whoever only wants figures needs no matplotlib

        place = folder / "benchmarks"
        place.mkdir(exist_ok=True)
        for section in self.sections.values():
            for curve in section.curves:
                plot(curve, place / f"{slug(curve.what)}.svg")
        (folder / "benchmarks.md").write_text("\n".join(self._markdown()) + "\n")
        self.write_json(place / RESULTS)

    def _markdown(self) -> Iterator[str]:
        yield PREFACE
        yield from (f"- **{name}**: {value}" for name, value in self.machine.items())
        for name, section in self.sections.items():
            beside = f"the machine's load before was {section.load}"
            yield f"\n## {name}\n\nMeasured on {section.day} with PySpark {section.pyspark}; {beside}.\n"
            yield "| what | goal | measured | unit | verdict |\n|---|---|---|---|---|"
            yield from map(_row, section.lines)
            yield from (f"\n![{each.what}](benchmarks/{slug(each.what)}.svg)" for each in section.curves)


RESULTS = "results.json"


def read_report(path: Path, machine: dict[str, str]) -> Report:
    """What former runs wrote to `path`, to be added to on this machine."""
    if not path.exists():
        return Report(machine)
    stored = json.loads(path.read_text())["benchmarks"]
    return Report(machine, {name: _section(each) for name, each in stored.items()})


def _section(stored: dict[str, Any]) -> ReportSection:
    lines = [
        ResultLine(**{name: line[name] for name in line if name != "verdict"}) for line in stored["lines"]
    ]
    curves = [Curve(**curve) for curve in stored["curves"]]
    return ReportSection(stored["day"], stored["load"], lines, curves, stored["pyspark"])


def slug(text: str) -> str:
    """A file's name from what people read."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _row(line: ResultLine) -> str:
    what = f"{line.what}<br>*{line.note}*" if line.note else line.what
    verdict = f"**{line.verdict}**: {line.why}" if line.why else line.verdict
    return f"| {_cell(what)} | {line.wanted} | {line.found} | {line.unit} | {_cell(verdict)} |"


def _cell(text: str) -> str:
    """What has a bar in it would end the cell."""
    return text.replace("|", "\\|")
