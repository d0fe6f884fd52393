"""Connections: one that does not ask within its time is closed, so that an address alone holds nobody."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


def patient(seconds: float) -> type[Any]:
    """uvicorn's protocol, which by itself waits forever for the head of a request: it waits so long.

    Time counts from the connection, or from what comes after an answer; a request that has begun is the application's.
    """

    class Patient(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._settle()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._settle()
            elif self._late is None and not self.transport.is_closing():
                self._late = self.loop.call_later(seconds, self._end)

        def _settle(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _end(self) -> None:
            self._late = None
            self.transport.close()

    return Patient
