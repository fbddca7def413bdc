"""What a run found, written down: as JSON, as Markdown with its plots, and as lines on a terminal."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from measuring import Curve, Line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFACE = """# Benchmarks

Written by `make bench`; [benchmarks/README.md](../benchmarks/README.md) tells what each line measures and
how. Lower is better in every line. "± x" is half the distance between the quartiles of the runs; a figure
without it was measured once. "times" is against what the line names, measured in the same run, in turn.
"""


@dataclass(slots=True)
class Report:
    """All lines and curves so far, by the benchmark that they are from."""

    machine: dict[str, str]
    lines: list[tuple[str, Line]] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)

    def add(self, benchmark: str, result: Line | Curve) -> None:
        """One more."""
        if isinstance(result, Curve):
            self.curves.append(result)
        else:
            self.lines.append((benchmark, result))

    @property
    def good(self) -> bool:
        """Whether every goal is met."""
        return all(line.good for _, line in self.lines)

    def write_json(self, path: Path) -> None:
        """For machines."""
        lines = [{"benchmark": benchmark, **line.as_dict()} for benchmark, line in self.lines]
        told = {"machine": self.machine, "lines": lines, "curves": [asdict(curve) for curve in self.curves]}
        path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")

    def write_docs(self, folder: Path) -> None:
        """`benchmarks.md` in `folder`, with a table, and a plot of each curve in `benchmarks/` beside it."""
        from plots import plot  # noqa: PLC0415 - whoever only wants figures needs no matplotlib

        plots = folder / "benchmarks"
        plots.mkdir(exist_ok=True)
        for curve in self.curves:
            plot(curve, plots / f"{slug(curve.what)}.svg")
        (folder / "benchmarks.md").write_text("\n".join(self._markdown()) + "\n")

    def _markdown(self) -> Iterator[str]:
        yield PREFACE
        yield from (f"- **{name}**: {value}" for name, value in self.machine.items())
        for benchmark in dict.fromkeys(benchmark for benchmark, _ in self.lines):
            yield f"\n## {benchmark}\n\n| what | goal | measured | unit | verdict |\n|---|---|---|---|---|"
            yield from (_row(line) for name, line in self.lines if name == benchmark)
        yield "\n## Plots\n"
        yield from (f"![{curve.what}](benchmarks/{slug(curve.what)}.svg)" for curve in self.curves)


def slug(text: str) -> str:
    """A file's name from what people read."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _row(line: Line) -> str:
    what = f"{line.what}<br>*{line.note}*" if line.note else line.what
    return f"| {what} | {line.wanted} | {line.found} | {line.unit} | {line.verdict} |"
