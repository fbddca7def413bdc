"""docs/settings.md and the schemas say the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from configuration.settings import settings_of
from manager.settings import ManagerSettings
from telemetry.logs import LogSettings
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    import msgspec

PAGE = (Path(__file__).parents[3] / "docs" / "settings.md").read_text()


@pytest.mark.parametrize("struct", [ManagerSettings, WorkerSettings, LogSettings])
def test_every_setting_is_documented(struct: type[msgspec.Struct]) -> None:
    """Each flag has its line, with its description and default."""
    for setting in settings_of(struct):
        rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{setting.flag}` |")]
        row = next((line for line in rows if setting.description.rstrip(".") in line), None)
        assert row is not None, setting.flag
        if setting.default and setting.shape == "value" and not setting.required:
            assert f"`{setting.default}`" in row
