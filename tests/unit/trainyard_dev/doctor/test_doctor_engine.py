"""The doctor on machines with one container engine or another, or with a part of it."""

import pytest
from doctor_box import DEAD, Box, find

from trainyard_dev.doctor import examine
from trainyard_dev.doctor.finding import Wanted, healthy


def test_dead_docker_socket_alone_is_missing() -> None:
    box = Box()
    box.programs = (box.programs - {"podman"}) | {"docker"}
    box.answers["docker version"] = DEAD
    finding = find(box, "docker")
    assert finding.state == "missing"
    assert "Is the docker daemon running" in finding.found
    assert finding.hint == "systemctl start docker"


def test_dead_docker_socket_beside_podman_does_no_harm() -> None:
    box = Box()
    box.programs.add("docker")
    box.answers["docker version"] = DEAD
    assert find(box, "docker").state == "not needed"
    assert "used" in find(box, "podman").found
    assert healthy(examine(box))
    assert find(box, "docker", Wanted(engine="docker")).state == "missing"


def test_docker_is_taken_first() -> None:
    box = Box()
    box.programs.add("docker")
    box.answers["docker version"] = (0, "28.1.0")
    assert find(box, "docker").found == "28.1.0, answers, used"
    assert find(box, "podman").found == "4.3.1, answers"
    box.programs.discard("runc")
    assert find(box, "runtime").state == "ok"


@pytest.mark.parametrize(
    ("paths", "mode", "state"),
    [
        ({"/sys/fs/cgroup/cgroup.controllers"}, "v2", "ok"),
        ({"/sys/fs/cgroup/unified"}, "hybrid", "missing"),
        (set(), "v1", "missing"),
    ],
)
def test_crun_alone_needs_cgroup_v2(paths: set[str], mode: str, state: str) -> None:
    box = Box()
    box.programs = (box.programs - {"runc"}) | {"crun"}
    box.paths |= paths
    assert find(box, "runtime").state == state
    assert mode in find(box, "runtime").found


@pytest.mark.parametrize("helper", ["netavark", "aardvark-dns"])
def test_podman_network_helpers(helper: str) -> None:
    box = Box()
    box.paths.discard(f"/usr/lib/podman/{helper}")
    assert find(box, helper).state == "missing"


def test_podman_under_dockers_name_is_not_docker() -> None:
    box = Box()
    box.programs.add("docker")
    box.answers |= {"docker -v": (0, "podman version 4.3.1"), "docker version": (0, "4.3.1")}
    assert find(box, "docker").state == "not needed"
    assert "another program under Docker's name" in find(box, "docker").found
    assert find(box, "podman").found == "4.3.1, answers, used"
    assert find(box, "docker", Wanted(engine="docker")).state == "missing"


@pytest.mark.parametrize(
    ("version", "buildx", "state"), [("28.1.0", 0, "ok"), ("28.1.0", 1, "missing"), ("20.10.24+dfsg1", 1, "not needed")]
)
def test_docker_builds_with_buildx(version: str, buildx: int, state: str) -> None:
    box = Box()
    box.programs.add("docker")
    box.answers |= {"docker version": (0, version), "docker buildx version": (buildx, "v0.23.0" if not buildx else "?")}
    assert find(box, "buildx").state == state
    assert healthy(examine(box)) == (state != "missing")
    assert ("docker-buildx-plugin" in find(box, "buildx").hint) == (state == "missing")
