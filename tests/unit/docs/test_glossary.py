"""The glossary and the prose linter agree: vale refuses the words that the glossary's third column has."""

import re

import yaml

from trainyard.paths import ROOT

ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \|(?: `([^`|]+)`)? \|$", (ROOT / "docs/glossary.md").read_text(), re.M)


def test_vale_refuses_the_third_column() -> None:
    swaps = yaml.safe_load((ROOT / "docs/style/trainyard/Terms.yml").read_text())["swap"]
    assert {re.sub(r"[?(].*", "", pattern).rstrip("s") for pattern in swaps} == {word for _, word in ROWS if word}


def test_terms_are_in_order_and_once() -> None:
    terms = [term.lower() for term, _ in ROWS]
    assert terms == sorted(set(terms))
