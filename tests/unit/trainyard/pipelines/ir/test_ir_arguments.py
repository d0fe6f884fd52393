"""Parameters on the command line."""

from __future__ import annotations

import pytest

from trainyard.errors import UsageError
from trainyard.pipelines.ir import arguments


def test_names_and_texts() -> None:
    assert arguments.split(["epochs=3", "note=a=b, c", "empty="]) == {"epochs": "3", "note": "a=b, c", "empty": ""}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["epochs"], "--param 'epochs' is not NAME=VALUE. write for example --param epochs=3"),
        (["=3"], "--param '=3' is not NAME=VALUE"),
        (["epochs=3", "epochs=4"], "--param epochs is given twice"),
    ],
)
def test_what_is_wrong(given: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        arguments.split(given)
    assert words in str(caught.value)
