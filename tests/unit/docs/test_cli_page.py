"""The page of the command line lists the commands of an installed package, and no others."""

import importlib
import re

import click
import pytest

from trainyard import cli as product
from trainyard.paths import ROOT
from trainyard_dev import cli as laboratory

PAGE = (ROOT / "docs/cli.md").read_text()
ROWS = dict(re.findall(r"^\| `trainyard ([a-z]+)` \| (.+) \| \[", PAGE, re.M))
CHECKOUT = PAGE.partition("## In a checkout")[2]


def test_it_lists_exactly_the_commands_of_the_product() -> None:
    assert set(ROWS) == set(product.COMMANDS)


@pytest.mark.parametrize("name", product.COMMANDS)
def test_the_row_of_a_group_names_its_commands(name: str) -> None:
    command = getattr(importlib.import_module(product.COMMANDS[name]), name)
    if isinstance(command, click.Group):
        assert set(re.findall(r"`([a-z-]+)`", ROWS[name])) == set(command.commands)


def test_what_a_checkout_adds_is_named() -> None:
    assert set(re.findall(r"`([a-z0-9]+)`", CHECKOUT)) == set(laboratory.COMMANDS)


def test_exit_codes_are_those_of_the_program() -> None:
    listed = set(re.findall(r"^\| (\d+) \|", PAGE, re.M))
    assert listed == set(re.findall(r"(?:: |; )(\d+) ", (product.__doc__ or "").partition("Exit codes")[2]))
