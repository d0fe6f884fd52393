"""Batching of waiting requests: one thread computes while the next batch is collected.

Without a waiting time (`wait_s` 0) a single request starts at once, and batches only grow under load.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from model_server.errors import BusyError

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], Arrays]
Observe = Callable[[int, float], None]


@dataclass
class _Waiting:
    arrays: Arrays
    rows: int
    answer: asyncio.Future[Arrays] = field(repr=False)

    @property
    def kind(self) -> tuple[tuple[str, np.dtype, tuple[int, ...]], ...]:
        """Key of requests that may share a batch: the same inputs with rows of one shape."""
        return tuple((name, one.dtype, one.shape[1:]) for name, one in sorted(self.arrays.items()))


class Batcher:
    """Answers requests with a model that computes one batch at a time.

    Args:
        run: the model; called in the batcher's own thread.
        shares: whether requests may share a batch.
        max_batch: maximum rows of a batch; a larger request is computed in parts.
        wait_s: seconds that a batch waits for additional rows.
        max_queue: maximum number of waiting requests.
        observe: called with the rows and seconds of each computation.
    """

    def __init__(
        self, run: Run, *, shares: bool, max_batch: int, wait_s: float, max_queue: int, observe: Observe | None = None
    ) -> None:
        self._run, self._shares, self._max_batch = run, shares, max_batch
        self._wait_s, self._max_queue, self._observe = wait_s, max_queue, observe
        self._queue: deque[_Waiting] = deque()
        self._more = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "model")
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def alive(self) -> bool:
        """Whether requests are being answered."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Starts answering. Needs a running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Stops answering; waiting callers get BusyError."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for one in self._queue:
            if not one.answer.done():
                one.answer.set_exception(BusyError("the server is shutting down", hint="retry"))
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def infer(self, arrays: Arrays) -> Arrays:
        """The model's outputs for one request. Raises BusyError if the queue is full, and any error of the model."""
        if len(self._queue) >= self._max_queue:
            raise BusyError(f"{len(self._queue)} requests are already waiting", hint="retry in a second")
        rows = len(next(iter(arrays.values()))) if self._shares else 1
        one = _Waiting(arrays, rows, asyncio.get_running_loop().create_future())
        self._queue.append(one)
        self._more.set()
        return await one.answer

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._gather()
            if not batch:
                continue
            results = await loop.run_in_executor(self._thread, self._compute, batch)
            for one, result in zip(batch, results, strict=True):
                if one.answer.done():  # the client has disconnected
                    continue
                if isinstance(result, BaseException):
                    one.answer.set_exception(result)
                else:
                    one.answer.set_result(result)

    async def _gather(self) -> list[_Waiting]:
        while not self._queue:
            self._more.clear()
            await self._more.wait()
        if self._wait_s and self._shares:
            end = time.monotonic() + self._wait_s
            while sum(one.rows for one in self._queue) < self._max_batch and (left := end - time.monotonic()) > 0:
                self._more.clear()
                try:
                    await asyncio.wait_for(self._more.wait(), left)
                except TimeoutError:
                    break
        batch: list[_Waiting] = []
        rows = 0
        while self._queue:
            one = self._queue[0]
            if one.answer.done():
                self._queue.popleft()
                continue
            if batch and (not self._shares or rows + one.rows > self._max_batch or one.kind != batch[0].kind):
                break
            batch.append(self._queue.popleft())
            rows += one.rows
        return batch

    def _compute(self, batch: list[_Waiting]) -> list[Arrays | BaseException]:
        """In the model's thread: outputs of each request; if a shared batch fails, computes each request on its own."""
        try:
            if len(batch) == 1:
                return [self._parts(batch[0])]
            joined = {name: np.concatenate([one.arrays[name] for one in batch]) for name in batch[0].arrays}
            rows = sum(one.rows for one in batch)
            outputs = self._timed(joined, rows)
            if any(len(value) != rows for value in outputs.values()):  # the rows can't be assigned to requests
                return [result for one in batch for result in self._compute([one])]
            ends = np.cumsum([one.rows for one in batch])[:-1]
            split = {name: np.split(value, ends) for name, value in outputs.items()}
            return [{name: parts[at] for name, parts in split.items()} for at in range(len(batch))]
        except Exception as error:  # any error of the framework goes to its caller
            if len(batch) == 1:
                return [error]
            return [result for one in batch for result in self._compute([one])]

    def _parts(self, one: _Waiting) -> Arrays:
        if one.rows <= self._max_batch:
            return self._timed(one.arrays, one.rows)
        found = []
        for start in range(0, one.rows, self._max_batch):
            part = {name: value[start : start + self._max_batch] for name, value in one.arrays.items()}
            found.append(self._timed(part, min(self._max_batch, one.rows - start)))
        return {name: np.concatenate([part[name] for part in found]) for name in found[0]}

    def _timed(self, arrays: Arrays, rows: int) -> Arrays:
        began = time.perf_counter()
        outputs = self._run(arrays)
        if self._observe:
            self._observe(rows, time.perf_counter() - began)
        return outputs
