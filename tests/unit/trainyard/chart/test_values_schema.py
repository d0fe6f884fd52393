"""The schema omits only types that other keys imply, and replaces none that it states."""

import pytest

from trainyard.chart.values_schema import Schema, implied


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"properties": {}}, {"type": "object", "additionalProperties": False}),
        ({"type": "object", "properties": {}}, {}),
        ({"additionalProperties": {"type": "integer"}}, {"type": "object"}),
        ({"items": {"enum": ["a", 1]}}, {"type": "array"}),
        ({"pattern": "^a$"}, {"type": "string"}),
        ({"minLength": 1}, {"type": "string"}),
        ({"type": ["string", "integer"], "pattern": "^a$"}, {}),
        ({"$ref": "#/definitions/amount"}, {}),
        ({"minimum": 0}, {}),
    ],
)
def test_what_other_keys_tell(written: Schema, told: Schema) -> None:
    assert implied(written) == written | told


def test_all_schemas_below_and_keys_called_as_words_of_the_schema() -> None:
    below = {"items": {"items": {"pattern": "^a$"}}, "pattern": {"minLength": 1}}
    found = implied({"properties": below})["properties"]
    assert found["items"] == {"type": "array", "items": {"type": "string", "pattern": "^a$"}}
    assert found["pattern"] == {"type": "string", "minLength": 1}
