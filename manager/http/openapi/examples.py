"""An example of each body, for the API's description; tests read every one as the manager would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from manager.http.openapi import herd_examples, task_examples, worker_examples
from manager.http.openapi.example_values import DONE, MANAGER, ME
from protocol.error_meanings import MEANINGS
from protocol.errors import ErrorCode, Failure
from protocol.messages.base import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from manager.http.openapi.example_values import Examples

EXAMPLES: Final[Examples] = {
    Response: DONE,
    **worker_examples.EXAMPLES,
    **task_examples.EXAMPLES,
    **herd_examples.EXAMPLES,
}

_FIELDS: Final[Mapping[ErrorCode, dict[str, Any]]] = {
    ErrorCode.MEMBER_ID_REQUIRED: {"member_id": ME},
    ErrorCode.NOT_COORDINATOR: {"coordinator": MANAGER},
    ErrorCode.PAYLOAD_TOO_LARGE: {"limit_bytes": 8_388_608},
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: {"retry_after_s": 1},
    ErrorCode.UNKNOWN_SERVER_ERROR: {"cause_id": "9f3c2a71"},
}


def example_of(code: ErrorCode, fields: Mapping[str, object]) -> dict[str, Any]:
    """A refusal with that code; `fields` are what every error of the endpoint carries."""
    return Failure(code, MEANINGS[code], {**fields, **_FIELDS.get(code, {})}).body()
