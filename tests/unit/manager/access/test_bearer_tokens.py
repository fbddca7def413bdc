"""What a token is made of, and how it is known again."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from manager.access.tokens import AccessToken, id_of, is_same, mint, pattern_fault
from protocol.roles import Role

_numbers = itertools.count(1)


def _bytes(length: int) -> bytes:
    """Different ones each time."""
    return next(_numbers).to_bytes(length, "big")


def minted(role: Role = Role.VIEWER, groups: tuple[str, ...] = (), **more: Any) -> tuple[str, AccessToken]:
    """A new token."""
    return mint(_bytes, name="anna", role=role, groups=groups, created_at_ms=0, **more)


def test_a_token_is_known_by_its_digest_only() -> None:
    """What is stored does not have it, nor any part of its secret."""
    text, token = minted()
    assert id_of(text) == token.token_id
    assert is_same(token, text)
    assert text.rpartition("_")[2] not in repr(token)


def test_nothing_else_is_that_token() -> None:
    """Neither another one, nor itself with one character changed, nor its id with another secret."""
    text, token = minted()
    other, _ = minted()
    changed = text[:-2] + ("A" if text[-2] != "A" else "B") + text[-1]
    for each in (other, changed, text + "A", text[:-1], f"sparkherd_{token.token_id}_{'A' * 43}"):
        assert not is_same(token, each)


@pytest.mark.parametrize(
    "text",
    ["", "x", "sparkherd_", "sparkherd_0123456789ab_short", "Sparkherd_0123456789ab_" + "A" * 43, "ä" * 70],
)
def test_what_has_not_the_form_of_a_token(text: str) -> None:
    """It is not looked for."""
    assert id_of(text) is None


def test_tokens_end() -> None:
    """When they expire, to the millisecond, or are revoked."""
    _, token = minted(expires_at_ms=1000)
    assert token.is_live(999)
    assert not token.is_live(1000)
    _, endless = minted()
    assert endless.is_live(10**15)
    assert not msgspec.structs.replace(endless, revoked_at_ms=1).is_live(0)


def test_groups_by_name_and_by_beginning() -> None:
    """None are all; a `*` stands at the end only."""
    _, some = minted(groups=("flights", "test-*"))
    assert [some.covers(g) for g in ("flights", "test-1", "test-", "flights2", "atest-1")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    _, every = minted()
    assert every.covers("anything")
    assert [bool(pattern_fault(p)) for p in ("a", "a*", "*", "a*b", "", "a b", "..")] == [False] * 3 + [
        True
    ] * 4


@pytest.mark.parametrize(
    ("role", "may"),
    [
        (Role.WORKER, [True, False, False, False]),
        (Role.VIEWER, [False, True, False, False]),
        (Role.OPERATOR, [False, True, True, False]),
        (Role.ADMIN, [True, True, True, True]),
    ],
)
def test_roles(role: Role, may: list[bool]) -> None:
    """Each may do what those below it may; workers stand aside; admins may do all."""
    _, token = minted(role)
    assert [token.may(frozenset({needed})) for needed in Role] == may


def test_one_of_several_roles_is_enough() -> None:
    """A worker may ask where its coordinator is, as viewers may."""
    _, worker = minted(Role.WORKER)
    assert worker.may(frozenset({Role.VIEWER, Role.WORKER}))
