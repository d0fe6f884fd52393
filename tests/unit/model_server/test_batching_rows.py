"""Requests that share a batch get their own rows, even if a model returns another number of rows."""

import asyncio

import numpy as np

from model_server.batching import Arrays, Batcher


def answers(model: object, *requests: list[float]) -> list[list[float]]:
    """The answer to each request when all wait for one batch."""

    async def asked() -> list[list[float]]:
        batcher = Batcher(model, shares=True, max_batch=8, wait_s=0.2, max_queue=8)  # type: ignore[arg-type]
        batcher.start()
        try:
            waiting = [batcher.infer({"x": np.array(rows, "float32")}) for rows in requests]
            return [found["y"].tolist() for found in await asyncio.gather(*waiting)]
        finally:
            await batcher.stop()

    return asyncio.run(asked())


def test_each_gets_its_own_rows() -> None:
    assert answers(lambda given: {"y": given["x"] * 2}, [1.0], [2.0, 3.0], [4.0]) == [[2.0], [4.0, 6.0], [8.0]]


def test_a_model_that_drops_rows_moves_nobody_s_into_another_answer() -> None:
    def dropping(given: Arrays) -> Arrays:
        return {"y": given["x"][given["x"] > 0]}

    assert answers(dropping, [-1.0], [2.0, 3.0], [4.0]) == [[], [2.0, 3.0], [4.0]]
