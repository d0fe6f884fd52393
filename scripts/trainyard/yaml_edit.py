"""Inserts fields into a YAML or JSON text and keeps every other character: comments, order, indentation."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from trainyard import yaml_lines
from trainyard.errors import TrainyardError, UsageError

FORM = "write out what aliases (*name) stand for, or put the fields in by hand"


@dataclass(frozen=True)
class _Edit:
    """Replacement of the text from `begin` to `end` by `text`; of edits at the same place the deepest comes first."""

    begin: int
    end: int
    depth: int
    text: str


class _Loader(Composer, SafeConstructor, Resolver):
    """Loader that records the last character of each node: a block's own end mark is where the next node begins.

    Its events come from the parser of `yaml_lines`, so that both accept the same texts.
    """

    yaml_implicit_resolvers = yaml_lines.RESOLVERS

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        parser = yaml_lines.Loader(text)
        self.check_event, self.peek_event, self.get_event = parser.check_event, parser.peek_event, parser.get_event
        self.text = text
        self.ends: dict[int, int] = {}  # by the node's id()
        self.tails: dict[int, int] = {}  # of flow collections: end of their last item
        self.columns: dict[int, int] = {}  # of mappings: column of their keys, before others are merged in
        self._last = 0
        self._kept: list[yaml.Node] = []  # keeps nodes alive, so that their id() is not reused

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            end = self.peek_event().end_mark.index
            node = super().compose_node(parent, index)
            self._last = end
            return node
        node = super().compose_node(parent, index)
        assert node is not None  # None only at the end of the text
        if isinstance(node, yaml.ScalarNode):
            self._last = node.end_mark.index
            if node.style in ("|", ">") and "+" not in self.text[node.start_mark.index :].split("\n", 1)[0]:
                self._last = len(self.text[: self._last].rstrip())
        elif isinstance(node, yaml.CollectionNode) and node.flow_style:
            self.tails[id(node)] = self._last if node.value else node.start_mark.index + 1
            self._last = node.end_mark.index
        if isinstance(node, yaml.MappingNode):
            self.columns[id(node)] = node.value[0][0].start_mark.column if node.value else 0
        self.ends[id(node)] = self._last
        self._kept.append(node)
        return node


@dataclass
class _Editor:
    """Collects the edits of one text."""

    loader: _Loader
    where: str
    eol: str
    edits: list[_Edit] = field(default_factory=list)
    seen: dict[int, str] = field(default_factory=dict)

    def change(self, node: yaml.Node, old: Any, new: Any, depth: int, indent: int) -> None:
        """Changes the text of `node` from `old` to `new`; `indent` is that of the enclosing mapping or list."""
        wanted = repr(new)
        if id(node) in self.seen:
            if self.seen[id(node)] != wanted:
                line = node.start_mark.line + 1
                what = "a part that is used in several places would have to differ"
                raise TrainyardError(what, where=f"{self.where}:{line}", hint="write it out in each place (no alias)")
            return
        self.seen[id(node)] = wanted
        if _comparable(old) == _comparable(new):
            return
        if isinstance(node, yaml.MappingNode) and isinstance(new, dict):
            self._mapping(node, old, new, depth)
        elif isinstance(node, yaml.SequenceNode) and isinstance(new, list):
            self._sequence(node, old, new, depth)
        else:
            self._value(node, new, depth, indent)

    def _mapping(self, node: yaml.MappingNode, old: dict[str, Any], new: dict[str, Any], depth: int) -> None:
        column = self.loader.columns[id(node)]
        for key in [key for key in new if key in old]:
            self.change(self._found(node, key), old[key], new[key], depth + 1, column)
        added = {key: value for key, value in new.items() if key not in old}
        if added:
            self._insert(node, added, depth, column)

    def _sequence(self, node: yaml.SequenceNode, old: list[Any], new: list[Any], depth: int) -> None:
        for item, before, after in zip(node.value, old, new, strict=False):
            self.change(item, before, after, depth + 1, node.start_mark.column)
        if len(new) > len(old):
            self._insert(node, new[len(old) :], depth, node.start_mark.column)

    def _found(self, node: yaml.MappingNode, key: Any) -> yaml.Node:
        """The value of a key. Merged keys come before the mapping's own, which override them."""
        for name, value in reversed(node.value):
            if self.loader.construct_object(name, deep=True) == key:
                return value
        raise TrainyardError(f"{key} can't be found", where=f"{self.where}:{node.start_mark.line + 1}", hint=FORM)

    def _insert(self, node: yaml.CollectionNode, added: dict[str, Any] | list[Any], depth: int, column: int) -> None:
        text = self.loader.text
        if node.flow_style:
            quoted = isinstance(node, yaml.MappingNode) and bool(node.value) and node.value[0][0].style == '"'
            json_like = quoted or text.lstrip()[:1] in ("{", "[")
            inner = _flow(added, json_like)[1:-1]
            at = self.loader.tails[id(node)]
            self.edits.append(_Edit(at, at, depth, f", {inner}" if node.value else inner))
            return
        end = self.loader.ends[id(node)]
        line = text.find("\n", end)
        at = len(text) if line < 0 else _after_comments(text, line + 1, column)
        lead = "" if line >= 0 or text.endswith("\n") else self.eol
        self.edits.append(_Edit(at, at, depth, lead + _block(added, column, self.eol)))

    def _value(self, node: yaml.Node, new: Any, depth: int, indent: int) -> None:
        begin, end = node.start_mark.index, self.loader.ends[id(node)]
        if isinstance(new, (dict, list)) and new and not self._in_flow(begin):
            text = self.eol + _block(new, indent + 2, self.eol).rstrip("\r\n")
        else:
            # A quoted string stays quoted: JSON has no other.
            quoted = isinstance(new, str) and isinstance(node, yaml.ScalarNode) and node.style == '"'
            text = _flow(new, quoted or self.loader.text.lstrip()[:1] in ("{", "["))
        if begin and not self.loader.text[begin - 1].isspace() and not text[0].isspace():
            text = f" {text}"
        self.edits.append(_Edit(begin, end, depth, text))

    def _in_flow(self, index: int) -> bool:
        text = self.loader.text[:index]
        return text.count("{") + text.count("[") > text.count("}") + text.count("]")

    def done(self) -> str:
        """The text with all edits."""
        text, made, at = self.loader.text, "", 0
        for edit in sorted(self.edits, key=lambda one: (one.begin, -one.depth)):
            made += text[at : edit.begin] + edit.text
            at = edit.end
        return made + text[at:]


