"""A run's requirements become packages once, through a real MinIO, real pip and an index of wheels made here.

The three containers of a pod run one after the other as programs, with the variables that a pod has. Python of the
machine stands for the one of the job's image.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import wheelhouse
from servers import Server
from test_transfer import Cluster

from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds import packages
from trainyard.paths import ROOT
from trainyard.training import transfer
from trainyard.training.wheels import collect, send
from trainyard_agent import objects, requirements

IMAGE = str(Path(sys.base_prefix) / "bin/python3")  # a Python that is no virtual environment
PLACE = "runs/vision/packages/{}.tar.gz"
Said = tuple[int, str]


@dataclass
class Pod:
    """One pod's volume, and what runs there in turn."""

    volume: Path
    server: Server
    index: str = ""
    env: dict[str, str] = field(default_factory=dict)

    def run(self, text: str) -> Said:
        """Everything before the command: code and, of the last that ran, exit code and output."""
        (self.volume / "code").mkdir(parents=True)
        (self.volume / "code/requirements.txt").write_text(text)
        digest = requirements.read(lambda name: (self.volume / "code" / name).read_text(), "requirements.txt").digest()
        place, base = f"--packages={PLACE.format(digest)}", f"--base={self.volume}"
        code = f"--into={self.volume}/code"
        said = self._agent("fetch", code, base, place, "--requirements=requirements.txt", f"--wheels={packages.WHEELS}")
        if said[0]:
            return said
        tools = self.volume / ".packages"
        env = {"PYTHONUSERBASE": f"{self.volume}/packages", "TMPDIR": str(self.volume), **self.env}
        installed = self._run([IMAGE, f"{tools}/install_packages.py", f"{tools}/plan.json"], env)
        if installed[0]:
            return installed
        kept = self._agent("keep", code, base, place)
        return kept[0], installed[1] + kept[1]

    def command(self, *words: str) -> Said:
        """The run's own command."""
        return self._run([IMAGE, *words], {"PYTHONUSERBASE": f"{self.volume}/packages"})

    def program(self, *words: str, **env: str) -> Said:
        """A program of a package as the run's own command."""
        command = list(packages.started(words))
        return self._run(command, {"PYTHONUSERBASE": f"{self.volume}/packages", **env})

    def fetch_without_code(self, texts: dict[str, str], name: str) -> Said:
        """The first of the three, of a job whose code is in its image: the requirements come with the manifest."""
        self.volume.mkdir()
        words = [f"--into={self.volume}", f"--base={self.volume}", f"--packages={PLACE.format('0' * 64)}"]
        words += [f"--requirements={name}", f"--wheels={packages.WHEELS}"]
        return self._agent("fetch", *words, **{packages.FILES: json.dumps(texts)})

    def _agent(self, operation: str, *words: str, **more: str) -> Said:
        root = self.server.root
        env = {"PYTHONPATH": str(ROOT / "scripts"), "S3_ENDPOINT": root.endpoint, "S3_REGION": "us-east-1"}
        env |= {"S3_ACCESS_KEY": root.user, "S3_SECRET_KEY": root.password}
        env |= more | ({"INDEX_URL": self.index} if self.index else {})
        return self._run([sys.executable, "-m", "trainyard_agent", "run-files", operation, *words], env)

    def _run(self, command: list[str], env: dict[str, str]) -> Said:
        made = {"PATH": os.environ["PATH"], "HOME": str(self.volume), **env}
        done = subprocess.run(command, env=made, capture_output=True, text=True, cwd=self.volume)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def pod(server: Server, tmp_path: Path) -> Callable[..., Pod]:
    client, count = server.admin, iter(range(99))
    if not client.bucket_exists("runs"):
        client.make_bucket("runs")
    for entry in client.list_objects("runs", "vision/packages/", recursive=True):
        client.remove_object("runs", str(entry.object_name))
    for entry in client.list_objects("runs", "shared/wheels/", recursive=True):
        client.remove_object("runs", str(entry.object_name))

    def make(index: str = "", **env: str) -> Pod:
        return Pod(tmp_path / f"pod-{next(count)}", server, index, env)

    return make


