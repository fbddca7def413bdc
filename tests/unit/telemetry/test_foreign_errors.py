"""How the errors of others are told."""

from __future__ import annotations

import pytest

from telemetry.foreign_errors import CANNOT_BE_SHOWN, MOST_OF_A_LINE, MOST_SHOWN, first_line_of, text_of
from telemetry.secrets import HIDDEN, MOST_READ, SECRETS, KnownSecrets, scrub_fields
from tests.fakes.foreign_errors import RAISED, Ending, Unspeakable, kind_of


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
def test_each_is_told_by_its_name(error: BaseException) -> None:
    """Whatever it does when it is asked for its words."""
    words = CANNOT_BE_SHOWN if isinstance(error, Unspeakable | Ending) else "|".join(map(str, error.args))
    assert text_of(error) == words
    assert first_line_of(error) == f"{type(error).__name__}: {words}"


def test_a_line_is_one_short_line_of_what_can_be_written() -> None:
    """Half a character of an emoji is none."""
    assert first_line_of(ValueError("a\nb")) == "ValueError: a"
    assert first_line_of(ValueError("\ud800")) == "ValueError: ?"
    assert len(first_line_of(ValueError("x" * MOST_OF_A_LINE))) == MOST_SHOWN


def test_of_a_huge_text_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a known secret that its end would cut in two."""
    known = KnownSecrets()
    known.learn("correct-horse-battery")
    monkeypatch.setattr(SECRETS, "hide_cut", known.hide_cut)
    told = text_of(ValueError("x" * (MOST_READ - 7) + "correct-horse-battery"))
    assert told == "x" * (MOST_READ - 7)


def test_of_a_huge_field_the_log_has_the_beginning() -> None:
    """A trace that has megabytes in it, say; secrets are taken out of what is left."""
    huge, why = "://a" * MOST_READ, [ValueError("y" * 2 * MOST_READ)]
    fields = scrub_fields({"exception": f"password=hunter22 {huge}", "why": why})
    assert len(fields["exception"]) <= MOST_READ
    assert fields["exception"].startswith(f"password={HIDDEN} ")
    assert fields["why"] == ["y" * MOST_READ]
