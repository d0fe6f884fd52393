"""A cluster that fills up and never empties: allocated, refused and fragmented GPUs."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from trainyard_dev.bench.bounds import size
from trainyard_dev.bench.traces import MOST_PODS, Node, Pod

WIDE = 8  # GPUs of the largest pods


class Packed:
    """Nodes and the pods placed on them so far, in order of arrival. `wide`: the pods of 8 GPUs to keep room for."""

    def __init__(self, nodes: Sequence[Node], wide: Sequence[Pod]) -> None:
        self._place = {node.name: index for index, node in enumerate(nodes)}
        self._models = np.array([node.model for node in nodes])
        self._free = np.array([size(node) for node in nodes], dtype=np.int64)
        self._seats = np.full(len(nodes), MOST_PODS)
        self._wide = {(size(pod), pod.models): pod for pod in wide}.values()
        self._judged: list[Pod] = []  # refused since the last judgement
        self.gpus = int(self._free[:, 0].sum())
        self._asked = 0
        self._came: Counter[int] = Counter()
        self._refused: Counter[int] = Counter()
        self.refused_fitting: Counter[int] = Counter()

    def add(self, pod: Pod, node: str) -> None:
        """Records that the pod arrived and got this node, "" for none."""
        self._asked += pod.gpus
        self._came[pod.gpus] += 1
        if node:
            self._free[self._place[node]] -= size(pod)
            self._seats[self._place[node]] -= 1
        else:
            self._refused[pod.gpus] += 1
            self._judged.append(pod)

    def judge(self) -> None:
        """Counts the pods refused since the last call that fit on some node even now, by GPUs of the pod."""
        for pod in self._judged:
            self.refused_fitting[pod.gpus] += bool(self._fits(pod).any())
        self._judged = []

    @property
    def arrived(self) -> float:
        """GPUs requested so far, in % of all GPUs."""
        return 100 * self._asked / self.gpus

    @property
    def allocated(self) -> float:
        """GPUs allocated, in % of all GPUs."""
        return 100 - 100 * int(self._free[:, 0].sum()) / self.gpus

    @property
    def fragmented(self) -> float:
        """Free GPUs on nodes that can't take one more pod of 8 GPUs, in % of all GPUs."""
        return 100 * int(self._free[~self._roomy(), 0].sum()) / self.gpus

    def refused(self, gpus: int) -> float | None:
        """Refused pods of this many GPUs, in % of those that arrived; None where none arrived."""
        return 100 * self._refused[gpus] / self._came[gpus] if self._came[gpus] else None

    def values(self) -> dict[str, float]:
        """All of these now, and the number of nodes with room for a pod of 8 GPUs; ideally all free GPUs are there."""
        shares = {f"refused{gpus}": self.refused(gpus) for gpus in (1, 2, 4, WIDE)}
        found: dict[str, float] = {name: value for name, value in shares.items() if value is not None}
        found |= {"allocated": self.allocated, "fragmented": self.fragmented, "slots": int(self._roomy().sum())}
        return found | {"slots_ideal": int(self._free[:, 0].sum()) // WIDE}

    def _roomy(self) -> np.ndarray:
        fits = np.zeros(len(self._models), dtype=bool)
        for pod in self._wide:
            fits |= self._fits(pod)
        return fits

    def _fits(self, pod: Pod) -> np.ndarray:
        fits: np.ndarray = (self._free >= size(pod)).all(axis=1) & (self._seats > 0)
        return fits & np.isin(self._models, pod.models) if pod.models else fits
