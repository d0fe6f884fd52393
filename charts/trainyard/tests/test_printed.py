"""The pages' commands that install with a profile: the chart accepts the printed values, in the printed order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from trainyard.chart import helm
from trainyard.paths import ROOT
from trainyard_dev import tools

FILES = (ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("charts/*/README.md"))
PAGES = {file.relative_to(ROOT).as_posix(): file.read_text() for file in FILES}
INSTALL = PAGES["docs/install.md"]
COPIES = {made: ROOT / of for of, made in re.findall(r"\bcp (manifests/\S+) (\S+)", INSTALL)}
COMMANDS = [
    pytest.param(command, id=f"{name}-{number}")
    for name, text in PAGES.items()
    for number, command in enumerate(re.findall(r"^ {4}(helm (?:install|upgrade) (?:.+\\\n)*.+)", text, re.M))
    if "charts/trainyard/profiles/" in command
]


def template(chart: Path, command: str) -> str:
    """The output of `helm template` for the values of the command. Raises TrainyardError."""
    words = shlex.split(command.replace("\\\n", ""), comments=True)
    files = [str(COPIES.get(word, ROOT / word)) if word.endswith(".yaml") else word for word in words[4:]]
    return helm.call("template", words[2], chart, "--kube-version", tools.tested_kubernetes().number, *files)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_installs_as_it_is_printed(command: str, chart: Path) -> None:
    assert "kind: DaemonSet" in template(chart, command)


def test_the_commands_for_on_prem_are_those_for_a_cloud(chart: Path) -> None:
    assert len(COMMANDS) > 6
    command = next(str(one.values[0]) for one in COMMANDS if str(one.id).startswith("docs/install.md"))
    assert "kind: DaemonSet" in template(chart, command.replace("profiles/on-prem.yaml", "profiles/cloud.yaml"))


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_what_an_installation_asks_for_stands_before_it(page: str) -> None:
    text = PAGES[page][PAGES[page].find("\nOn a cluster of yours") + 1 :]
    install = text.index("--values charts/trainyard/profiles/on-prem.yaml")
    for before in (
        *(f" {made}" for made in COPIES),
        "chart package",
        "create namespace trainyard-system",
        "secret generic trainyard-s3",
    ):
        assert text.index(before) < install, before
