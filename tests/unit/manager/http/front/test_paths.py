from __future__ import annotations

import pytest

from manager.http.front.paths import Paths


@pytest.fixture
def paths() -> Paths[str]:
    found: Paths[str] = Paths()
    for method, path in (
        ("GET", "/"),
        ("GET", "/v1/groups"),
        ("GET", "/v1/groups/{group}"),
        ("DELETE", "/v1/groups/{group}"),
        ("PUT", "/v1/groups/{group}/tasks/{task}"),
    ):
        found.add(method, path, f"{method} {path}")
    return found


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/v1/groups/g", {"group": "g"}),
        ("/v1/groups/", {"group": ""}),
        ("/v1/groups/a%2Fb", {"group": "a/b"}),
        ("/v1/groups/a%252Fb", {"group": "a%2Fb"}),
        ("/v1/groups/{group}", {"group": "{group}"}),
    ],
)
def test_a_name_is_what_stands_in_its_place(paths: Paths[str], path: str, names: dict[str, str]) -> None:
    """Decoded once; an empty group is a name that its endpoint refuses."""
    methods, found = paths.find(path)
    assert found == names
    assert sorted(methods) == ["DELETE", "GET", "HEAD"]


def test_get_answers_head_and_nothing_else_does(paths: Paths[str]) -> None:
    """As HTTP wants it (RFC 9110, 9.3.2)."""
    assert paths.find("/")[0] == {"GET": "GET /", "HEAD": "GET /"}
    assert set(paths.find("/v1/groups/g/tasks/t")[0]) == {"PUT"}


@pytest.mark.parametrize(
    "path", ["", "*", "/v1", "/v1/", "//", "/v1/groups/g/", "/v1/groups/g/tasks/", "/v1//groups", "v1/groups"]
)
def test_other_paths_lead_nowhere(paths: Paths[str], path: str) -> None:
    """Among them those that end too early, and an empty name."""
    assert paths.find(path)[0] == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("HEAD", "/v1/groups"), ("GET", "/v1/groups/{name}"), ("GET", "/v1/groups/all")],
)
def test_no_path_is_understood_in_two_ways(paths: Paths[str], method: str, path: str) -> None:
    """Which of two would count is no question of their order."""
    with pytest.raises(ValueError, match=path):
        paths.add(method, path, "again")
