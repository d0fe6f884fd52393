"""Port 8081, for kubelet and Prometheus: health, readiness with its reason, metrics. It requires no key."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from model_server.metrics import CONTENT_TYPE
from model_server.state import READY, State


def build(state: State) -> Starlette:
    """The application of the admin port."""

    async def healthz(request: Request) -> Response:
        dead = state.phase == READY and not state.ready
        return PlainTextResponse("the server no longer answers requests\n" if dead else "ok\n", 503 if dead else 200)

    async def readyz(request: Request) -> Response:
        return PlainTextResponse("ok\n" if state.ready else f"not ready: {state.phase}\n", 200 if state.ready else 503)

    async def metrics(request: Request) -> Response:
        state.metrics.waiting.set(state.batcher.waiting if state.batcher else 0)
        state.metrics.ready.set(state.ready)
        return Response(state.metrics.page(), headers={"content-type": CONTENT_TYPE})

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)])
