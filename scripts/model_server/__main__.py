"""Entry point of the server images: `python3 -m model_server`, with settings in the environment."""

from __future__ import annotations

import os
import sys

from model_server import settings
from model_server.errors import ServerError


def main() -> int:
    """Serves until told to end: 0; 1 when the model can't be served."""
    try:
        found = settings.read()
        # Libraries read it when they are loaded, so before the rest is imported. What they offer instead holds for the
        # calling thread alone, and the one that loads a model is not the one that computes.
        os.environ["OMP_NUM_THREADS"] = str(found.threads)
        from model_server import serve

        serve.run(found)
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
