"""How a notebook is called: by its person's name, so that the API server can tell whose it is.

The admission rule policies/notebook-names.yaml writes names the same way.
"""

from __future__ import annotations

import re

PREFIX = "trainyard-notebook-"
LABEL = "trainyard.io/notebook"
LONGEST = 63  # of a pod's name, which becomes its host's name
# What the admission rule knows to write, too. A name with other signs could never have a notebook. One with a slash
# neither: hub and proxy would take it for a server or a page of the person whose name stands before.
SIGNS = frozenset("-._@+:|#=~")
PERSON = re.compile(rf"[A-Za-z0-9{re.escape(''.join(sorted(SIGNS)))}]+")


class UnfitNameError(ValueError):
    """A person's name that no notebook can have."""


def slug(person: str) -> str:
    """A person's name as part of an object's: lower-case letters and digits stay, others become `-` and their number.

    No two persons have the same.

    Raises:
        UnfitNameError: the name is empty, has a sign that the rule of names doesn't know, or is too long for a pod.
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
