"""Requirements beside what the job's image has already: not asked for, overruled, or left out as the image does."""

import subprocess
from pathlib import Path

import pytest
import wheelhouse
from wheelhouse import IMAGE

from trainyard.paths import ROOT


@pytest.mark.long
def test_packages_of_an_image_that_has_changed_are_installed_anew(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The same name of an image may stand for another content."""
    wheelhouse.wheel(tmp_path / "site", "tiny-upper", "1.5", needs=("tiny-lower",))
    wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    image = wheelhouse.image(tmp_path / "image", tmp_path / "site/tiny_lower-2.0-py3-none-any.whl")
    with wheelhouse.index(tmp_path / "site") as (url, _):
        with_lower = pod(url, PYTHONPATH=image)
        code, said = with_lower.run("tiny-upper\n")
        assert code == 0 and "installed tiny-upper==1.5\n" in said, said
        without = pod(url)
        code, said = without.run("tiny-upper\n")
        assert code == 0 and "installed again" in said, said
        assert without.command("-c", "import tiny_lower") == (0, "")
        assert "2 from the store" in pod(url).run("tiny-upper\n")[1]


def test_what_was_asked_for_goes_before_what_the_image_has(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The platform's own images have packages in PYTHONPATH, which Python otherwise looks at first."""
    wheelhouse.wheel(tmp_path / "site", "tiny-lower", "2.0")
    image = wheelhouse.image(tmp_path / "image", wheelhouse.wheel(tmp_path / "old", "tiny-lower", "1.0"))
    with wheelhouse.index(tmp_path / "site") as (url, _):
        one = pod(url, PYTHONPATH=image)
        assert one.run("tiny-lower>=2\n")[0] == 0
    env = {"PYTHONUSERBASE": f"{one.volume}/packages", "PYTHONPATH": image}
    assert one._run([IMAGE, "-c", "import tiny_lower; print(tiny_lower.VERSION)"], env) == (0, "2.0\n")


@pytest.mark.long
@pytest.mark.parametrize(("has", "asks"), [("tensorflow-cpu", "tensorflow"), ("tensorflow", "tensorflow-cpu")])
def test_what_the_image_has_under_another_name_is_not_asked_for(pod, tmp_path: Path, has: str, asks: str) -> None:  # type: ignore[no-untyped-def]
    """Images for CPUs have `tensorflow-cpu`, those with CUDA `tensorflow`: lists name either."""
    site, there = tmp_path / "site", wheelhouse.wheel(tmp_path / "old", has, "2.21.0", needs=("tiny-lower",))
    image = wheelhouse.image(tmp_path / "image", there)
    code, said = pod(PYTHONPATH=image).run(f"{asks}>=2.16\n")
    assert code == 0 and "installed nothing, the image has everything" in said, said
    wheelhouse.wheel(site, "tiny-upper", "1.0", needs=(asks,))
    wheelhouse.wheel(site, asks, "2.22.0")
    with wheelhouse.index(site) as (url, _):
        code, said = pod(url, PYTHONPATH=image).run(f"{asks}[extra]\ntiny-upper\n")
        assert code == 0 and "installed tiny-upper==1.0" in said, said


@pytest.mark.long
def test_what_the_image_leaves_out_is_not_asked_for(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """An image may have torch without setuptools: its author knows why."""
    site = tmp_path / "site"
    top = wheelhouse.wheel(tmp_path / "old", "tiny-top", "1.0", needs=("tiny-left-out", "tiny-lower<2"))
    lower = wheelhouse.wheel(tmp_path / "old", "tiny-lower", "1.0")
    image = wheelhouse.image(tmp_path / "image", top, lower)
    wheelhouse.wheel(site, "tiny-upper", "1.5", needs=("tiny-top",))
    wheelhouse.wheel(site, "tiny-lower", "2.0")
    with wheelhouse.index(site) as (url, asked):
        code, said = pod(url, PYTHONPATH=image).run("tiny-top\ntiny-upper\n")
        assert code == 0 and "installed tiny-upper==1.5\n" in said, said
        assert not any("left-out" in path for path in asked)
        code, said = pod(url, PYTHONPATH=image).run("tiny-top\ntiny-lower==2.0\n")
        assert code == 1 and "these conflict" in said, "what the image does meet holds"


def test_a_python_that_looks_at_no_further_packages_says_so(pod, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    subprocess.run([IMAGE, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    one = pod()
    one.volume.mkdir()
    tools = one.volume / "tools"
    tools.mkdir()
    (tools / "plan.json").write_text("{}")
    (tools / "i.py").write_text((ROOT / "scripts/trainyard_agent/runs/install_packages.py").read_text())
    code, said = one._run(
        [str(tmp_path / "venv/bin/python"), f"{tools}/i.py", f"{tools}/plan.json"],
        {"PYTHONUSERBASE": f"{one.volume}/packages"},
    )
    assert code == 1 and "as in a virtual environment. Put them into the image" in said
