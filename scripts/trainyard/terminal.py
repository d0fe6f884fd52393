"""What a terminal takes and its reader wants; nothing of it goes into files and logs."""

from __future__ import annotations

import os
from typing import TextIO


def redrawable(stream: TextIO) -> bool:
    """Whether lines that were written can be written anew."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def coloured(stream: TextIO) -> bool:
    """Whether colours are shown: on a terminal that has them, unless NO_COLOR is set."""
    return redrawable(stream) and not os.environ.get("NO_COLOR")
