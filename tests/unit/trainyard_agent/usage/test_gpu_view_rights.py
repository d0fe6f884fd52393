"""The numbers of a team whose rights come a moment after its line in the contract."""

from typing import Any

import pytest

from trainyard_agent.api import ApiError
from trainyard_agent.say import PlatformError
from trainyard_agent.usage.gpu_view import View

CONTRACT: dict[str, Any] = {"nodePools": [], "teams": [{"name": "vision"}]}


class Api:
    """An empty API server, which refuses writes as long as configured."""

    namespace = "trainyard-system"

    def __init__(self, refuses: int) -> None:
        self.refuses, self.written = refuses, list[str]()

    def get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        return {"items": []}

    def merge(self, path: str, patch: dict[str, Any], manager: str) -> None:
        name = path.rpartition("/")[2]
        if name == "trainyard-gpus-vision" and self.refuses:
            self.refuses -= 1
            raise ApiError(403, "ConfigMap trainyard-gpus-vision is forbidden")
        self.written.append(name)


def test_the_first_refusal_is_waited_out_and_what_was_missing_comes_with_the_next_round() -> None:
    api = Api(1)
    view = View(api)  # type: ignore[arg-type]
    view.look(CONTRACT, 5)
    assert api.written == ["trainyard-gpus"]
    view.look(CONTRACT, 5)
    assert "trainyard-gpus-vision" in api.written


def test_a_second_refusal_is_said() -> None:
    view = View(Api(2))  # type: ignore[arg-type]
    view.look(CONTRACT, 5)
    with pytest.raises(PlatformError, match=r"not published: trainyard-gpus-vision .*forbidden"):
        view.look(CONTRACT, 5)
