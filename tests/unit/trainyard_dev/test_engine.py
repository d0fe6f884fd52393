"""The container engine: its choice, podman's configuration, and messages of programs' failures."""

import resource
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard.shell import CommandError, last_lines, run
from trainyard_dev import engine as engines

Program = Callable[[str, str], Path]
NAMED = '[ "$1" != -v ] || { echo "Docker version 27.0.3, build 7d4bcd8"; exit; }; '
DEAD = NAMED + 'echo "warning" >&2; echo "Cannot connect to the Docker daemon" >&2; exit 1'


@pytest.fixture
def only(program: Program, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Program:
    """Like `program`, on a machine without any engine."""
    found = engines.shutil.which
    here = program("true", "exit 0").parent
    monkeypatch.setattr(engines.shutil, "which", lambda name: found(name, path=str(here)))
    return program


def test_docker_comes_first(only: Program) -> None:
    only("docker", NAMED + "echo 27.0")
    only("podman", "echo 5.0")
    assert engines.find().name == "docker"
    assert engines.find("podman").name == "podman"


@pytest.mark.parametrize("docker", [DEAD, NAMED + "exit 0"])
def test_podman_steps_in_for_a_docker_that_does_not_answer(only: Program, docker: str) -> None:
    only("docker", docker)
    only("podman", "echo 5.0")
    assert engines.find().name == "podman"


def test_no_engine_at_all(only: Program) -> None:
    with pytest.raises(TrainyardError) as caught:
        engines.find()
    assert str(caught.value).startswith(
        "no container engine: docker is not installed; podman is not installed. start the"
    )
    assert "apt-get install -y --no-install-recommends podman runc" in str(caught.value)


def test_every_engine_is_dead(only: Program) -> None:
    only("docker", DEAD)
    only("podman", "echo 'runtime not found' >&2; exit 125")
    with pytest.raises(TrainyardError) as caught:
        engines.find()
    assert (
        "docker does not answer (Cannot connect to the Docker daemon); podman does not answer (runtime not found)"
        in str(caught.value)
    )


def test_the_engine_that_was_asked_for_and_no_other(only: Program) -> None:
    only("podman", "echo 5.0")
    with pytest.raises(TrainyardError, match=r"^no container engine: docker is not installed\. "):
        engines.find("docker")


def test_podman_gets_limits_that_this_process_may_set(only: Program, cache: Path) -> None:
    only("runc", "")
    env = engines.Engine("podman").env
    assert env["KIND_EXPERIMENTAL_PROVIDER"] == "podman"
    made = tomllib.loads(Path(env["CONTAINERS_CONF"]).read_text())
    assert made["engine"]["runtime"] == "runc"
    assert made["network"]["network_backend"] == "netavark"
    for limit in made["containers"]["default_ulimits"]:
        name, _, values = limit.partition("=")
        hard = resource.getrlimit({"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}[name])[1]
        soft_and_hard = [int(v) for v in values.split(":")]
        assert soft_and_hard[0] == soft_and_hard[1] > 0
        assert hard == resource.RLIM_INFINITY or soft_and_hard[1] <= hard
    assert list(cache.glob("containers.*")) == [cache / "containers.conf"]


def test_podman_without_runc_keeps_its_own_runtime(only: Program, cache: Path) -> None:
    made = tomllib.loads(Path(engines.Engine("podman").env["CONTAINERS_CONF"]).read_text())
    assert "runtime" not in made["engine"]


def test_docker_builds_with_buildkit(only: Program) -> None:
    """Debian's docker.io has the old builder as its default, which knows neither --secret nor RUN --mount."""
    only("docker", 'echo "$DOCKER_BUILDKIT $*"')
    assert engines.Engine("docker")("build", ".").stdout == "1 build .\n"


@pytest.mark.parametrize(
    ("version", "buildx", "works"),
    [("20.10.24+dfsg1", False, True), ("23.0.1", True, True), ("28.1.0", False, False), ("", False, True)],
)
def test_docker_without_buildx_is_refused_where_it_needs_it(
    only: Program, version: str, buildx: bool, works: bool
) -> None:
    only("docker", f'case "$1" in version) echo {version};; buildx) exit {0 if buildx else 1};; esac')
    if works:
        engines.check_builder(engines.Engine("docker"))
    else:
        with pytest.raises(TrainyardError, match=rf"^docker {version} cannot build images without buildx\. `apt-get"):
            engines.check_builder(engines.Engine("docker"))


def test_podman_needs_no_builder(only: Program) -> None:
    only("podman", "exit 1")
    engines.check_builder(engines.Engine("podman"))


def test_a_docker_that_is_podman_counts_as_podman(only: Program) -> None:
    """podman-docker's program answers `docker version` as Docker does; kind, too, looks at `docker -v`."""
    shim = '[ "$1" != -v ] || { echo "podman version 4.3.1"; exit; }; echo 4.3.1'
    only("docker", shim)
    only("podman", "echo 4.3.1")
    assert engines.find().name == "podman"
    with pytest.raises(TrainyardError, match="`docker` is another program, such as podman's"):
        engines.find("docker")


def test_calls_reach_the_engine_with_its_settings(only: Program, cache: Path) -> None:
    only("podman", 'echo "$CONTAINERS_CONF $*"; cat')
    engine = engines.Engine("podman")
    assert engine("ps", "-a").stdout == f"{cache}/containers.conf ps -a\n"
    assert engine.exec("node", ["cat"], input="text").stdout == f"{cache}/containers.conf exec -i node cat\ntext"


def test_containers_are_found_by_label(only: Program) -> None:
    only("podman", 'printf "b\\na\\n"')
    assert engines.Engine("podman").containers("x=y") == ["a", "b"]


# programs


def test_a_failing_program_is_named_with_its_last_lines(program: Program) -> None:
    program("tool", "seq 1 9 >&2; echo out; exit 3")
    with pytest.raises(CommandError) as caught:
        run(["tool", "do", "a b"], hint="try again")
    assert str(caught.value) == "`tool do 'a b'` failed with code 3: 6 | 7 | 8 | 9. try again."
    assert caught.value.returncode == 3
    assert "out\n" in caught.value.output


def test_long_command_lines_and_scripts_stay_out_of_the_sentence(program: Program) -> None:
    program("tool", "exit 1")
    with pytest.raises(CommandError) as caught:
        run(["tool", "-c", "line one\nline two", "x" * 101, "4", "5", "6", "7"])
    assert str(caught.value) == "`tool -c … … 4 5 …` failed with code 1: it printed nothing."


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(TrainyardError, match=r"^no-such-program is not installed\. run `trainyard doctor`\.$"):
        run(["no-such-program"])


def test_a_program_that_takes_too_long() -> None:
    with pytest.raises(CommandError, match=r"`sleep 10` did not finish within 0 s") as caught:
        run(["sleep", "10"], timeout=0.1)
    assert caught.value.returncode == 124


def test_a_failure_may_be_an_answer(program: Program) -> None:
    program("tool", "exit 7")
    assert run(["tool"], check=False).returncode == 7


def test_last_lines() -> None:
    assert last_lines(" a \n\n b\nc\n", 2) == "b | c"
    assert last_lines("\n") == "it printed nothing"
