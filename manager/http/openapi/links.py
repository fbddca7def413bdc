"""Where an answer leads: which operations take what it says, so that clients and tests can go on from it."""

from __future__ import annotations

from typing import Any, Final

_GROUP: Final = {"group": "$request.path.group"}
_MEMBER_ID: Final = "$response.body#/member_id"
_HERE: Final = {"member_id": _MEMBER_ID, "generation_id": "$response.body#/generation_id"}
_TASK: Final = {**_GROUP, "task": "$response.body#/task"}


def _link(operation: str, parameters: dict[str, str], body: dict[str, Any] | None = None) -> dict[str, Any]:
    link: dict[str, Any] = {"operationId": operation, "parameters": parameters}
    return link | ({"requestBody": body} if body is not None else {})


def _of_a_task() -> dict[str, Any]:
    operations = (
        *("getTask", "getTaskStatus", "getTaskHistory", "putTask", "deleteTask"),
        *("pauseTask", "resumeTask", "stopTask", "restartTask", "resetTask"),
    )
    return {operation: _link(operation, _TASK) for operation in operations}


LINKS: Final[dict[tuple[str, int], dict[str, Any]]] = {
    ("join", 428): {"join": _link("join", _GROUP, {"member_id": _MEMBER_ID})},
    ("join", 200): {
        **{name: _link(name, _GROUP, _HERE) for name in ("sync", "heartbeat", "claimTasks", "commitOffsets")},
        "releaseTasks": _link("releaseTasks", _GROUP, {"member_id": _MEMBER_ID}),
        "reportTasks": _link("reportTasks", _GROUP, {"member_id": _MEMBER_ID}),
        "leave": _link("leave", _GROUP, {"members": [{"member_id": _MEMBER_ID}]}),
        **{
            name: _link(name, {**_GROUP, "member_id": _MEMBER_ID})
            for name in ("drainMember", "undrainMember", "removeMember")
        },
    },
    ("createTask", 201): _of_a_task(),
    ("putTask", 201): _of_a_task(),
}
"""By operation and status."""
