"""Port 8080: the Open Inference Protocol, plain predictions, and the page.

Without a key, only health and the page are served.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from model_server import codec
from model_server.errors import BusyError, LateError, NotFoundError, ServerError, TooLargeError
from model_server.state import ENDING, State

Answer = Callable[[State, Request], Awaitable[Response]]

ASSETS = Path(__file__).parent / "assets"
_BINARY = "inference-header-content-length"
_PAGES = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def build(state: State) -> Starlette:
    """The application of the model's port."""

    def route(path: str, method: str, answer: Answer, *, open_to_all: bool = False) -> Route:
        return Route(path, partial(_guarded, state, answer, open_to_all), methods=[method])

    model = "/v2/models/{name}"
    routes = [
        route("/v2/health/live", "GET", _live, open_to_all=True),
        route("/v2/health/ready", "GET", _ready, open_to_all=True),
        route("/v2", "GET", _server),
        route("/predict", "POST", _predict),
        route("/card", "GET", _card),
        *(route(path, "GET", partial(_page, *what), open_to_all=True) for path, what in _PAGES.items()),
    ]
    for at in (model, model + "/versions/{version}"):
        routes += [
            route(at, "GET", _metadata),
            route(f"{at}/ready", "GET", _model_ready),
            route(f"{at}/infer", "POST", _infer),
        ]
    made = Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing})
    # A redirection would use the host name that the client sends.
    made.router.redirect_slashes = False
    return made


async def _guarded(state: State, answer: Answer, open_to_all: bool, request: Request) -> Response:
    """The answer, or a description of the error; never a traceback."""
    try:
        if state.keys and not open_to_all and not state.keys.allow(request.headers.get("authorization", "")):
            hint = "send a key of this model as `Authorization: Bearer KEY`"
            failed = _failure(ServerError("key required", where=request.url.path[:200], hint=hint), 401)
            failed.headers["www-authenticate"] = "Bearer"
            failed.headers["connection"] = "close"  # the rest of the request is not read
            return _closing(state, failed)
        return _closing(state, await answer(state, request))
    except ServerError as error:
        return _closing(state, _failure(error, error.status))
    except ClientDisconnect:
        return _failure(ServerError("disconnected", where="client"), 499)
    except Exception as error:  # errors of the model about values that it can't process
        print(f"{request.url.path}: {type(error).__name__}: {error}", flush=True)
        what = f"the model failed: {type(error).__name__}"
        return _closing(state, _failure(ServerError(what, hint="see the server's log"), 500))


def _closing(state: State, response: Response) -> Response:
    """While the server ends, makes clients reconnect, which leads them to another server."""
    if state.phase == ENDING:
        response.headers["connection"] = "close"
    return response


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _failure(error: ServerError, status: int) -> Response:
    said = {"error": str(error), "what": error.what, "where": error.where, "hint": error.hint}
    response = _json(said, status)
    if status == 503:
        response.headers["retry-after"] = "1"
    if status == LateError.status:
        response.headers["connection"] = "close"
    return response


async def _nothing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    what = "not found" if status == 404 else f"method {request.method} not allowed"
    hint = "use /v2/models/NAME/infer or /predict, both by POST"
    return _failure(NotFoundError(what, where=request.url.path[:200], hint=hint), status)


async def _live(state: State, request: Request) -> Response:
    return _json({"live": True})


async def _ready(state: State, request: Request) -> Response:
    return _json({"ready": state.ready}, 200 if state.ready else 503)


async def _server(state: State, request: Request) -> Response:
    return _json({"name": "trainyard", "version": "2", "extensions": ["binary_tensor_data"]})


async def _card(state: State, request: Request) -> Response:
    return _json(state.card.document())


async def _metadata(state: State, request: Request) -> Response:
    _named(state, request)
    return _json(codec.metadata(state.card))


async def _model_ready(state: State, request: Request) -> Response:
    _named(state, request)
    return _json({"name": state.card.name, "ready": state.ready}, 200 if state.ready else 503)


async def _page(file: str, kind: str, state: State, request: Request) -> Response:
    return Response((ASSETS / file).read_bytes(), media_type=f"{kind}; charset=utf-8", headers=_SAFE)


async def _infer(state: State, request: Request) -> Response:
    async def answer() -> Response:
        _named(state, request)
        body = await _body(state, request)
        asked = codec.infer_request(state.card, body, request.headers.get(_BINARY, ""))
        found = await _model(state, asked)
        blob, head = codec.infer_answer(state.card, asked, found)
        if not head:
            return Response(blob, media_type="application/json")
        return Response(blob, media_type="application/octet-stream", headers={_BINARY: str(head)})

    return await _counted(state, request, "infer", answer)


async def _predict(state: State, request: Request) -> Response:
    async def answer() -> Response:
        asked = codec.predict_request(state.card, await _body(state, request))
        found = await _model(state, asked)
        headers = {"x-model-version": state.card.version}
        return Response(codec.predict_answer(state.card, found), media_type="application/json", headers=headers)

    return await _counted(state, request, "predict", answer)


async def _model(state: State, asked: codec.Request) -> codec.Arrays:
    if state.batcher is None:
        raise BusyError("the model is not loaded yet", where=state.card.name, hint="retry in a second")
    return await state.batcher.infer(asked.arrays)


async def _counted(state: State, request: Request, way: str, answer: Callable[[], Awaitable[Response]]) -> Response:
    began, code = time.perf_counter(), 500
    state.metrics.in_flight.inc()
    try:
        response = await answer()
        code = response.status_code
        return response
    except ServerError as error:
        code = error.status
        raise
    except ClientDisconnect:
        code = 499
        raise
    finally:
        state.held -= getattr(request.state, "held", 0)
        state.metrics.in_flight.dec()
        state.metrics.request(way, code, time.perf_counter() - began)


def _named(state: State, request: Request) -> None:
    """Raises NotFoundError unless the path names this server's model and version."""
    name, version = request.path_params["name"], request.path_params.get("version")
    if name != state.card.name:
        raise NotFoundError(f"no model {name[:80]}", hint=f"this server serves {state.card.name}")
    if version not in (None, state.card.version):
        hint = f"this server serves {state.card.version}"
        raise NotFoundError(f"no version {version[:80]} of {name}", hint=hint)


async def _body(state: State, request: Request) -> bytes:
    """The whole body, whose size counts as held until the request is answered.

    Raises:
        TooLargeError: the body exceeds the limit of one request.
        BusyError: the body would exceed the limit of all requests.
        LateError: the body does not arrive in time.
    """
    most = int(state.settings.max_body_mb * 1_000_000)
    said = request.headers.get("content-length", "")
    parts: list[bytes] = []
    size = 0
    if not said.isdecimal() or (len(said) < 16 and int(said) <= most):
        try:
            async with asyncio.timeout(state.settings.body_s):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        break
                    _hold(state, request, len(part))
                    parts.append(part)
                else:
                    return b"".join(parts)
        except TimeoutError:
            what = f"not received within {state.settings.body_s:g} s"
            raise LateError(what, where="body", hint="send the body without pauses") from None
    hint = "send smaller requests, or raise MAX_BODY_MB"
    raise TooLargeError(f"larger than {state.settings.max_body_mb:g} MB", where="body", hint=hint)


def _hold(state: State, request: Request, size: int) -> None:
    if state.held + size > state.settings.max_held_mb * 1_000_000:
        raise BusyError("pending requests fill the server's memory", hint="retry in a second")
    state.held += size
    request.state.held = getattr(request.state, "held", 0) + size
