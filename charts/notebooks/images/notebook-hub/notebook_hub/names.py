"""Names of notebooks, made from the person's name, so that the API server can tell whose one is.

The admission rule policies/notebook-names.yaml writes names the same way.
"""

from __future__ import annotations

import re

PREFIX = "trainyard-notebook-"
LABEL = "trainyard.io/notebook"
LONGEST = 63  # of a pod's name, which becomes its host's name
# Characters that the admission rule supports, too; other names could never have a notebook. Nor one with a slash:
# hub and proxy would take it for a server or a page of the person named before the slash.
SIGNS = frozenset("-._@+:|#=~")
PERSON = re.compile(rf"[A-Za-z0-9{re.escape(''.join(sorted(SIGNS)))}]+")


class UnfitNameError(ValueError):
    """A person's name from which no notebook's name can be made."""


def slug(person: str) -> str:
    """A person's name as part of an object's: lower-case letters and digits stay, others become `-` and their number.

    No two persons have the same.

    Raises:
        UnfitNameError: the name is empty, has a character that the rule doesn't support, or is too long.
    """
    if not PERSON.fullmatch(person):
        known = " ".join(sorted(SIGNS))
        raise UnfitNameError(
            f"no notebook can be named after {person!r}: a name has letters a to z, digits and {known}"
        )
    made = "".join(one if one.islower() or one.isdigit() else f"-{ord(one):02x}" for one in person)
    if len(PREFIX + made) > LONGEST:
        room = LONGEST - len(PREFIX)
        raise UnfitNameError(
            f"no notebook can be named after {person!r}: written for a pod it has {len(made)} signs of {room}; "
            "give the hub a shorter claim of the person as oidc.usernameClaim"
        )
    return made


def notebook(person: str) -> str:
    """Name of a person's notebook: of its pod and of its home. Raises UnfitNameError."""
    return PREFIX + slug(person)


def secret(person: str, mark: str) -> str:
    """Name of the Secret of one start of a person's notebook; `mark` tells starts apart. Raises UnfitNameError."""
    return f"{notebook(person)}.{mark}"
