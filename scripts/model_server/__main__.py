"""Entry point of the server images: `python3 -m model_server`, with settings in the environment."""

from __future__ import annotations

import os
import sys

from model_server import settings
from model_server.errors import ServerError


def main() -> int:
    """Serves until terminated and returns 0; returns 1 if the model can't be served."""
    try:
        found = settings.read()
        # Libraries read this while they are imported, so it is set before. The libraries' own functions only affect the
        # calling thread, and the thread that loads a model is not the one that computes.
        os.environ["OMP_NUM_THREADS"] = str(found.threads)
        from model_server import serve

        serve.run(found)
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
