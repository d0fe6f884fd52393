"""Terminal control characters: which are safe to show, and when to use them."""

import os
import re
from typing import TextIO

# Control sequences that a terminal executes: colours, which are kept, and those that move the cursor, set titles,
# answer, or clear. A tab and a carriage return, as in progress bars, are also kept.
_OBEYED = re.compile(rb"\x1b\[[0-9;:]*m|[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


def redrawable(stream: TextIO) -> bool:
    """Whether written lines can be overwritten."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def coloured(stream: TextIO) -> bool:
    """Whether to show colours: on a terminal that supports them, unless NO_COLOR is set."""
    return redrawable(stream) and not os.environ.get("NO_COLOR")


def printable(text: str) -> str:
    """One line of untrusted text, with `?` for characters that move the cursor, begin a line or reverse text."""
    return "".join(one if one.isprintable() else "?" for one in text)


def harmless(line: bytes) -> bytes:
    """A line of another program's output that is safe for a terminal: control characters are written as text (`^[`)."""

    def shown(found: re.Match[bytes]) -> bytes:
        obeyed = found[0]
        if obeyed.endswith(b"m") and len(obeyed) > 1:
            return obeyed
        return b"?" if len(obeyed) > 1 else b"^" + bytes([obeyed[0] ^ 0x40])

    return _OBEYED.sub(shown, line)
