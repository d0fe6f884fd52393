"""Makes the schema accept renamed values, so that the chart refuses them with a sentence that has the current name."""

import copy
from typing import Any

from trainyard.contract import renamed


def allow(schema: dict[str, Any]) -> dict[str, Any]:
    """A copy of the umbrella's schema that accepts anything for each old name; see `_validate-renamed.tpl`."""
    done = copy.deepcopy(schema)
    for rename in renamed.table():
        parent = done
        for key in rename.old[:-1]:
            parent = parent["properties"][key]
        parent["properties"][rename.old[-1]] = {}
    return done