def put(server: Server, wheel: Path) -> None:
    """What `trainyard wheels put` leaves in the store."""
    digest = wheelhouse.sha256(wheel)
    with open(wheel, "rb") as file:
        objects.put(server.admin, "runs", f"shared/wheels/{digest}/{wheel.name}", file, wheel.stat().st_size, digest)


def stored(server: Server) -> list[str]:
    return [str(one.object_name) for one in server.admin.list_objects("runs", "vision/packages/", recursive=True)]


def test_the_first_run_installs_and_the_second_asks_no_index(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5", needs=("tiny-lower>=1",))
    with wheelhouse.index(tmp_path / "site") as (url, asked):
        first, second = pod(url), pod(url)
        code, said = first.run("tiny-upper==1.5  # a remark\n")
        assert code == 0, said
        assert "installed tiny-lower==2.0, tiny-upper==1.5" in said and "MiB to s3://runs/vision/packages/" in said
        assert first.command("-c", "import tiny_upper, tiny_lower; print(tiny_lower.VERSION)") == (0, "2.0\n")
        assert any("tiny-upper" in path for path in asked)
        asked.clear()
        code, said = second.run("\ntiny-upper==1.5\n")
        assert (code, asked) == (0, []), said
        assert "packages: 2 that are in the store" in said
    assert second.program("tiny-upper", PATH=os.environ["PATH"]) == (0, "tiny-upper 1.5\n")
    assert len(stored(server)) == 1


def test_requirements_of_a_job_without_code_come_with_its_manifest(pod) -> None:  # type: ignore[no-untyped-def]
    one, other = pod(), pod()
    assert one.fetch_without_code({"needs.txt": "-r more.txt\nsix\n", "more.txt": "einops==0.8\n"}, "needs.txt")[0] == 0
    assert (one.volume / ".packages/requirements.txt").read_text() == "einops==0.8\nsix\n"
    plan = json.loads((one.volume / ".packages/plan.json").read_text())
    assert [line["where"] for line in plan["lines"]] == ["more.txt:1", "needs.txt:2"]
    code, said = other.fetch_without_code({"needs.txt": "-r more.txt\n"}, "needs.txt")
    assert code == 1 and "needs.txt:1: there is no file more.txt" in said, said


def test_other_requirements_are_other_packages(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for version in ("1.0", "2.0"):
        wheelhouse.wheel(tmp_path / "site", "tiny-lower", version)
    with wheelhouse.index(tmp_path / "site") as (url, _):
        for version in ("1.0", "2.0"):
            one = pod(url)
            assert one.run(f"tiny-lower=={version}\n")[0] == 0
            assert one.command("-c", "import tiny_lower; print(tiny_lower.VERSION)") == (0, f"{version}\n")
    assert len(stored(server)) == 2


def test_several_pods_that_are_first_at_once_have_the_same(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    with wheelhouse.index(tmp_path / "site") as (url, _), ThreadPoolExecutor(4) as pool:
        ranks = [pod(url) for _ in range(4)]
        ended = list(pool.map(lambda one: one.run("tiny-lower\n"), ranks))
    assert [code for code, _ in ended] == [0] * 4, ended
    assert {one.command("-c", "import tiny_lower; print(tiny_lower.VERSION)") for one in ranks} == {(0, "2.0\n")}
    assert len(stored(server)) == 1


def test_wheels_of_the_platform_need_no_index_and_keep_their_hashes(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wheel = wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    put(server, wheel)
    one = pod()
    code, said = one.run(f"tiny-lower==2.0 \\\n    --hash=sha256:{wheelhouse.sha256(wheel)}\n")
    assert code == 0, said
    assert one.command("-c", "import tiny_lower; print(tiny_lower.VERSION)") == (0, "2.0\n")
    assert "X-Amz" not in said, "a signed address is a key"
    code, said = pod().run(f"tiny-lower==2.0 --hash=sha256:{'0' * 64}\n")
    assert code == 1 and "requirements.txt:1: what the platform's wheels has is another file" in said, said


def test_what_was_tampered_with_in_the_store_is_not_installed(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    good = wheelhouse.wheel(tmp_path / "good", "tiny-lower", "2.0")
    bad = wheelhouse.wheel(tmp_path / "bad", "tiny-lower", "2.0", "VERSION = 'bad'\n")
    key = f"shared/wheels/{wheelhouse.sha256(good)}/{good.name}"
    server.admin.fput_object("runs", key, str(bad))
    code, said = pod().run("tiny-lower==2.0\n")
    assert code == 1 and "another file than the one with that hash" in said, said
    assert stored(server) == []


def test_a_line_that_cannot_be_had_is_named_with_what_there_is(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for version in ("1.0", "2.0"):
        wheelhouse.wheel(tmp_path / "site", "tiny-lower", version)
    with wheelhouse.index(tmp_path / "site") as (url, _):
        code, said = pod(url).run("# ours\ntiny-lower==3.0\n")
        last = said.strip().splitlines()[-1]
        assert code == 1
        assert last.startswith("InstallError: requirements.txt:2: tiny-lower==3.0 can't be had"), last
        assert f"the index {url} has 1.0, 2.0" in last and "trainyard wheels put" in last
        code, said = pod(url).run("tiny-lower\ntiny-absent>=1\n")
        assert code == 1 and "requirements.txt:2: tiny-absent>=1 can't be had" in said.splitlines()[-1]
    assert stored(server) == []


def test_what_a_line_needs_is_named_with_its_line(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5", needs=("tiny-lower>=7",))
    with wheelhouse.index(tmp_path / "site") as (url, _):
        code, said = pod(url).run("tiny-upper\n")
    last = said.strip().splitlines()[-1]
    assert code == 1 and "requirements.txt:1: tiny-lower>=7, which tiny-upper needs, can't be had" in last, said


def test_lines_that_contradict_each_other_are_named(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for version in ("1.0", "2.0"):
        wheelhouse.wheel(tmp_path / "site", "tiny-lower", version)
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5", needs=("tiny-lower>=2",))
    with wheelhouse.index(tmp_path / "site") as (url, _):
        code, said = pod(url).run("tiny-upper\ntiny-lower==1.0\n")
    last = said.strip().splitlines()[-1]
    assert code == 1 and "requirements.txt:1, requirements.txt:2: these can't go together" in last, said
    assert "you ask for tiny-lower==1.0; tiny-upper 1.5 depends on tiny-lower>=2" in last


def test_an_index_out_of_reach_is_said_with_the_value(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, said = pod("http://127.0.0.1:1/simple").run("tiny-lower\n")
    last = said.strip().splitlines()[-1]
    assert code == 1 and "can't be reached from pods" in last and "global.contract.packages.egress" in last, said


def test_an_index_with_keys_takes_those_of_the_secret(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    with wheelhouse.index(tmp_path / "site", "vision", "s3cret") as (url, _):
        code, said = pod(url, INDEX_USERNAME="vision", INDEX_PASSWORD="s3cret").run("tiny-lower\n")
        assert code == 0 and "s3cret" not in said, said
        code, said = pod(url).run("tiny-lower>=1\n")
        assert code == 1 and "global.contract.packages.secret" in said.splitlines()[-1], said


def test_packages_of_an_image_that_has_changed_are_installed_anew(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The same name of an image may stand for another content."""
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5", needs=("tiny-lower",))
    wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    image = tmp_path / "image"
    subprocess.run(
        [
            IMAGE,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            f"--target={image}",
            tmp_path / "site/tiny_lower-2.0-py3-none-any.whl",
        ],
        check=True,
    )
    with wheelhouse.index(tmp_path / "site") as (url, _):
        with_lower = pod(url, PYTHONPATH=str(image))
        code, said = with_lower.run("tiny-upper\n")
        assert code == 0 and "installed tiny-upper==1.5\n" in said, said
        without = pod(url)
        code, said = without.run("tiny-upper\n")
        assert code == 0 and "installed anew" in said, said
        assert without.command("-c", "import tiny_lower") == (0, "")
        assert "2 that are in the store" in pod(url).run("tiny-upper\n")[1]


def test_what_was_asked_for_goes_before_what_the_image_has(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The platform's own images have packages in PYTHONPATH, which Python otherwise looks at first."""
    wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    image = tmp_path / "image"
    old = wheelhouse.wheel(tmp_path / "old", "tiny-lower", "1.0")
    subprocess.run([IMAGE, "-m", "pip", "install", "-q", f"--target={image}", old], check=True)
    with wheelhouse.index(tmp_path / "site") as (url, _):
        one = pod(url, PYTHONPATH=str(image))
        assert one.run("tiny-lower>=2\n")[0] == 0
    env = {"PYTHONUSERBASE": f"{one.volume}/packages", "PYTHONPATH": str(image)}
    assert one._run([IMAGE, "-c", "import tiny_lower; print(tiny_lower.VERSION)"], env) == (0, "2.0\n")


@pytest.mark.parametrize(("has", "asks"), [("tensorflow-cpu", "tensorflow"), ("tensorflow", "tensorflow-cpu")])
def test_what_the_image_has_under_another_name_is_not_asked_for(pod, tmp_path: Path, has: str, asks: str) -> None:  # type: ignore[no-untyped-def]
    """Images for CPUs have `tensorflow-cpu`, those with CUDA `tensorflow`: lists name either."""
    image, site = tmp_path / "image", tmp_path / "site"
    there = wheelhouse.wheel(tmp_path / "old", has, "2.21.0", needs=("tiny-lower",))
    subprocess.run([IMAGE, "-m", "pip", "install", "-q", "--no-deps", f"--target={image}", there], check=True)
    code, said = pod(PYTHONPATH=str(image)).run(f"{asks}>=2.16\n")
    assert code == 0 and "installed nothing, the image has everything" in said, said
    wheelhouse.wheel(site, "tiny-upper", "1.0", needs=(asks,))
    wheelhouse.wheel(site, asks, "2.22.0")
    with wheelhouse.index(site) as (url, _):
        code, said = pod(url, PYTHONPATH=str(image)).run(f"{asks}[extra]\ntiny-upper\n")
        assert code == 0 and "installed tiny-upper==1.0" in said, said


def test_what_the_image_leaves_out_is_not_asked_for(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """An image may have torch without setuptools: whoever made it knows why."""
    image, site = tmp_path / "image", tmp_path / "site"
    top = wheelhouse.wheel(tmp_path / "old", "tiny-top", "1.0", needs=("tiny-left-out", "tiny-lower<2"))
    lower = wheelhouse.wheel(tmp_path / "old", "tiny-lower", "1.0")
    subprocess.run([IMAGE, "-m", "pip", "install", "-q", "--no-deps", f"--target={image}", top, lower], check=True)
    wheelhouse.wheel(site, "tiny-upper", "1.5", needs=("tiny-top",))
    wheelhouse.wheel(site, "tiny-lower", "2.0")
    with wheelhouse.index(site) as (url, asked):
        code, said = pod(url, PYTHONPATH=str(image)).run("tiny-top\ntiny-upper\n")
        assert code == 0 and "installed tiny-upper==1.5\n" in said, said
        assert not any("left-out" in path for path in asked)
        code, said = pod(url, PYTHONPATH=str(image)).run("tiny-top\ntiny-lower==2.0\n")
        assert code == 1 and "these can't go together" in said, "what the image does meet holds"


def test_a_python_that_looks_at_no_further_packages_says_so(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    subprocess.run([IMAGE, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    one = pod()
    one.volume.mkdir()
    tools = one.volume / "tools"
    tools.mkdir()
    (tools / "plan.json").write_text("{}")
    (tools / "i.py").write_text((ROOT / "scripts/trainyard_agent/install_packages.py").read_text())
    code, said = one._run(
        [str(tmp_path / "venv/bin/python"), f"{tools}/i.py", f"{tools}/plan.json"],
        {"PYTHONUSERBASE": f"{one.volume}/packages"},
    )
    assert code == 1 and "as in a virtual environment. Put them into the image" in said


def test_what_the_engineer_puts_is_what_runs_install(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    store, said = transfer.Store(Cluster(server), "transfer-x"), list[str]()  # type: ignore[arg-type]
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5", needs=("tiny-lower",))
    wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    found = collect.folder(tmp_path / "site", "3.13")
    assert send.put(store, found, said.append) == 2
    assert send.put(store, found, said.append) == 0, "what is there is not sent again"
    assert [line.partition(",")[0] for line in said] == [
        "sent tiny_lower-2.0-py3-none-any.whl",
        "sent tiny_upper-1.5-py3-none-any.whl",
    ]
    assert [(one.wheel.name, one.sha256) for one in send.listed(store)] == [(f.wheel.name, f.sha256) for f in found]
    assert pod().run("tiny-upper\n")[0] == 0
    other = wheelhouse.wheel(tmp_path / "other", "tiny-lower", "2.0", "VERSION = 'other'\n")
    wheelhouse.wheel(tmp_path / "other", "tiny-new", "1.0")
    with pytest.raises(UsageError, match="the store has another file of that name") as refused:
        send.put(store, collect.folder(tmp_path / "other", "3.13"), said.append)
    assert str(other) in str(refused.value) and len(send.listed(store)) == 2


def test_wheels_that_are_removed_are_found_no_more_and_can_be_sent_anew(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    store = transfer.Store(Cluster(server), "transfer-x")  # type: ignore[arg-type]
    for version in ("1.0", "2.0"):
        wheelhouse.wheel(tmp_path / "site", "tiny-lower", version)
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5")
    send.put(store, collect.folder(tmp_path / "site", "3.13"), print)
    assert pod().run("tiny-lower==2.0\n")[0] == 0
    send.remove(store, send.chosen(send.listed(store), ["Tiny_Lower==2.0"]))
    assert [(one.wheel.name, one.wheel.version) for one in send.listed(store)] == [
        ("tiny-lower", "1.0"),
        ("tiny-upper", "1.5"),
    ]
    assert pod().run("tiny-lower==2.0\n")[0] == 0, "a run keeps what was installed"
    code, said = pod().run("tiny-lower>=2\n")
    assert code == 1 and "tiny-lower>=2 can't be had: the platform's wheels has 1.0" in said, said
    other = wheelhouse.wheel(tmp_path / "other", "tiny-lower", "2.0", "VERSION = 'other'\n")
    assert send.put(store, collect.folder(tmp_path / "other", "3.13"), print) == 1
    send.remove(store, send.chosen(send.listed(store), [other.name, "tiny-lower", "tiny-lower==2.0"]))
    assert [one.wheel.name for one in send.listed(store)] == ["tiny-upper"]


def test_a_wheel_that_is_not_there_is_said_with_the_versions_that_are(server: Server, tmp_path: Path) -> None:
    store = transfer.Store(Cluster(server), "transfer-x")  # type: ignore[arg-type]
    wheelhouse.wheel(tmp_path / "site", "tiny-seldom", "1.0")
    send.put(store, collect.folder(tmp_path / "site", "3.13"), print)
    there = send.listed(store)
    with pytest.raises(UsageError, match="the store has no wheel tiny-seldom==9") as refused:
        send.chosen(there, ["tiny-seldom==1.0", "tiny-seldom==9"])
    assert refused.value.hint == "the store has tiny-seldom 1.0"
    with pytest.raises(UsageError, match="the store has no wheel absent"):
        send.chosen(there, ["absent"])


def test_requirements_are_resolved_for_the_images_python(tmp_path: Path) -> None:
    """Python here is another one; what `--without` names and what only that needs stays away."""
    site = tmp_path / "site"
    wheelhouse.wheel(site, "tiny-top", "1.0", needs=("tiny-lower", "tiny-torch"))
    wheelhouse.wheel(site, "tiny-torch", "1.0", needs=("tiny-huge",))
    wheelhouse.wheel(site, "tiny-huge", "1.0")
    wheelhouse.wheel(site, "tiny-lower", "2.0", tag="cp313-cp313-manylinux_2_28_x86_64")
    wheelhouse.wheel(site, "tiny-lower", "2.0", tag="cp311-cp311-manylinux_2_28_x86_64")
    asked, target = tmp_path / "requirements.txt", tmp_path / "target"
    target.mkdir()
    asked.write_text("tiny-top\n")
    with wheelhouse.index(site) as (url, _):
        pip = [f"--index-url={url}"]
        found = collect.requirements(asked, target, "3.13", ["Tiny_Torch"], pip)
        assert [one.wheel.file for one in found] == [
            "tiny_lower-2.0-cp313-cp313-manylinux_2_28_x86_64.whl",
            "tiny_top-1.0-py3-none-any.whl",
        ]
        asked.write_text("tiny-absent\n")
        with pytest.raises(TrainyardError, match="tiny-absent") as refused:
            collect.requirements(asked, target, "3.13", [], pip)
    assert "wheel for Python 3.13" in str(refused.value)
