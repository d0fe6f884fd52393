"""Log-in within a notebook: the hub is asked for the token of the notebook's own user, and gives nobody else's."""

import urllib.parse
from pathlib import Path
from typing import ClassVar

from local_server import Answers, serving
from login_world import ADA, BOB, World, needs_dex, token

pytestmark = needs_dex


class _Hub(Answers):
    """Answers as a hub does that holds tokens of its users and gives each notebook that of its own."""

    held: ClassVar[dict[str, tuple[str, str]]] = {}  # path -> (the notebook's key, the user's token)

    def get(self) -> None:
        key, found = self.held.get(self.path, ("", ""))
        right = bool(key) and self.headers["Authorization"] == f"token {key}"
        body = {"name": self.path, "auth_state": {"id_token": found} if right else None}
        self.answer(200 if right else 403, body)


def test_in_a_notebook_the_hub_says_who_one_is_and_another_user_s_key_gets_nothing(
    world: World, tmp_path: Path
) -> None:
    of = {email: f"/hub/api/users/{urllib.parse.quote(email)}" for email in (ADA, BOB)}
    _Hub.held = {
        of[ADA]: ("ada-key", token(world, aud="trainyard-notebooks")),
        of[BOB]: ("bob-key", token(world, aud="trainyard-notebooks", email=BOB, groups=["speech-members"])),
    }
    host, port = world.address.removeprefix("https://").split(":")
    with serving(_Hub) as hub:
        notebook = {
            "JUPYTERHUB_API_URL": f"{hub}/hub/api", "JUPYTERHUB_USER": ADA,
            "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "TRAINYARD_CLUSTER_CA": str(world.ca),
        }  # fmt: skip
        ada = notebook | {"JUPYTERHUB_API_TOKEN": "ada-key"}
        file = tmp_path / "kubeconfig"
        done = world.trainyard("login", "--hub", "-n", "vision", "-o", str(file), **ada)
        assert done.returncode == 0 and f"logged in as {ADA}" in done.stdout, done.stderr
        assert "ada-key" not in file.read_text() and _Hub.held[of[ADA]][1] not in file.read_text()
        asked = world.kubectl(tmp_path, "auth", "can-i", "create", "pytorchjobs.kubeflow.org", **ada)
        assert asked.stdout == "yes\n", asked.stderr
        stolen = world.kubectl(tmp_path, "get", "pods", **notebook, JUPYTERHUB_API_TOKEN="bob-key")
        assert stolen.returncode == 1 and "the hub answered 403 Forbidden" in stolen.stderr
