"""Simulated best fit: pods with fractions of GPUs, one after the other, each where the least is left free.

It is the policy BestFit of the published table, so what it reaches on the same trace tells whether the two compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainyard_dev.bench.traces import WHOLE, Node, Pod

MOST_GPUS = 8  # of the largest node
LARGEST_CPU, LARGEST_GPU = 128_000, MOST_GPUS * WHOLE  # what is left counts in shares of the largest node


def place(nodes: Sequence[Node], pods: Sequence[Pod]) -> list[str]:
    """Node of each pod, "" where none takes it."""
    cpu = np.array([node.cpu_milli for node in nodes], dtype=float)
    memory = np.array([node.memory_mib for node in nodes], dtype=float)
    count = np.array([node.gpus for node in nodes])
    free = np.where(np.arange(MOST_GPUS) < count[:, None], float(WHOLE), -1.0)  # free of each GPU; -1: no GPU
    models = np.array([node.model for node in nodes])
    found = []
    for pod in pods:
        fits = (cpu >= pod.cpu_milli) & (memory >= pod.memory_mib)
        if pod.models:
            fits &= np.isin(models, pod.models)
        takes = free >= pod.gpu_milli
        if pod.gpus:
            fits &= takes.sum(axis=1) >= pod.gpus
        if not fits.any():
            found.append("")
            continue
        left = (cpu - pod.cpu_milli) / LARGEST_CPU + (free.clip(min=0).sum(axis=1) - pod.milli) / LARGEST_GPU
        chosen = int(np.where(fits, left, np.inf).argmin())
        cpu[chosen] -= pod.cpu_milli
        memory[chosen] -= pod.memory_mib
        free[chosen][_fullest(free[chosen], takes[chosen], pod.gpus)] -= pod.gpu_milli
        found.append(nodes[chosen].name)
    return found


def _fullest(free: Any, takes: Any, gpus: int) -> Any:
    """The GPUs, of those that take the pod, with the least free."""
    return np.argsort(np.where(takes, free, np.inf), kind="stable")[:gpus]
