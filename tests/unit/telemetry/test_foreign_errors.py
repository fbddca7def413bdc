"""How the errors of others are told."""

from __future__ import annotations

import asyncio

import pytest

from telemetry.foreign_errors import (
    MOST_OF_A_LINE,
    MOST_SHOWN,
    first_line_of,
    let_interrupts_through,
    text_of,
)
from telemetry.secrets import (
    CANNOT_BE_SHOWN,
    HIDDEN,
    MOST_READ,
    SECRETS,
    KnownSecrets,
    beginning,
    scrub,
    scrub_fields,
)
from tests.fakes.foreign_errors import RAISED, UNNAMED, Ending, Unspeakable, Wordy, kind_of
from worker.threads import in_thread


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
def test_each_is_told_by_its_name(error: BaseException) -> None:
    """Whatever it does when it is asked for its words."""
    words = CANNOT_BE_SHOWN if isinstance(error, Unspeakable | Ending) else "|".join(map(str, error.args))
    words = "enough" if isinstance(error, Wordy) else words
    assert text_of(error) == words
    assert first_line_of(error) == f"{type(error).__name__}: {words}"


@pytest.mark.parametrize("number", range(len(UNNAMED)))
def test_a_class_that_says_otherwise_is_told_as_it_is(number: int) -> None:
    """Its name and its text are Python's own."""
    made = UNNAMED[number]("enough")
    assert first_line_of(made) == ["Anonymous: enough", "Liar: enough"][number]
    assert type(text_of(Wordy())) is str


def test_ctrl_c_ends_who_imports_in_the_main_thread_and_no_daemon() -> None:
    """There an event loop runs, and signals come otherwise; a thread gets none."""
    with pytest.raises(KeyboardInterrupt):
        let_interrupts_through(KeyboardInterrupt())
    let_interrupts_through(SystemExit())
    in_thread("test", lambda: let_interrupts_through(KeyboardInterrupt())).result(60)

    async def in_a_daemon() -> None:
        let_interrupts_through(KeyboardInterrupt())

    asyncio.run(in_a_daemon())


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


SECRET = "S3cr3tOfProd"


@pytest.mark.parametrize(
    "told", [f"postgresql://admin:{SECRET}@db/x ", f'password="{SECRET}" ', f"Bearer {SECRET} "]
)
def test_half_of_what_looks_like_a_secret_is_not_shown(told: str) -> None:
    """Wherever a text is cut, before it is looked at or for what is shown of it."""
    for cut in range(len(told)):
        huge = "x " * ((MOST_READ - cut) // 2) + told + "x" * MOST_READ
        line = "x " * ((MOST_OF_A_LINE - cut) // 2) + told + "x" * MOST_READ
        for shown_of in (scrub(beginning(huge)), scrub(line, MOST_OF_A_LINE), scrub_fields({"a": huge})["a"]):
            assert SECRET[:5] not in shown_of


def test_a_secret_that_is_longer_than_what_is_shown_is_not_shown() -> None:
    """A key in a file of JSON, say."""
    told = 'bad option private_secret="' + "MIIE" * MOST_OF_A_LINE + '" in x'
    assert first_line_of(ValueError(told)) == f"ValueError: bad option private_secret={HIDDEN}"


def test_of_a_huge_field_the_log_has_both_ends() -> None:
    """A trace says in the end what was raised; secrets are taken out of what is left."""
    huge, why = "://a" * MOST_READ, [ValueError("y" * 2 * MOST_READ), Unspeakable()]
    fields = scrub_fields({"exception": f"password=hunter22 {huge}\nFinalWord: none", "why": why})
    assert len(fields["exception"]) <= MOST_READ + 10
    assert fields["exception"].startswith(f"password={HIDDEN} ")
    assert fields["exception"].endswith("\nFinalWord: none")
    assert [len(each) for each in fields["why"]] == [MOST_READ // 2 + 5, len(CANNOT_BE_SHOWN)]
