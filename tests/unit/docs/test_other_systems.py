"""Examples in docs/other-systems.md for systems that are not run here: valid YAML, and existing commands."""

import re
import shlex
import textwrap
from typing import Any

import click
import pytest
import yaml

from trainyard import cli
from trainyard.paths import ROOT

PAGE = (ROOT / "docs" / "other-systems.md").read_text()


def block(begins: str) -> Any:
    """The indented block that begins with this line."""
    found = re.search(rf"^      {re.escape(begins)}\n(?:(?:      .*)?\n)+", PAGE, re.M)
    assert found, begins
    return yaml.safe_load(textwrap.dedent(found[0]))


def parsed(words: list[str]) -> dict[str, Any]:
    """The parsed parameters of `trainyard …`. Raises click.UsageError."""
    rest = [word.replace("/app/train.py", f"{ROOT}/pipelines/mnist.py") for word in words[1:]]
    command: click.Command = cli.trainyard
    context = click.Context(command, info_name="trainyard", **command.context_settings)
    while isinstance(command, click.Group):
        name, *rest = rest
        found = command.get_command(context, name)
        assert found, name
        command = found
        context = command.make_context(name, list(rest), context, resilient_parsing=isinstance(command, click.Group))
    return context.params


@pytest.mark.parametrize("line", [0, 1])
def test_a_pachyderm_pipeline_calls_commands_that_exist(line: int) -> None:
    said = block("# pachctl create pipeline -f train.yaml")
    assert said["input"]["pfs"]["repo"] == "digits"
    words = shlex.split(said["transform"]["stdin"][line].partition(" > ")[0])
    words = [word.replace("/pfs/digits", str(ROOT / "pipelines")) for word in words]
    assert words[0] == "trainyard" and parsed(words)


def test_a_polyaxonfile_calls_a_command_that_exists() -> None:
    said = block("# polyaxon run -f train.yaml -P lr=0.1")
    assert said["run"]["kind"] == "job" and said["inputs"][0]["name"] == "lr"
    words = said["run"]["container"]["command"]
    found = parsed(words)
    assert words[0] == "trainyard" and "lr={{ lr }}" in str(found)
