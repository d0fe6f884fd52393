"""Plain data as JSON, or as YAML that every parser reads alike.

Words that are booleans in YAML 1.1 are quoted, so that strings remain strings.
"""

import json
import re
from typing import Any

import yaml

AMBIGUOUS = re.compile(r"^(?:y|n|yes|no|on|off|true|false|null|~)$", re.IGNORECASE)


class _Dumper(yaml.SafeDumper):
    """Quotes strings that a YAML 1.1 parser would not read as strings; writes long strings as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if AMBIGUOUS.match(value) else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def text(value: Any, form: str) -> str:
    """The value as json or yaml, with a final line ending."""
    if form == "json":
        return json.dumps(value, indent=2) + "\n"
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
