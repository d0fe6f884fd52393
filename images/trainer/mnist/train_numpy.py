"""The PyTorch trainer's twin without PyTorch: `python3 -m mnist.train_numpy --data … --out …`.

The same network, world (env://) and results, computed by numpy. Ranks hand their gradients to rank 0 over TCP at
MASTER_ADDR:MASTER_PORT and get the mean back: right for a few processes on one machine, not for a cluster.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence

import numpy as np

from mnist import data, options, perceptron, store
from mnist.errors import TrainError
from mnist.result import Result
from mnist.world import World, world_of

SEED = 20
PATIENCE_S = 60.0


class Group:
    """Sums over all ranks; every call is made by every rank with vectors of one length."""

    def __init__(self, world: World, port: int) -> None:
        self.world, self._peers = world, []
        if world.size == 1:
            return
        if world.rank == 0:
            with socket.create_server((world.master, port), backlog=world.size) as server:
                server.settimeout(PATIENCE_S)
                try:
                    self._peers = [server.accept()[0] for _ in range(world.size - 1)]
                except TimeoutError:
                    raise TrainError(f"not all of {world.size} ranks came within {PATIENCE_S:.0f} s") from None
        else:
            self._peers = [_connect(world.master, port)]
        for peer in self._peers:
            peer.settimeout(PATIENCE_S)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def total(self, vector: np.ndarray) -> np.ndarray:
        """The sum of all ranks' vectors (float32)."""
        if self.world.size == 1:
            return vector
        try:
            if self.world.rank:
                _send(self._peers[0], vector)
                return _receive(self._peers[0])
            result = vector + sum(_receive(peer) for peer in self._peers)
            for peer in self._peers:
                _send(peer, result)
        except (OSError, struct.error):
            raise TrainError("another rank has gone", hint="read its log: it ended first") from None
        return result

    def close(self) -> None:
        """Ends the connections."""
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.close()


def _connect(host: str, port: int) -> socket.socket:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((host, port), timeout=PATIENCE_S)
        except OSError:
            if time.monotonic() > end:
                raise TrainError(f"rank 0 did not listen at {host}:{port} within {PATIENCE_S:.0f} s") from None
            time.sleep(0.05)


def _send(peer: socket.socket, vector: np.ndarray) -> None:
    blob = vector.astype(np.float32).tobytes()
    peer.sendall(struct.pack("!I", len(blob)) + blob)


def _receive(peer: socket.socket) -> np.ndarray:
    (size,) = struct.unpack("!I", _exactly(peer, 4))
    return np.frombuffer(_exactly(peer, size), dtype=np.float32)


def _exactly(peer: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = peer.recv(count - len(parts))
        if not part:
            raise ConnectionError("closed")
        parts += part
    return bytes(parts)


class Adam:
    """Adam with PyTorch's defaults, on one flat vector."""

    def __init__(self, size: int, lr: float) -> None:
        self.lr, self.step = lr, 0
        self.mean, self.square = np.zeros(size, np.float32), np.zeros(size, np.float32)

    def update(self, grad: np.ndarray) -> np.ndarray:
        """Returns the amount to subtract from the weights."""
        self.step += 1
        self.mean += 0.1 * (grad - self.mean)
        self.square += 0.001 * (grad * grad - self.square)
        mean, square = self.mean / (1 - 0.9**self.step), self.square / (1 - 0.999**self.step)
        return (self.lr * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)


def _apply(model: perceptron.Perceptron, change: np.ndarray) -> None:
    at = 0
    for array in model.arrays():
        array -= change[at : at + array.size].reshape(array.shape)
        at += array.size


def main(argv: Sequence[str]) -> None:
    """Trains, evaluates over all ranks, writes results; raises TrainError below --min-accuracy."""
    options.early_threads(argv)
    args = options.with_start(options.parser("numpy on MNIST", lr=0.002, epochs=2)).parse_args(argv)
    world = world_of(os.environ)
    source, target = store.open_store(args.data), store.open_store(args.out)
    backend = "tcp" if world.size > 1 else "none"
    result = Result("numpy", backend, world.role, world.index, world.rank, world.size, "cpu", args.data)
    print(f"rank {world.rank} of {world.size}: numpy on cpu", flush=True)
    everything = data.load(source, args.train_samples)
    x, y = everything.shard(world.rank, world.size)
    group = Group(world, int(os.environ.get("MASTER_PORT") or 0))
    model = perceptron.load(args.start) if args.start else perceptron.start(SEED)
    if args.start:
        print(f"begins with the model of {args.start}", flush=True)
    optimizer = Adam(sum(array.size for array in model.arrays()), args.lr)
    per_rank = max(1, args.batch_size // world.size)
    started, total = time.monotonic(), 0.0
    for epoch in range(args.epochs):
        order, total = np.random.default_rng(SEED + epoch).permutation(len(y)), 0.0
        for at in range(0, len(y), per_rank):
            pick = order[at : at + per_rank]
            loss, grads = perceptron.gradients(model, x[pick], y[pick])
            flat = group.total(np.concatenate([grad.ravel() for grad in grads]).astype(np.float32))
            _apply(model, optimizer.update(flat / np.float32(world.size)))
            total += loss * len(pick)
        print(f"epoch {epoch + 1} of {args.epochs}: loss {total / len(y):.4f}", flush=True)
    result.train_seconds = time.monotonic() - started
    right = perceptron.count_right(model.logits, *everything.tests(world.rank, world.size))
    tally = group.total(np.array([right, total], np.float32))
    result.samples, result.epochs = len(y), args.epochs
    result.accuracy = round(float(tally[0])) / len(everything.test_y)
    result.loss = float(tally[1]) / (len(y) * world.size)
    if world.rank == 0:
        result.checkpoint = store.put_checked(target, perceptron.FILE, perceptron.to_bytes(model))
    result.publish(target, lambda: group.total(np.zeros(1, np.float32)))
    group.close()
    options.check_accuracy(result.accuracy, args.min_accuracy)


if __name__ == "__main__":
    sys.exit(options.run(main))