def _after_comments(text: str, at: int, column: int) -> int:
    """The position after the comment lines at `at` that belong to a block in that column, before less indented text."""
    end, begin = at, at
    pending: list[tuple[int, int]] = []  # comments: end, indentation
    below = 0
    for line in text[at:].splitlines(keepends=True):
        indent = len(line) - len(line.lstrip(" "))
        end += len(line)
        if not line.lstrip(" ").startswith("#"):
            below = indent if line.strip() else 0
            break
        pending.append((end, indent))
    for end, indent in pending:
        if indent < column or indent <= below:
            break
        begin = end
    return begin


def edited(text: str, file: str, wanted: Sequence[Any]) -> str:
    """The text changed so that its non-empty documents have the values `wanted`; equal parts are unchanged.

    Raises:
        UsageError: the text is not YAML.
        TrainyardError: fields can't be inserted into a text of this form.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    loader = _Loader(text.removeprefix("\ufeff"))
    editor = _Editor(loader, file, "\r\n" if "\r\n" in text else "\n")
    due = list(wanted)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            old = loader.construct_document(node)
            if old is not None and due:
                editor.change(node, old, due.pop(0), 0, 0)
    except yaml.YAMLError as error:
        raise UsageError(f"invalid YAML: {str(error).splitlines()[0]}", where=file) from None
    made = editor.done()
    said = [one for one in yaml.load_all(made, yaml_lines.Loader) if one is not None]
    if _comparable(said) != _comparable(list(wanted)):
        raise TrainyardError("fields can't be added to a file of this form", where=file, hint=FORM)
    return mark + made


def _comparable(value: Any) -> Any:
    """The value with a string in place of .nan, which isn't equal to itself."""
    if isinstance(value, dict):
        return {key: _comparable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_comparable(one) for one in value]
    return ".nan" if isinstance(value, float) and value != value else value


def _flow(value: Any, json_like: bool) -> str:
    if json_like:
        return json.dumps(value, ensure_ascii=False)
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _block(value: dict[str, Any] | list[Any], column: int, eol: str) -> str:
    lines = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=10**6, allow_unicode=True).splitlines()
    return "".join(f"{' ' * column}{line}{eol}" for line in lines)


class _Dumper(yaml.SafeDumper):
    """Indents the items of lists by two columns, and writes no aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True
