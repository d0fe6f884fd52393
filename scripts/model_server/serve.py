"""Runs the server: opens the ports, loads the model, and becomes ready once the model has answered.

After SIGTERM the server is no longer ready, but accepts requests for `drain_s`, until clients have noticed. Then it
closes the ports, and answers pending requests within `grace_s`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

import uvicorn
from starlette.applications import Starlette

from model_server import admin, app, contract, lines, loaders
from model_server.batching import Batcher
from model_server.errors import CardError
from model_server.keys import Keys
from model_server.loaders import Runner
from model_server.metrics import Metrics
from model_server.settings import Settings
from model_server.state import ENDING, READY, State
from model_server.warm import warm

_KEEP_ALIVE_S = 75  # longer than the 60 s of most proxies, which might else send a request while the connection closes


class _Server(uvicorn.Server):
    """A server that leaves signals to `_serve`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT. Raises ServerError if the model can't be served."""
    card = contract.read(settings.model_dir)
    _expected(settings, card)
    keys = Keys(settings.keys_file) if settings.keys_file else None
    state = State(settings, card, Metrics(card), keys)
    try:
        import uvloop
    except ModuleNotFoundError:
        asyncio.run(_serve(state))
    else:
        uvloop.run(_serve(state))


async def _serve(state: State) -> None:
    settings, loop = state.settings, asyncio.get_running_loop()
    ending = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, ending.set)
    servers = [
        _server(app.build(state), settings, settings.port),
        _server(admin.build(state), settings, settings.admin_port),
    ]
    serving = [asyncio.create_task(one.serve()) for one in servers]
    ended = asyncio.create_task(ending.wait())
    loading = asyncio.create_task(_load(state))
    try:
        await asyncio.wait([ended, loading, *serving], return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            loading.result()
            await asyncio.wait([ended, *serving], return_when=asyncio.FIRST_COMPLETED)
        state.enter(ENDING)
        if not any(one.done() for one in serving):
            _say(f"is no longer ready; accepts requests for {settings.drain_s:g} s more")
            await asyncio.sleep(settings.drain_s)
    finally:
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*serving)
        ended.cancel()
        loading.cancel()
        if state.batcher:
            await state.batcher.stop()
    _say("ended")


async def _load(state: State) -> None:
    """Loads and warms the model, while both ports answer."""
    began = time.monotonic()
    settings, card = state.settings, state.card
    runner = await _aside(lambda: _loaded(settings, card))
    batcher = Batcher(
        runner.run,  # type: ignore[arg-type]  # a dict is a mapping
        shares=card.batches,
        max_batch=settings.max_batch,
        wait_s=settings.batch_wait_ms / 1000,
        max_queue=settings.max_queue,
        observe=state.metrics.batch,
    )
    batcher.start()
    state.batcher = batcher
    if state.phase != ENDING:
        state.enter(READY)
        what = f"{card.name} {card.version} ({card.framework}, on {runner.device})"
        _say(f"serves {what} after {time.monotonic() - began:.1f} s")


def _aside(work: Callable[[], Runner]) -> asyncio.Future[Runner]:
    """Runs `work` in a daemon thread, so that a server that is terminated while loading ends at once."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Runner] = loop.create_future()

    def settle(result: Runner | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def body() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=body, name="loading", daemon=True).start()
    return done


def _loaded(settings: Settings, card: contract.Card) -> Runner:
    contract.check(settings.model_dir, card)
    runner = loaders.load(settings.model_dir, card, settings.threads)
    warm(runner, card, settings.max_batch)
    return runner


def _server(application: Starlette, settings: Settings, port: int) -> _Server:
    config = uvicorn.Config(
        application,
        host=settings.host,
        port=port,
        lifespan="off",
        http=lines.patient(settings.head_s),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=2048,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(settings.grace_s)),
    )
    return _Server(config)


def _expected(settings: Settings, card: contract.Card) -> None:
    for name, wanted, found in (
        ("MODEL_NAME", settings.model_name, card.name),
        ("MODEL_VERSION", settings.model_version, card.version),
    ):
        if wanted and wanted != found:
            where = str(settings.model_dir / contract.CARD)
            raise CardError(f"is {found}, but {name} says {wanted}", where=where, hint="mount the intended model")


def _say(text: str) -> None:
    print(f"model_server {text}", flush=True)
