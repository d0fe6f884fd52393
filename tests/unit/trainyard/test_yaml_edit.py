"""Fields inserted into YAML and JSON texts: the existing text stays unchanged, character by character."""

from typing import Any

import pytest
import yaml

from trainyard import yaml_lines
from trainyard.errors import TrainyardError, UsageError
from trainyard.yaml_edit import edited


def apart(value: Any) -> Any:
    """A copy without aliases."""
    if isinstance(value, dict):
        return {key: apart(one) for key, one in value.items()}
    return [apart(one) for one in value] if isinstance(value, list) else value


def changed(text: str, **values: Any) -> str:
    """The text with values put at dotted places of its first document."""
    documents = [apart(one) for one in yaml.load_all(text, yaml_lines.Loader) if one is not None]
    for place, value in values.items():
        *path, last = place.split("__")
        node = documents[0]
        for key in path:
            node = node[int(key)] if isinstance(node, list) else node[key]
        if last == "append":
            node.append(value)
        else:
            node[last] = value
    return edited(text, "f.yaml", documents)


@pytest.mark.parametrize(
    ("before", "values", "after"),
    [
        ("a: 1  # one\nb:\n  c: 2\n", {"b__d": 3}, "a: 1  # one\nb:\n  c: 2\n  d: 3\n"),
        ("a: 1", {"b": {"c": [1]}}, "a: 1\nb:\n  c:\n    - 1\n"),
        ("a: {b: 1}\n", {"a__c": "x"}, "a: {b: 1, c: x}\n"),
        ("a: {}\n", {"a__c": True}, "a: {c: true}\n"),
        ("a:\n- b: 1\n  c: 2\n- b: 3\n", {"a__0__d": 4}, "a:\n- b: 1\n  c: 2\n  d: 4\n- b: 3\n"),
        ("a:\n- 1\n# end\nb: 2\n", {"a__append": 5}, "a:\n- 1\n- 5\n# end\nb: 2\n"),
        ("a: [1]\n", {"a__append": {"k": "v"}}, "a: [1, {k: v}]\n"),
        ("a:  # nothing yet\nb: 1\n", {"a": {"c": 2}}, "a:\n  c: 2  # nothing yet\nb: 1\n"),
        ("a: old  # why\n", {"a": "new"}, "a: new  # why\n"),
        ("a: |\n  text\n\n  more\n\nb: 1\n", {"c": 2}, "a: |\n  text\n\n  more\n\nb: 1\nc: 2\n"),
        ("b: 1\na: |\n  text\n\n# end\n", {"c": 2}, "b: 1\na: |\n  text\nc: 2\n\n# end\n"),
        ("a:\n  b:\n    c: 1\n", {"a__b__d": 2, "a__e": 3, "f": 4}, "a:\n  b:\n    c: 1\n    d: 2\n  e: 3\nf: 4\n"),
        ("a: 1\r\n", {"b": 2}, "a: 1\r\nb: 2\r\n"),
        ('{"a": 1}', {"b": "yes"}, '{"a": 1, "b": "yes"}'),
        ('{\n  "a": {"x": 1}\n}\n', {"a__y": [2]}, '{\n  "a": {"x": 1, "y": [2]}\n}\n'),
        ("a: &x {b: 1}\nc: *x\n", {"a__d": 2, "c__d": 2}, "a: &x {b: 1, d: 2}\nc: *x\n"),
        ("# first\n---\na: 1\n---\nb: 2\n", {"c": 3}, "# first\n---\na: 1\nc: 3\n---\nb: 2\n"),
        ('{\n\t"a": {\n\t\t"x": 1\n\t}\n}\n', {"a__y": 2}, '{\n\t"a": {\n\t\t"x": 1, "y": 2\n\t}\n}\n'),
        ("a: 1\t# one\nb: [1,\t2]\n", {"b__append": 3}, "a: 1\t# one\nb: [1,\t2, 3]\n"),
        (
            "r: &r\n  n: 1\n  t: {x: 1}\na:\n    <<: *r\n    n: 3\n",
            {"a__n": 4, "a__m": 5},
            "r: &r\n  n: 1\n  t: {x: 1}\na:\n    <<: *r\n    n: 4\n    m: 5\n",
        ),
        ("a: {1: x, on: y}\nb: .nan\n", {"a__c": 2}, "a: {1: x, on: y, c: 2}\nb: .nan\n"),
        (
            "a:\r\n  b:\r\n    c: 1\r\n    # of b\r\n  # of a\r\n# of d\r\nd: 2\r\n",
            {"a__b__x": 3, "a__e": 4, "f": 5},
            "a:\r\n  b:\r\n    c: 1\r\n    # of b\r\n    x: 3\r\n  # of a\r\n  e: 4\r\n# of d\r\nd: 2\r\nf: 5\r\n",
        ),
        ("a:\n  b: 1\n  # of a\n", {"a__c": 2, "d": 3}, "a:\n  b: 1\n  # of a\n  c: 2\nd: 3\n"),
        ("made: 2024-01-02\n", {"b": 1}, "made: 2024-01-02\nb: 1\n"),
        ("\ufeffa: 1\n", {"b": "größe"}, "\ufeffa: 1\nb: größe\n"),
    ],
)
def test_only_what_is_added_changes(before: str, values: dict[str, Any], after: str) -> None:
    made = changed(before, **values)
    assert made == after
    assert changed(made) == made


def test_a_part_used_twice_can_t_differ() -> None:
    with pytest.raises(TrainyardError, match=r"f\.yaml:1: a part that is used in several places .* \(no alias\)"):
        changed("a: &x {b: 1}\nc: *x\n", a__d=2)


def test_what_is_no_yaml() -> None:
    with pytest.raises(UsageError, match="invalid YAML: "):
        edited("a: [", "f.yaml", [{}])
