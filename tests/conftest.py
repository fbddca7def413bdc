"""What all tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Properties are looked for on busy machines too: slow is not wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have a herd of their own; none of its settings reach the tests."""
    for name in [name for name in os.environ if name.startswith("SPARKHERD_")]:
        monkeypatch.delenv(name)
