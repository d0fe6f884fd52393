"""Renames the outdated keys of a values file; comments, order and layout are unchanged."""

import copy
from typing import Any

import yaml

from trainyard import yaml_lines
from trainyard.contract import renamed
from trainyard.contract.renamed import Rename
from trainyard.errors import UsageError

Edit = tuple[int, int, str]  # start, end, replacement


def migrate(text: str, file: str) -> str:
    """The text with every renamed value under its current name; unchanged if there is none.

    Raises:
        UsageError: the text is not YAML or not a values file, or a value must be changed by hand.
    """
    documents = yaml_lines.documents(text, file)
    for document in documents:
        _check(document, file)
    edits: list[Edit] = []
    for root in yaml.compose_all(text, yaml.SafeLoader):
        for rename in renamed.table():
            edits += _edits(root, rename)
    done = text
    for begin, end, instead in sorted(edits, reverse=True):
        done = done[:begin] + instead + done[end:]
    if _parsed(done) != [_renamed(document.data) for document in documents]:
        _refuse_by_hand(documents, file)
    return done


def _check(document: yaml_lines.Document, file: str) -> None:
    """Rejects values whose new form only their owner can decide."""
    data = document.data
    if not isinstance(data, dict):
        raise UsageError("not a values file: it contains a list or a single value", where=file)
    if "apiVersion" in data and "kind" in data:
        raise UsageError(
            f"this is a {data['kind']}, not a values file",
            where=file,
            hint="pass a file as for `helm --values`, and copy the values into it",
        )
    for rename, old in renamed.used(data):
        where = f"{file}:{document.line(*rename.old)}"
        if rename.new[-1] in (rename.parent(data) or ()):
            what = f"{'.'.join(rename.old)} and its new name, {'.'.join(rename.new)}, are both set"
            raise UsageError(what, where=where, hint=f"remove {rename.old[-1]}")
        try:
            rename.value(old)
        except KeyError:
            words = ", ".join(rename.values)
            what = f"{'.'.join(rename.old)} is {old}, which the chart never accepted; valid values were {words}"
            raise UsageError(what, where=where, hint=f"write {rename.new[-1]} by hand") from None


def _edits(root: yaml.Node | None, rename: Rename) -> list[Edit]:
    """Edits of one document for one renamed value."""
    node = root
    for name in rename.old[:-1]:
        node = next((value for key, value in _pairs(node) if key.value == name), None)
    for key, value in _pairs(node):
        if key.value != rename.old[-1] or value.tag == "tag:yaml.org,2002:null":
            continue
        edits = [_instead(key, rename.new[-1])]
        if rename.values and isinstance(value, yaml.ScalarNode) and value.start_mark.index >= key.end_mark.index:
            edits.append(_instead(value, rename.value(value.value)))
        return edits
    return []


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _instead(node: yaml.ScalarNode, word: str) -> Edit:
    """Replaces a scalar by a word, in the same quotes."""
    quote = node.style if node.style in ("'", '"') else ""
    return node.start_mark.index, node.end_mark.index, f"{quote}{word}{quote}"


def _parsed(text: str) -> list[Any] | None:
    try:
        return [data for data in yaml.safe_load_all(text) if data is not None]
    except yaml.YAMLError:
        return None


def _renamed(data: dict[str, Any]) -> dict[str, Any]:
    """Expected data after the edits."""
    done = copy.deepcopy(data)
    for rename, old in renamed.used(data):
        parent = rename.parent(done) or {}
        del parent[rename.old[-1]]
        parent[rename.new[-1]] = rename.value(old)
    return done


def _refuse_by_hand(documents: list[yaml_lines.Document], file: str) -> None:
    """Rejects a value that comes from an alias, a merge or a block, where changing it may change others, too."""
    for document in documents:
        for rename, old in renamed.used(document.data):
            what = f"{rename.sentence(old)}; its value is an alias, an anchor or a block, which can't be rewritten"
            where = f"{file}:{document.line(*rename.old)}"
            raise UsageError(what, where=where, hint=f"write {rename.new[-1]}: {rename.value(old)} by hand")
