"""Rows as files in a folder for each flow."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

from tests.acceptance.chaos.feed import BATCHES_A_PORTION, Feed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.rows import Rows


class FileFeed(Feed):
    """Writes the files, each at once and whole."""

    def __init__(self, folder: Path, chosen: Iterable[Flow], written: Rows) -> None:
        super().__init__(chosen, written)
        self._folder = folder
        self._numbers = itertools.count()

    def open(self) -> None:
        """A folder a flow."""
        for flow in self.flows:
            self._place(flow).mkdir(parents=True)

    def close(self) -> None:
        """Nothing is going on."""

    def source(self, flow: Flow) -> dict[str, Any]:
        """One file a batch."""
        payload = self._written.payload(flow)
        options = {"path": str(self._place(flow)), "maxFilesPerTrigger": 1}
        return {**payload, "options": payload["options"] | options}

    def forget(self, flow: Flow) -> None:
        """The files before are removed."""
        old = sorted(self._place(flow).glob("*.txt"))[: -2 * BATCHES_A_PORTION]
        for path in old:
            path.unlink()
        flow.first += len(old) * flow.table.rows_a_batch

    def check(self) -> None:
        """What is written can be read."""

    def summary(self) -> str:
        """How many there are."""
        return f"files: {sum(1 for _ in self._folder.glob('*/*.txt'))}"

    def _put(self, flow: Flow, lines: Mapping[int, bytes]) -> None:
        number = next(self._numbers)
        path = self._place(flow) / f"{number:06}.txt"
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes(b"".join(line + b"\n" for line in lines.values()))
        os.utime(hidden, (number, number))
        hidden.rename(path)

    def _place(self, flow: Flow) -> Path:
        return self._folder / flow.name
