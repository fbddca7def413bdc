from __future__ import annotations

import msgspec
import pytest

from configuration.settings import Setting, SettingsError, resolve, settings_of
from manager.settings import ManagerSettings

SETTINGS = settings_of(ManagerSettings)
EXAMPLES: dict[str, str | list[str]] = {
    "group_max_size": "3",
    "advertise": "http://host:8470",
    "manager_id": "m1",
    "alarm_receivers": "receivers.yaml",
    "webhook": ["https://a.example/b"],
    "webhook_secret": ["file:key"],
}
"""Of what is absent by default."""


def given(name: str, text: str | list[str]) -> ManagerSettings:
    """The manager's settings with one flag."""
    return resolve(ManagerSettings, flags={name: text}, environ={}, table={}, origin="")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.spelling)
def test_every_setting_can_be_given_and_tells_what_it_is_for(setting: Setting) -> None:
    """Also one that is absent by default: its bounds are such as its type can have."""
    example = EXAMPLES.get(setting.name, str(setting.default))
    value = getattr(given(setting.name, example), setting.name)
    assert (list(value) if isinstance(value, tuple) else str(value)) == example
    assert setting.description


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.spelling)
def test_nothing_but_text_may_be_below_zero(setting: Setting) -> None:
    """Each number has its bounds, and the error names the flag."""
    if setting.name in {"advertise", "manager_id"}:
        with pytest.raises(SettingsError, match=f"^{setting.flag}: malformed"):
            given(setting.name, "not one/")
        return
    if isinstance(setting.default, str | tuple):
        assert msgspec.convert(setting.default, setting.type) == setting.default
        return
    if setting.name.startswith("tls_") or setting.name == "alarm_receivers":
        with pytest.raises(SettingsError, match=f"^{setting.flag}: expected str of length >= 1"):
            given(setting.name, "")
        return
    wanted = "bool" if setting.shape == "switch" else "int >= "
    with pytest.raises(SettingsError, match=f"^{setting.flag}: expected {wanted}"):
        given(setting.name, "-1")
