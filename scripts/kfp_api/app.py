"""Routes, and what holds for every request: a token, limits of size and number, refusals in KFP's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from kfp_api import experiments, pipelines, recurring, runs
from kfp_api.call import Call, Service
from kfp_api.caller import Caller, Cluster
from kfp_api.errors import Code, RefusalError, invalid, logged, of
from kfp_api.turns import Turns
from trainyard.errors import TrainyardError

API = "/apis/v2beta1"
LARGEST = 4 << 20  # bytes of a body
ARRIVES_S = 60.0  # a whole body
# Requests that bring or translate a pipeline.
PIPELINES = ("/runs", "/recurringruns", "/upload", "/upload_version", "/versions", ":retry")
SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-store", "referrer-policy": "no-referrer"}
Answer = Callable[[Call], Any]


def routes(service: Service, cluster: Cluster) -> list[BaseRoute]:
    """The routes of KFP's API."""

    turns = Turns()

    def route(method: str, path: str, answer: Answer) -> Route:
        async def endpoint(request: Request) -> Response:
            return await answered(request, answer, service, cluster, turns)

        return Route(API + path, endpoint, methods=[method])

    found = [Route(f"{API}/healthz", _health, methods=["GET"]), route("GET", "/auth", _authorized)]
    for part in (experiments, pipelines, runs, recurring):
        found += [route(*one) for one in part.ROUTES]
    return [*found]


def build(service: Service, cluster: Cluster) -> Starlette:
    """The application."""
    handlers: Any = {404: _unknown, 405: _unknown}
    made = Starlette(routes=routes(service, cluster), exception_handlers=handlers)
    made.router.redirect_slashes = False  # a redirection would use the host name that the client sends
    return made


async def answered(request: Request, answer: Answer, service: Service, cluster: Cluster, turns: Turns) -> Response:
    """The answer as JSON, or the refusal; never a traceback. Nothing is read of a caller whom nobody knows."""
    try:
        if {"content-length", "transfer-encoding"} <= {*request.headers}:
            raise invalid("the request has two lengths, Content-Length and Transfer-Encoding")
        caller, token = cluster.caller(bearer(request)), bearer(request)
        async with turns.of(token, heavy=False):
            await run_in_threadpool(caller.known)
        heavy = request.method == "POST" and request.url.path.endswith(PIPELINES)
        async with body(request, turns) as whole, turns.of(token, heavy=heavy):
            call = await read(request, service, caller, whole)
            return await run_in_threadpool(lambda: written(answer(call)))
    except Exception as error:
        return refused(error, request)


def written(found: Any) -> Response:
    """The answer as JSON. Members' files may have numbers, and halves of letters, that no client could read."""
    if isinstance(found, Response):
        return found
    try:
        text = json.dumps(found, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(found), parse_constant=str))
    except RecursionError:
        raise RefusalError(Code.FAILED_PRECONDITION, "the answer nests too many collections") from None
    return Response(text, headers=SAFE, media_type="application/json")


def refused(error: Exception, request: Request) -> Response:
    """The response for an error. What nobody foresaw is printed without the request's content."""
    refusal = refusal_of(error, request)
    headers = SAFE | ({"www-authenticate": "Bearer"} if refusal.code == Code.UNAUTHENTICATED else {})
    headers |= {"connection": "close"} if {"content-length", "transfer-encoding"} & {*request.headers} else {}
    return JSONResponse(refusal.body(), refusal.http, headers=headers)


def refusal_of(error: Exception, request: Request) -> RefusalError:
    """The refusal for any error."""
    if isinstance(error, RefusalError):
        return error
    if isinstance(error, TrainyardError):
        return of(error)
    if isinstance(error, ClientDisconnect):
        return RefusalError(Code.INVALID_ARGUMENT, "the client went away", http=499)
    if isinstance(error, (MultiPartException, HTTPException)):
        return invalid("the upload is not multipart form data with one file, uploadfile")
    logged(f"{request.method} {request.url.path[:200]!r}", error)
    return RefusalError(Code.INTERNAL, f"the service failed: {type(error).__name__}; see its log")


def bearer(request: Request) -> str:
    """The token of a request's header; "" without one."""
    given = request.headers.getlist("authorization")  # of several, each server on the way might choose another
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


@asynccontextmanager
async def body(request: Request, turns: Turns) -> AsyncIterator[bytes]:
    """The whole body. Raises RefusalError for one that is too large or too slow."""
    whole, large = (
        bytearray(),
        RefusalError(Code.INVALID_ARGUMENT, f"the body is larger than {LARGEST >> 20} MiB", http=413),
    )
    try:
        if int(request.headers.get("content-length", "0")) > LARGEST:
            raise large
        try:
            async with asyncio.timeout(ARRIVES_S):
                async for piece in request.stream():
                    turns.hold(len(piece))
                    whole += piece
                    if len(whole) > LARGEST:
                        raise large
        except TimeoutError:
            what = f"the body did not arrive within {ARRIVES_S:.0f} s"
            raise RefusalError(Code.INVALID_ARGUMENT, what, http=408) from None
        yield bytes(whole)
    finally:
        turns.hold(-len(whole))


async def read(request: Request, service: Service, caller: Caller, whole: bytes) -> Call:
    """The request with its body and the files in it."""
    files = {}
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        files = await _files(request, whole)
    return Call(service, caller, request.path_params, dict(request.query_params), whole, files)


async def _files(request: Request, body: bytes) -> dict[str, tuple[str, bytes]]:
    async def again() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    found = {}
    async with Request(request.scope, again).form(max_files=2, max_fields=20) as form:
        for name, one in form.items():
            if not isinstance(one, str):
                found[name] = (one.filename or "", await one.read())
    return found


async def _health(request: Request) -> Response:
    return JSONResponse({"multi_user": True, "pipeline_store": "kubernetes"}, headers=SAFE)


def _authorized(call: Call) -> Any:
    """Whether the caller may look into a namespace: KFP's viewers ask this."""
    namespace = call.query.get("namespace", "")
    if namespace not in call.caller.teams():
        raise RefusalError(Code.PERMISSION_DENIED, f"{call.caller.user()} may not see {namespace[:63]!r}")
    return {}


async def _unknown(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    what = "knows no" if status == 404 else f"does not allow {request.method} on"
    refusal = RefusalError(
        Code.UNIMPLEMENTED, f"this service {what} {request.url.path[:200]}; docs/kfp-client.md lists what works"
    )
    return JSONResponse(refusal.body(), status, headers=SAFE)
