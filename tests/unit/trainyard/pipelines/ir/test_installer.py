"""The prefix that kfp's SDK writes before a component's command is parsed exactly; anything else is the user's own."""

import re
from typing import Any

import pytest
from kfp.dsl import component_factory

from trainyard.pipelines.ir.installer import CALL, Installer, split

OWN = ["sh", "-ec", "python3 -m kfp.dsl.executor_main", "def f(): pass"]
V1_PIP = "PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip install --quiet --no-warn-script-location 'xgboost==1.1.1' 'b'"
V1 = ["sh", "-c", f'({V1_PIP} || {V1_PIP} --user) && "$0" "$@"', "python3", "-u", "-c", "print()"]


def written(**more: Any) -> list[str]:
    """The prefix that the pinned SDK writes, unchanged since 2.7."""
    return component_factory._get_packages_to_install_command(**more)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, Installer(True)),
        ({"use_venv": True}, Installer(True)),
        ({"packages_to_install": ["pandas==2.2.0", "a[b]>=1; python_version<'4'"]},
         Installer(True, ("pandas==2.2.0", "a[b]>=1; python_version<'4'"))),
        ({"packages_to_install": ["x"], "use_venv": True, "install_kfp_package": False}, Installer(False, ("x",))),
        ({"packages_to_install": ["x", "x"], "pip_index_urls": ["https://a.org/simple", "https://b.org/s"]},
         Installer(True, ("x",), ("https://a.org/simple", "https://b.org/s"))),
        ({"packages_to_install": ["x"], "pip_index_urls": ["https://a.org/s"], "pip_trusted_hosts": ["a.org"]},
         Installer(True, ("x",), ("https://a.org/s",))),
        ({"packages_to_install": ["kfp==2.13.0", "x"]}, Installer(True, ("x",))),
        ({"packages_to_install": ["KFP>=2.0", "kfp~=2.7", "kfp==2.15.0rc1"]}, Installer(True)),
        ({"packages_to_install": ["kfp==1.8.22"], "install_kfp_package": False}, Installer(False, ("kfp==1.8.22",))),
        ({"packages_to_install": ["kfp-kubernetes"]}, Installer(False, ("kfp-kubernetes",))),
        ({"kfp_package_path": "git+https://a.org/kfp"}, Installer(False, ("git+https://a.org/kfp",))),
    ],
)  # fmt: skip
def test_the_sdk_s_installer_is_read(more: dict[str, Any], found: Installer) -> None:
    assert split([*written(**more), *OWN]) == (found, OWN)


def test_the_installer_of_version_1_is_read() -> None:
    assert split(V1) == (Installer(False, ("xgboost==1.1.1", "b")), V1[3:])


def test_older_releases_of_version_2_are_read() -> None:
    command = [*written(packages_to_install=["x"], use_venv=True), "sh", "python3 -m kfp.components.executor_main"]
    packages, kfp = (one[0] for one in re.finditer(CALL, command[2]))
    command[2] = command[2].replace(kfp, "_").replace(packages, kfp).replace("_ &&", f"{packages} &&")
    assert split(command) == (Installer(True, ("x",)), ["sh", OWN[2]])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('&& "$0"', '&& curl -s x.org && "$0"'),
        ('&& "$0" "$@"', '&& "$0" "$@"; rm -f /x'),
        ('&& "$0" "$@"', '|| "$0" "$@"'),
        ('"$0" "$@"', '"$0"'),
        ("\nif !", "\nset -x\nif !"),
        ("--quiet", "--quiet --pre"),
        ("--quiet ", ""),
        ("python3 -m pip", "pip"),
        ("apt-get install python3-pip", "apt-get install python3-pip git"),
        ("'kfp", "$(id) 'kfp"),
        ("'kfp", '"$(id)" \'kfp'),
        ("'--no-deps'", "'--pre'"),
        ("'--no-deps'", r"'a\nb'"),
        ("'--no-deps'", "'-r' 'x.txt'"),
    ],
)
def test_a_command_that_differs_is_somebody_s_own(old: str, new: str) -> None:
    command = [*written(), *OWN]
    assert old in command[2]
    command[2] = command[2].replace(old, new, 1)
    assert split(command) == (None, command)


@pytest.mark.parametrize("command", [[], ["sh", "-c"], written(), ["echo", *written()[2:], *OWN], OWN])
def test_a_command_without_it_stays(command: list[str]) -> None:
    assert split(command) == (None, command)
