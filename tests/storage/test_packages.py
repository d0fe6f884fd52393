"""A run's requirements become packages once, through a real MinIO, real pip and an index of wheels made here.

The three containers of a pod run one after the other as programs, with the variables that a pod has. Python of the
machine stands for the one of the job's image.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import wheelhouse
from packaged import put, stored

from servers import Server


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
        assert "packages: 2 from the store" in said
    assert second.program("tiny-upper", PATH=os.environ["PATH"]) == (0, "tiny-upper 1.5\n")
    assert len(stored(server)) == 1


def test_requirements_of_a_job_without_code_come_with_its_manifest(pod) -> None:  # type: ignore[no-untyped-def]
    one, other = pod(), pod()
    assert one.fetch_without_code({"needs.txt": "-r more.txt\nsix\n", "more.txt": "einops==0.8\n"}, "needs.txt")[0] == 0
    assert (one.volume / ".packages/requirements.txt").read_text() == "einops==0.8\nsix\n"
    plan = json.loads((one.volume / ".packages/plan.json").read_text())
    assert [line["where"] for line in plan["lines"]] == ["more.txt:1", "needs.txt:2"]
    code, said = other.fetch_without_code({"needs.txt": "-r more.txt\n"}, "needs.txt")
    assert code == 1 and "needs.txt:1: no file more.txt" in said, said


def test_other_requirements_are_other_packages(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for version in ("1.0", "2.0"):
        wheelhouse.wheel(tmp_path / "site", "tiny-lower", version)
    with wheelhouse.index(tmp_path / "site") as (url, _):
        for version in ("1.0", "2.0"):
            one = pod(url)
            assert one.run(f"tiny-lower=={version}\n")[0] == 0
            assert one.command("-c", "import tiny_lower; print(tiny_lower.VERSION)") == (0, f"{version}\n")
    assert len(stored(server)) == 2


@pytest.mark.long
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
    assert code == 1 and "requirements.txt:1: the platform's wheels has a file with another hash" in said, said


def test_what_was_tampered_with_in_the_store_is_not_installed(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    good = wheelhouse.wheel(tmp_path / "good", "tiny-lower", "2.0")
    bad = wheelhouse.wheel(tmp_path / "bad", "tiny-lower", "2.0", "VERSION = 'bad'\n")
    key = f"shared/wheels/{wheelhouse.sha256(good)}/{good.name}"
    server.admin.fput_object("runs", key, str(bad))
    code, said = pod().run("tiny-lower==2.0\n")
    assert code == 1 and "has a file with another hash" in said, said
    assert stored(server) == []


def test_a_line_that_cannot_be_had_is_named_with_what_there_is(pod, server: Server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for version in ("1.0", "2.0"):
        wheelhouse.wheel(tmp_path / "site", "tiny-lower", version)
    with wheelhouse.index(tmp_path / "site") as (url, _):
        code, said = pod(url).run("# ours\ntiny-lower==3.0\n")
        last = said.strip().splitlines()[-1]
        assert code == 1
        assert last.startswith("InstallError: requirements.txt:2: tiny-lower==3.0 is not available"), last
        assert f"the index {url} has 1.0, 2.0" in last and "trainyard wheels put" in last
        code, said = pod(url).run("tiny-lower\ntiny-absent>=1\n")
        assert code == 1 and "requirements.txt:2: tiny-absent>=1 is not available" in said.splitlines()[-1]
    assert stored(server) == []


def test_what_a_line_needs_is_named_with_its_line(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5", needs=("tiny-lower>=7",))
    with wheelhouse.index(tmp_path / "site") as (url, _):
        code, said = pod(url).run("tiny-upper\n")
    last = said.strip().splitlines()[-1]
    assert code == 1 and "requirements.txt:1: tiny-lower>=7, which tiny-upper needs, is not available" in last, said


def test_lines_that_contradict_each_other_are_named(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for version in ("1.0", "2.0"):
        wheelhouse.wheel(tmp_path / "site", "tiny-lower", version)
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5", needs=("tiny-lower>=2",))
    with wheelhouse.index(tmp_path / "site") as (url, _):
        code, said = pod(url).run("tiny-upper\ntiny-lower==1.0\n")
    last = said.strip().splitlines()[-1]
    assert code == 1 and "requirements.txt:1, requirements.txt:2: these conflict" in last, said
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
