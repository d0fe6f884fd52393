"""Turns of requests: nobody takes all threads, and few things that cost seconds happen at once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kfp_api.errors import Code, RefusalError

EACH = 8  # requests of one caller that are answered at once; others wait
HEAVY = 2  # requests with a pipeline that are answered at once
HELD = 64 << 20  # bytes of bodies in memory


class Turns:
    """The turns of one process, in its event loop."""

    def __init__(self) -> None:
        self._callers: dict[str, tuple[asyncio.Semaphore, asyncio.Semaphore, list[None]]] = {}
        self._heavy, self._held = asyncio.Semaphore(HEAVY), 0

    @asynccontextmanager
    async def of(self, token: str, *, heavy: bool) -> AsyncIterator[None]:
        """Waits for the caller's turn. Of several callers with heavy requests, each has one in the queue."""
        key = hashlib.sha256(token.encode()).hexdigest()
        all_, own, waiting = self._callers.setdefault(key, (asyncio.Semaphore(EACH), asyncio.Semaphore(1), []))
        waiting.append(None)
        try:
            if heavy:
                async with own, self._heavy:
                    yield
            else:
                async with all_:
                    yield
        finally:
            waiting.pop()
            if not waiting:
                self._callers.pop(key, None)

    def hold(self, size: int) -> None:
        """Counts bytes of a body; negative ones are released. Raises RefusalError: there are too many."""
        if size > 0 and self._held + size > HELD:
            raise RefusalError(Code.RESOURCE_EXHAUSTED, "too many large requests at once; send it again later")
        self._held += size
