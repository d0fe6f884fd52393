"""Closes connections without a timely request, so that an idle client can't occupy the server."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


def patient(seconds: float) -> type[Any]:
    """uvicorn's protocol with a time limit for the head of a request; uvicorn itself has none.

    Time counts from the connection, or from the first data after an answer; the application limits a begun request.
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
