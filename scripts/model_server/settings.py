"""Settings of the server from the environment."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from model_server.errors import ServerError

_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
_QUOTA, _PERIOD = (Path(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us") for name in ("quota", "period"))


@dataclass(frozen=True)
class Settings:
    """The server's settings; each is read from the environment variable with its name.

    Attributes:
        model_dir: folder with the model and its card.
        model_name, model_version: expected values in the card, if set.
        keys_file: JSON list of SHA-256 digests of keys; None if no key is required.
        max_batch: maximum rows of one call of the model.
        batch_wait_ms: how long a batch waits for more rows; 0: only collects requests while the model computes.
        max_queue: maximum waiting requests; others are rejected with 503.
        max_body_mb: maximum size of one request.
        max_held_mb: maximum size of all unanswered requests; others are rejected with 503. Default: 64,
            or four of the largest requests.
        head_s: time limit for beginning a request on a connection; body_s: time limit for its body.
        threads: threads of the model's library; default: the CPUs that the container may use.
        drain_s: seconds for which a terminating server still accepts requests, though no longer ready.
        grace_s: time limit for pending requests afterwards.
    """

    model_dir: Path
    model_name: str = ""
    model_version: str = ""
    keys_file: Path | None = None
    max_batch: int = 32
    batch_wait_ms: float = 0.0
    max_queue: int = 1000
    max_body_mb: float = 16.0
    max_held_mb: float = 64.0
    head_s: float = 20.0
    body_s: float = 60.0
    threads: int = 1
    drain_s: float = 5.0
    grace_s: float = 20.0
    host: str = "0.0.0.0"
    port: int = 8080
    admin_port: int = 8081


def read(env: Mapping[str, str] | None = None) -> Settings:
    """Reads the settings. Raises ServerError, which names the variable."""
    env = os.environ if env is None else env
    keys = env.get("KEYS_FILE", "")
    body_mb = _number(env, "MAX_BODY_MB", 16, least=0.001)
    return Settings(
        model_dir=Path(env.get("MODEL_DIR") or "/models"),
        model_name=env.get("MODEL_NAME", ""),
        model_version=env.get("MODEL_VERSION", ""),
        keys_file=Path(keys) if keys else None,
        max_batch=int(_number(env, "MAX_BATCH", 32, least=1, whole=True)),
        batch_wait_ms=_number(env, "BATCH_WAIT_MS", 0, most=10_000),
        max_queue=int(_number(env, "MAX_QUEUE", 1000, least=1, whole=True)),
        max_body_mb=body_mb,
        max_held_mb=_number(env, "MAX_HELD_MB", max(64, 4 * body_mb), least=body_mb),
        head_s=_number(env, "HEAD_S", 20, least=1),
        body_s=_number(env, "BODY_S", 60, least=1),
        threads=int(_number(env, "THREADS", 0, whole=True)) or cpus(),
        drain_s=_number(env, "DRAIN_S", 5),
        grace_s=_number(env, "GRACE_S", 20),
        host=env.get("HOST") or "0.0.0.0",
        port=int(_number(env, "PORT", 8080, most=65535, whole=True)),
        admin_port=int(_number(env, "ADMIN_PORT", 8081, most=65535, whole=True)),
    )


def cpus() -> int:
    """CPUs that this container may use at once, at least 1: its limit rounded up, else the machine's number."""
    allowed = len(os.sched_getaffinity(0))
    try:
        quota, period = _CPU_MAX.read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = _QUOTA.read_text(), _PERIOD.read_text()
        except OSError:
            return allowed
    if quota == "max" or int(quota) <= 0:
        return allowed
    return max(1, min(allowed, math.ceil(int(quota) / int(period))))


def _number(
    env: Mapping[str, str], name: str, default: float, *, least: float = 0, most: float = 1_000_000, whole: bool = False
) -> float:
    text = env.get(name) or str(default)
    kind = "whole number" if whole else "number"
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise ServerError(f"is {text!r}", where=name, hint=f"write a {kind} from {least:g} to {most:g}")
    return value
