"""Wheels that the engineer puts into the store: sent once, listed, removed, and resolved for the images' Python."""

from pathlib import Path

import pytest
import wheelhouse
from played import Cluster

from trainyard.errors import TrainyardError, UsageError
from trainyard.training import transfer
from trainyard.training.wheels import collect, send


def test_what_the_engineer_puts_is_what_runs_install(pod, cluster: Cluster, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    store, said = transfer.Store(cluster, "transfer-x"), list[str]()  # type: ignore[arg-type]
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
    with pytest.raises(UsageError, match="the store has another file of this name") as refused:
        send.put(store, collect.folder(tmp_path / "other", "3.13"), said.append)
    assert str(other) in str(refused.value) and len(send.listed(store)) == 2


@pytest.mark.long
def test_wheels_that_are_removed_are_found_no_more_and_can_be_sent_anew(pod, cluster: Cluster, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    store = transfer.Store(cluster, "transfer-x")  # type: ignore[arg-type]
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
    assert code == 1 and "tiny-lower>=2 is not available: the platform's wheels has 1.0" in said, said
    other = wheelhouse.wheel(tmp_path / "other", "tiny-lower", "2.0", "VERSION = 'other'\n")
    assert send.put(store, collect.folder(tmp_path / "other", "3.13"), print) == 1
    send.remove(store, send.chosen(send.listed(store), [other.name, "tiny-lower", "tiny-lower==2.0"]))
    assert [one.wheel.name for one in send.listed(store)] == ["tiny-upper"]


def test_a_wheel_that_is_not_there_is_said_with_the_versions_that_are(cluster: Cluster, tmp_path: Path) -> None:
    store = transfer.Store(cluster, "transfer-x")  # type: ignore[arg-type]
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
