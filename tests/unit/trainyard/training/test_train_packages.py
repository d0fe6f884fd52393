"""`trainyard train` on a folder with requirements: what is sent with the job, and what is refused before."""

from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import UsageError
from trainyard.kinds import TeamConfig, requirements
from trainyard.training import launch


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "requirements.txt").write_text("einops==0.8.1  # tensors\n--extra-index-url https://example.org/cu126\n")
    return folder


def prepared(folder: Path, team_config: TeamConfig, **more: Any) -> launch.Launch:
    given = {"command": ["python", "train.py"], **more}
    return launch.prepare(folder, given, team_config, folder.parent / "code.tar.gz")


def test_the_usual_file_is_taken_and_said(folder: Path, team_config: TeamConfig) -> None:
    made = prepared(folder, team_config)
    assert made.spec.requirements == "requirements.txt"
    assert made.spec.packages.startswith("speech/packages/") and made.spec.packages.endswith(".tar.gz")
    assert tuple(one.text for one in made.advice if one.level == launch.NOTE) == (
        "requirements.txt: 1 requirement, from what the image has and the platform's wheels, installed once",
        "requirements.txt:2: --extra-index-url https://example.org/cu126 is ignored, "
        "since the site sets the package index",
    )


def test_code_may_change_and_packages_stay_until_a_line_or_the_image_changes(
    folder: Path, team_config: TeamConfig
) -> None:
    first = prepared(folder, team_config).spec
    (folder / "train.py").write_text("import torch, einops\n")
    second = prepared(folder, team_config).spec
    assert first.code != second.code and first.packages == second.packages
    assert prepared(folder, team_config, image="own/image:2").spec.packages != first.packages
    (folder / "requirements.txt").write_text("einops==0.8.0\n")
    assert prepared(folder, team_config).spec.packages != first.packages


def test_another_file_is_named_and_none_is_none(folder: Path, team_config: TeamConfig) -> None:
    (folder / "deps.txt").write_text("six\n")
    assert prepared(folder, team_config, requirements="deps.txt").spec.requirements == "deps.txt"
    assert prepared(folder, team_config, requirements="").spec.packages == ""
    (folder / "requirements.txt").write_text("# nothing yet\n")
    assert prepared(folder, team_config).spec.packages == ""
    (folder / "requirements.txt").unlink()
    assert prepared(folder, team_config).spec.packages == ""
    with pytest.raises(UsageError, match=r"no file absent\.txt in the folder"):
        prepared(folder, team_config, requirements="absent.txt")


def test_what_a_list_brings_by_way_of_another_file_is_imported_without_a_word(
    folder: Path, team_config: TeamConfig
) -> None:
    (folder / "req").mkdir()
    (folder / "req/base.txt").write_text(
        "Pandas[performance]>=2  # tables\nscikit_learn==1.6 ; python_version >= '3.9'\n"
    )
    (folder / "requirements.txt").write_text("-r req/base.txt\n")
    (folder / "train.py").write_text("import torch\nimport pandas\nimport sklearn\n")
    assert launch.WARNING not in [one.level for one in prepared(folder, team_config).advice]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-e .\n", r"requirements\.txt:1: -e \. would install a source folder"),
        ("pandas\n--no-binary :all:\n", r"requirements\.txt:2: --no-binary :all: is an option that runs don't support"),
        ("-r absent.txt\n", r"requirements\.txt:1: no file absent\.txt"),
    ],
)
def test_a_list_that_can_not_be_is_said_before_what_the_image_lacks(
    folder: Path, team_config: TeamConfig, text: str, says: str
) -> None:
    (folder / "requirements.txt").write_text(text)
    (folder / "train.py").write_text("import pandas\n")
    with pytest.raises(UsageError, match=says):
        prepared(folder, team_config)


def test_a_line_for_another_system_brings_nothing(folder: Path) -> None:
    text = "pandas; sys_platform == 'win32'\nsix ; python_version < '3'\neinops; platform_system == 'Linux'\na ; what\n"
    (folder / "requirements.txt").write_text(text)
    assert requirements.of_folder(folder).names == {"einops", "a"}
    assert requirements.of_folder(folder, "").names == requirements.of_folder(folder.parent).names == frozenset()


def test_a_line_that_no_pod_can_install_is_refused_before_anything_is_sent(
    folder: Path, team_config: TeamConfig
) -> None:
    (folder / "requirements.txt").write_text("six\ngit+https://example.org/own.git\n")
    with pytest.raises(UsageError, match=r"^requirements\.txt:2: git\+https.* is not a package from an index"):
        prepared(folder, team_config)


def test_programs_of_packages_are_found_and_python_starts_its_ranks(folder: Path, team_config: TeamConfig) -> None:
    made = prepared(folder, team_config, command=["accelerate", "launch", "train.py"])
    assert made.spec.command[0] == "sh" and made.spec.command[-3:] == ("accelerate", "launch", "train.py")
    assert prepared(folder, team_config).spec.command == ("python", "train.py")
    (folder / "requirements.txt").unlink()
    assert prepared(folder, team_config, command=["torchrun", "train.py"]).spec.command == ("torchrun", "train.py")
