"""Our evaluator of CEL against the API server's: each expression of the corpus has one value, or fails, in both."""

import functools
from typing import Any

import pytest
import yaml
from cel_server import ERROR, answers, evaluated
from conftest import HERE

from trainyard.policy import cel
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.tools import build

LEAST = 200


@functools.cache
def corpus() -> dict[str, Any]:
    """The file with each block of lines as a list."""
    raw = yaml.safe_load((HERE / "cel_corpus.yaml").read_text())
    same = {group: block.splitlines() for group, block in raw["same"].items()}
    changed = {version: block.splitlines() for version, block in raw["changed"].items()}
    lists = {name: raw[name].splitlines() for name in ("unchecked", "refused")}
    return raw | lists | {"same": same, "changed": changed}


def changed() -> set[str]:
    """What the server that is asked says otherwise than those before it."""
    minor = [int(part) for part in build.tested_kubernetes().number.split(".")[:2]]
    since = {version: [int(part) for part in version.split(".")] for version in corpus()["changed"]}
    return {text for version, first in since.items() if minor >= first for text in corpus()["changed"][version]}


def unknown(group: str) -> bool:
    """Whether the server that is asked is older than what the group asks of it."""
    first = corpus()["since"].get(group, "0.0")
    return [int(part) for part in build.tested_kubernetes().number.split(".")[:2]] < [int(p) for p in first.split(".")]


@pytest.fixture(scope="module")
def reported(server: ApiServer) -> dict[str, str]:
    """The server's answers, by expression."""
    parts = [*corpus()["same"].values(), corpus()["unchecked"], corpus()["refused"]]
    return answers(server, [text for part in parts for text in part], corpus()["object"])


def test_the_corpus_is_large_and_repeats_nothing() -> None:
    every = [text for group in corpus()["same"].values() for text in group]
    assert len(every) >= LEAST
    assert sorted(every) == sorted(set(every))


@pytest.mark.parametrize("group", corpus()["same"])
def test_the_evaluator_says_what_the_server_says(reported: dict[str, str], group: str) -> None:
    if unknown(group):
        pytest.skip(f"servers know {group} from {corpus()['since'][group]} on")
    pairs = {text: (reported[text], evaluated(text, corpus()["object"])) for text in corpus()["same"][group]}
    wrong = [
        f"{text}: the server says {one}, ours {other}"
        for text, (one, other) in pairs.items()
        if (one != other) != (text in changed())
    ]
    assert not wrong, "\n".join(wrong)


def test_what_changed_is_asked() -> None:
    every = {text for group in corpus()["same"].values() for text in group}
    assert every.issuperset(text for block in corpus()["changed"].values() for text in block)


def test_what_only_the_check_of_types_refuses(reported: dict[str, str]) -> None:
    for text in corpus()["unchecked"]:
        assert reported[text] == ERROR, text
        assert evaluated(text, corpus()["object"]) != ERROR, f"{text}: move it to `same`"


def test_what_is_not_evaluated_is_refused_by_name(reported: dict[str, str]) -> None:
    for text in corpus()["refused"]:
        assert reported[text] != ERROR, f"{text}: the server refuses it too"
        with pytest.raises(cel.CelError, match="not evaluated here"):
            cel.compile(text)({"o": cel.place(corpus()["object"])})
