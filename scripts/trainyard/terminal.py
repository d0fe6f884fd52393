"""What a terminal takes and its reader wants, and files and logs must not get."""

import os
import re
from typing import TextIO

# What a terminal obeys: colours, which stay, and all that moves the cursor, sets titles, answers, or clears. A tab and
# a line that is rewritten, as progress bars do, stay as well.
_OBEYED = re.compile(rb"\x1b\[[0-9;:]*m|[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


def redrawable(stream: TextIO) -> bool:
    """Whether lines that were written can be rewritten."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def coloured(stream: TextIO) -> bool:
    """Whether colours are shown: on a terminal that has them, unless NO_COLOR is set."""
    return redrawable(stream) and not os.environ.get("NO_COLOR")


def printable(text: str) -> str:
    """One line of text out of somebody else's data: what moves a cursor, begins a line or writes backwards is `?`."""
    return "".join(one if one.isprintable() else "?" for one in text)


def harmless(line: bytes) -> bytes:
    """A line of somebody else's program as it may be shown on a terminal: what is no text is written as text (`^[`)."""

    def shown(found: re.Match[bytes]) -> bytes:
        obeyed = found[0]
        if obeyed.endswith(b"m") and len(obeyed) > 1:
            return obeyed
        return b"?" if len(obeyed) > 1 else b"^" + bytes([obeyed[0] ^ 0x40])

    return _OBEYED.sub(shown, line)
