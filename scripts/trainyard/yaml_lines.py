"""YAML or JSON text as plain data, with the line on which each part begins."""

from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.errors import UsageError

Path = tuple[str | int, ...]
# As kubectl reads it, which has no dates: 2024-01-02 is a string.
RESOLVERS = {
    first: [(tag, words) for tag, words in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_parser: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Loader: type = type("Loader", (_parser,), {"yaml_implicit_resolvers": RESOLVERS})


@dataclass(frozen=True)
class Document:
    """One YAML document: its data, and `lines`, which maps every path to its line (from 1)."""

    data: Any
    lines: dict[Path, int]

    def line(self, *path: str | int) -> int:
        """Line of `path`, or of its nearest existing ancestor."""
        for length in range(len(path), -1, -1):
            if found := self.lines.get(path[:length]):
                return found
        return 1


def documents(text: str, file: str) -> list[Document]:
    """All non-empty documents of `text`.

    Raises:
        UsageError: the text is not YAML, or has a duplicate key.
    """
    found = []
    loader = Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            lines: dict[Path, int] = {}
            _walk(node, (), lines, file)
            data = loader.construct_document(node)
            if data is not None:
                found.append(Document(data, lines))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise UsageError(f"invalid YAML: {error.problem or error.context}", where=where) from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"invalid YAML: {error}".splitlines()[0], where=file) from None
    finally:
        loader.dispose()
    return found


def _walk(node: yaml.Node, path: Path, lines: dict[Path, int], file: str) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            line = key.start_mark.line + 1
            if here in lines:
                raise UsageError(f"duplicate key {key.value}, first on line {lines[here]}", where=f"{file}:{line}")
            lines[here] = line
            _walk(value, here, lines, file)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(item, (*path, index), lines, file)
