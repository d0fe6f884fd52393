"""A process among its peers, as set by the environment (env:// of PyTorch: RANK, WORLD_SIZE, MASTER_ADDR, …)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mnist.errors import TrainError


@dataclass(frozen=True)
class World:
    """This process among its peers; rank 0 is the master, rank n the worker n-1."""

    rank: int
    size: int
    master: str

    @property
    def role(self) -> str:
        return "master" if self.rank == 0 else "worker"

    @property
    def index(self) -> int:
        return max(self.rank - 1, 0)


def rank_of(env: Mapping[str, str], rank_name: str, size_name: str) -> tuple[int, int]:
    """This process' rank and the count of all, by the names of their variables; without a count it is alone."""
    if not env.get(size_name):
        return 0, 1
    try:
        rank, size = int(env.get(rank_name, "")), int(env[size_name])
    except ValueError:
        raise TrainError(f"{rank_name} and {size_name} must both be whole numbers") from None
    if not 0 <= rank < size:
        raise TrainError(f"{rank_name} {rank} is outside {size_name} {size}")
    return rank, size


def world_of(env: Mapping[str, str]) -> World:
    """Reads the world from the environment; raises TrainError when it is incomplete or contradicts itself."""
    rank, size = rank_of(env, "RANK", "WORLD_SIZE")
    if size > 1 and not (env.get("MASTER_ADDR") and env.get("MASTER_PORT")):
        raise TrainError("MASTER_ADDR and MASTER_PORT must be set when WORLD_SIZE is above 1")
    return World(rank, size, env.get("MASTER_ADDR", ""))
