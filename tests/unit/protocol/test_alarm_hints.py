"""What to try when an alarm rings: every kind has it, and names commands that there are."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from cli.main import sparkherd
from protocol.alarm_hints import HINTS, RECEIVER_AWAY, TEST, Subject, hint_for
from protocol.alarm_kinds import TRAITS, About, AlarmKind

ABOUT = Subject("shop", "orders", "w1-5f1c", "ops")


def test_every_kind_has_a_hint() -> None:
    """Of the rules, and of receivers; none is left of a kind that is gone."""
    assert HINTS.keys() == {*map(str, AlarmKind), RECEIVER_AWAY, TEST}


def commands(kind: str) -> list[list[str]]:
    """What a hint has in back quotes, as a shell takes it."""
    return [shlex.split(each) for each in re.findall(r"`(.*?)`", hint_for(kind, ABOUT))]


@pytest.mark.parametrize("kind", [*HINTS, "of_another_version"])
def test_the_commands_of_a_hint_are_taken(kind: str) -> None:
    """Parsed by the command line itself, with every argument and option; nothing is run."""
    for name, *words in commands(kind):
        assert name == "sparkherd"
        command: click.Command = sparkherd
        context = click.Context(sparkherd)
        while isinstance(command, click.Group):
            found, word = command.get_command(context, words[0]), words.pop(0)
            assert found is not None, word
            command = found
        command.make_context(word, words)


@pytest.mark.parametrize("kind", AlarmKind)
def test_a_hint_names_what_rings(kind: AlarmKind) -> None:
    """Its group in each that has one, and the task in the first step that can."""
    told = hint_for(kind, ABOUT)
    assert ("shop" in told) is not TRAITS[kind].of_herd
    assert TRAITS[kind].about is not About.TASK or "orders" in told


def test_what_is_not_known_is_left_to_the_reader() -> None:
    """In capitals, as the help of the command line has it."""
    assert "`sparkherd tasks restart TASK --group GROUP`" in hint_for(AlarmKind.FAILED)
    assert hint_for(TEST) == "Nothing: this is a test."


def test_a_name_is_one_word_of_a_shell() -> None:
    """The id of a member is whatever its client says."""
    told = hint_for(AlarmKind.WORKER_HEAP, Subject("shop", worker="a b; rm -r *"))
    assert "`sparkherd workers drain 'a b; rm -r *' --group shop`" in told
