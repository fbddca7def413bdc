"""What all tests share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.xdist_scheduling import SharedServersScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

# Properties are looked for on busy machines too: slow is not wrong. And a change passes or fails by itself,
# not by what happens to be drawn: the examples are the same each time, unless `--hypothesis-seed` is given.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)
settings.register_profile("curious", settings.get_profile("patient"), derandomize=False)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Whoever names a seed is looking for new examples."""
    if config.getoption("--hypothesis-seed") is not None:
        settings.load_profile("curious")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedServersScheduling:
    """How `--numprocesses` shares tests out."""
    return SharedServersScheduling(config, log)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have a herd of their own; none of its settings reach the tests."""
    for name in [name for name in os.environ if name.startswith("SPARKHERD_")]:
        monkeypatch.delenv(name)
