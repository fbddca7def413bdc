"""What whoever asks a manager may be: a request needs one of these (docs/rest-api.md has who may do what)."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """A worker is a member of groups; the others are people and programs, each allowed more than the last.

    A viewer reads. Whatever an operator does can be taken back; what an admin does cannot.
    """

    WORKER = "worker"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
