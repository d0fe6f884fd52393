"""Entry point of the server images: `python3 -m model_server`, with settings in the environment."""

from __future__ import annotations

import sys

from model_server import serve, settings
from model_server.errors import ServerError


def main() -> int:
    """Serves until told to end: 0; 1 when the model can't be served."""
    try:
        serve.run(settings.read())
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
