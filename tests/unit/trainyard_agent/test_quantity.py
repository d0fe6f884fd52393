"""Kubernetes' quantities as numbers."""

import pytest

from trainyard_agent.quantity import number, numbers

READ = {
    "92": 92,
    "1500m": 1.5,
    "1Ki": 1024,
    "2Gi": 2**31,
    "0": 0,
    ".5": 0.5,
    "1e3": 1000,
    "1E": 1e18,
    "-1": -1,
    "+2k": 2000,
}


@pytest.mark.parametrize("text", READ)
def test_a_quantity_is_read_as_kubernetes_writes_it(text: str) -> None:
    assert number(text) == READ[text]


@pytest.mark.parametrize("text", ["", "x", "1_0", "1ki", "1 Gi", "1GB", "inf", "nan", "1e999", "\u0661", "9" * 41])
def test_others_are_invalid(text: str) -> None:
    with pytest.raises(ValueError, match="invalid quantity: "):
        number(text)
    assert numbers({"cpu": text, "memory": "1Ki"}) == {"memory": 1024}
