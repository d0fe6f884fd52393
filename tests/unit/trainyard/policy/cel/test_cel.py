"""The evaluator as its callers use it: places, errors, custom values.

tests/policies/test_cel.py holds values against a real API server; what the policies say is in test_policy_offline.
"""

from typing import Any

import pytest

from trainyard.policy import cel

OBJECT: dict[str, Any] = {"a": {"b": [1, 2, 3]}, "s": "x,y", "t": True, "c": [{"name": "one", "image": "i"}]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 == 7 && !(2 > 3)", True),
        ("o.a.?c.orValue('none')", "none"),
        ("has(o.a.b) && !has(o.a.x)", True),
        ("o.a[?'b'][?7].orValue(-1)", -1),
        ("dyn('2') in [2, '2']", True),
        ("'a' in {'a': 1} ? \"yes\" : 'no'", "yes"),
        ("o.map(k, k)", ["a", "s", "t", "c"]),
        ("o.missing == 1 || true", True),
        ("true || o.missing == 1", True),
        ("false && o.missing == 1", False),
        ("type(o.s) == string && type(o.t) != string", True),
        ("o.a.b.all(n, n > 0) && o.a.b.exists(n, n == 3)", True),
        ("[0, 1].exists(n, 1 / n == 1) && ![0, 2].all(n, 1 / n == 1)", True),
        ("'\\u0041'", "A"),
    ],
)
def test_value(text: str, value: object) -> None:
    assert cel.compile(text)({"o": cel.place(OBJECT)}) == value


@pytest.mark.parametrize(
    "text", ["o.a.b[9]", "'a' + 1", "o.s.sum()", "1 ? 2 : 3", "quantity('lots')", "-'a'", "[0].all(n, 1 / n == 1)"]
)
def test_an_evaluation_that_fails_is_a_cel_error(text: str) -> None:
    with pytest.raises(cel.CelError):
        cel.compile(text)({"o": cel.place(OBJECT)})


@pytest.mark.parametrize("text", ["", "1 +", "(1", "a ? b", "x.map(", "has(1)", "'open", "f(1)", "1 2", "#"])
def test_what_is_no_expression_is_a_cel_error(text: str) -> None:
    with pytest.raises(cel.CelError):
        cel.compile(text)


@pytest.mark.parametrize("text", ["timestamp('x')", "cidr('x').masked()", "a.B{c: 1}"])
def test_what_no_rule_needs_is_refused_by_name(text: str) -> None:
    with pytest.raises(cel.CelError, match="not evaluated here"):
        cel.compile(text)({})


def test_a_null_of_an_object_is_missing() -> None:
    assert cel.compile("has(o.a) || o.?b.hasValue()")({"o": cel.place({"a": None, "b": None})}) is False


class Host:
    """A value of the caller."""

    def cel_select(self, name: str) -> str:
        return name

    def cel_call(self, name: str, arguments: list[Any]) -> Any:
        return [name, *arguments]


def test_values_of_the_caller_answer_themselves() -> None:
    scope = {"h": Host()}
    assert cel.compile("h.a + h.?b.orValue('none')")(scope) == "ab"
    assert cel.compile("has(h.a) && h.check('use') == ['check', 'use']")(scope) is True


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("'image ' + o.c[0].image + ' is loose'", ("c", 0, "image")),
        ("o.c[0].?command.orValue('') + '?'", ("c", 0, "command")),
        ("o.?x.?y.orValue('')", ("x", "y")),
        ("'nothing'", None),
    ],
)
def test_a_message_knows_its_place(text: str, path: tuple[str, ...] | None) -> None:
    assert cel.path(cel.compile(text)({"o": cel.place(OBJECT)})) == path
