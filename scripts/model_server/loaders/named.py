"""Maps return values of PyTorch and Keras models, one tensor, several, or a mapping, to the card's outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from model_server.contract import Card
from model_server.errors import CardError


def outputs(card: Card, value: Any, plain: Callable[[Any], np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs by name: a mapping's by its keys, several tensors in the card's order.

    Args:
        plain: converts the framework's tensor to a numpy array.

    Raises:
        CardError: the model returns fewer or other outputs.
    """
    names = [one.name for one in card.outputs]
    if isinstance(value, Mapping):
        if missing := [name for name in names if name not in value]:
            what = f"lacks {', '.join(missing)}; it returns {', '.join(map(str, value))}"
            raise CardError(what, where=card.file, hint="write the names that the model returns")
        return {name: plain(value[name]) for name in names}
    several = list(value) if isinstance(value, list | tuple) else [value]
    if len(several) != len(names):
        what = f"returns {len(several)} outputs, but the card has {len(names)}"
        raise CardError(what, where=card.file, hint="list all outputs in the model's order")
    return {name: plain(one) for name, one in zip(names, several, strict=True)}
