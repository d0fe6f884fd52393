"""A screenshot as a picture of the report."""

import base64
import struct
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard_dev.report.model import Picture

_MAGIC = b"\x89PNG\r\n\x1a\n"


def photo(text: str, file: Path) -> Picture:
    """A PNG inside its own SVG document, so that the report stays one file; `text` describes it."""
    raw = file.read_bytes()
    if not raw.startswith(_MAGIC) or len(raw) < 24:
        raise TrainyardError("not a PNG", where=str(file))
    width, height = struct.unpack(">II", raw[16:24])
    size = f'width="{width}" height="{height}"'
    data = base64.b64encode(raw).decode()
    return Picture(
        text,
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">'
        f'<image {size} href="data:image/png;base64,{data}"/></svg>',
    )
