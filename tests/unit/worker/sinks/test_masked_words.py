from __future__ import annotations

import pytest

from worker.sinks.masked_words import masked

NAMES = {"flights", "delays", "delays.flights", "name"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('relation "flights" does not exist', 'relation "flights" does not exist'),
        ('relation "delays.flights" does not exist', 'relation "delays.flights" does not exist'),
        ('relation "sesame" does not exist', 'relation "…" does not exist'),
        ('relation "flights" sesame" does not exist', 'relation "…" does not exist'),
        ('relation "flights" sesame "flights" does not exist', 'relation "…" does not exist'),
        ('relation "se"sa\nme" does not exist', 'relation "…" does not exist'),
        ("Relation »sesame« existiert nicht", 'Relation "…" existiert nicht'),
        ("JSON path error near 'sesame'", 'JSON path error near "…"'),
        ("near 'sesame", 'near "…"'),
        (
            'column "name" of relation "flights" does not exist',
            'column "name" of relation "flights" does not exist',
        ),
        ("operator does not exist: sesame: x", "operator does not exist: …"),
        ("no such column: sesame", "no such column: …"),
        ("no such table: main.audit", "no such table: main.audit"),
        ("permission denied for table flights", "permission denied for table flights"),
        ("permission denied for sequence flights_id_seq", "permission denied for sequence flights_id_seq"),
        ("permission denied for table sesame", "permission denied for table …"),
        ("database is locked", "database is locked"),
        (
            "cannot execute INSERT in a read-only transaction",
            "cannot execute INSERT in a read-only transaction",
        ),
    ],
)
def test_what_may_be_a_value_is_masked(said: str, shown: str) -> None:
    """What stands in quotes, or behind a colon, unless it is a name of the task's own, and nothing else."""
    assert masked(said, NAMES, is_of_statement=True) == shown


def test_what_is_wrong_with_the_system_stays() -> None:
    """The reason is behind the colon there."""
    said = 'could not extend file "base/1/2": No space left on device'
    assert masked(said, NAMES, is_of_statement=False) == (
        'could not extend file "…": No space left on device'
    )
