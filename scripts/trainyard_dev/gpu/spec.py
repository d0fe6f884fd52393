"""What the pretended GPUs of a node are, and the `gpu.conf` that says so to the mock NVML library."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from trainyard.errors import UsageError

T = TypeVar("T")
MAX_GPUS = 16
MAX_LINKS = 18
LEVELS = ("internal", "single", "multiple", "hostbridge", "node", "system")


@dataclass(frozen=True)
class MockGpuSpec:
    """The GPUs of one node; all are alike.

    Attributes:
        count: 1 to 16.
        memory_mib: memory of each GPU in MiB.
        driver, cuda: versions that the driver reports.
        compute: CUDA compute capability, such as `8.0`.
        pci_device_id: device id in the upper 16 bits, vendor 10de in the lower.
        nvlinks: `(gpu, gpu, links)`. None: GPUs 0-1, 2-3, … share four links each.
        pairs: `(gpu, gpu, level)` with a level of `LEVELS`. None: linked pairs stand behind one PCIe switch.
        default_pair: level of all other pairs.

    Raises:
        UsageError: for a value that no node can have; the sentence names the key.
    """

    model: str = "NVIDIA A100-SXM4-40GB"
    count: int = 4
    memory_mib: int = 40960
    driver: str = "550.163.01"
    cuda: str = "12.4"
    compute: str = "8.0"
    pci_device_id: int = 0x20B010DE
    nvlinks: tuple[tuple[int, int, int], ...] | None = None
    pairs: tuple[tuple[int, int, str], ...] | None = None
    default_pair: str = "node"

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or not 1 <= self.count <= MAX_GPUS:
            raise _wrong("count", f"must be a number of GPUs from 1 to {MAX_GPUS}", self.count)
        if isinstance(self.memory_mib, bool) or not isinstance(self.memory_mib, int):
            raise _wrong("memory_mib", "must be a whole number of MiB", self.memory_mib)
        if not 1 <= self.memory_mib <= 1 << 24:
            raise _wrong("memory_mib", "must be 1 to 16777216 MiB", self.memory_mib)
        if not 0 <= self.pci_device_id < 1 << 32:
            raise _wrong("pci_device_id", "must be a 32-bit number", self.pci_device_id)
        for key, limit in (("model", 95), ("driver", 79)):
            _check_text(key, getattr(self, key), limit)
        for key in ("cuda", "compute"):
            if not re.fullmatch(r"\d{1,3}\.\d{1,3}", getattr(self, key)):
                raise _wrong(key, "must be two numbers with a dot, such as 12.4", getattr(self, key))
        _check_level("default_pair", self.default_pair)
        self._check_topology()

    def _check_topology(self) -> None:
        links = [0] * self.count
        for a, b, number in self._checked_pairs("nvlinks", self.links()):
            if not 1 <= number <= MAX_LINKS:
                raise _wrong("nvlinks", f"must give a pair 1 to {MAX_LINKS} links", number)
            links[a] += number
            links[b] += number
        if max(links) > MAX_LINKS:
            raise _wrong("nvlinks", f"must not give one GPU more than {MAX_LINKS} links", max(links))
        for _, _, level in self._checked_pairs("pairs", self.levels()):
            _check_level("pairs", level)

    def _checked_pairs(self, key: str, entries: tuple[tuple[int, int, T], ...]) -> tuple[tuple[int, int, T], ...]:
        seen: set[frozenset[int]] = set()
        for a, b, _ in entries:
            pair = frozenset((a, b))
            if len(pair) != 2 or not all(0 <= gpu < self.count for gpu in pair) or pair in seen:
                raise _wrong(key, f"must name two different GPUs below {self.count}, each pair once", f"{a}-{b}")
            seen.add(pair)
        return entries

    def links(self) -> tuple[tuple[int, int, int], ...]:
        """The NVLinks, with the default filled in."""
        if self.nvlinks is not None:
            return self.nvlinks
        return tuple((gpu, gpu + 1, 4) for gpu in range(0, self.count - 1, 2))

    def levels(self) -> tuple[tuple[int, int, str], ...]:
        """The PCIe levels of the pairs that have one of their own, with the default filled in."""
        return self.pairs if self.pairs is not None else tuple((a, b, "single") for a, b, _ in self.links())

    def conf(self, node: str) -> str:
        """The text of `gpu.conf` for one node."""
        _check_text("node", node, 253)
        lines = [
            f"model = {self.model}", f"count = {self.count}", f"memory_mib = {self.memory_mib}", f"node = {node}",
            f"driver = {self.driver}", f"cuda = {self.cuda}", f"compute = {self.compute}",
            f"pci_device_id = {self.pci_device_id:#010x}", f"default_pair = {self.default_pair}",
        ]  # fmt: skip
        lines += [f"nvlink = {a}-{b}:{number}" for a, b, number in self.links()]
        lines += [f"pair = {a}-{b} {level}" for a, b, level in self.levels()]
        return "\n".join(lines) + "\n"


def _check_text(key: str, value: str, limit: int) -> None:
    plain = isinstance(value, str) and value.strip() == value and value.isprintable()
    if not plain or not 1 <= len(value.encode()) <= limit:
        raise _wrong(key, f"must be a line of 1 to {limit} characters without blanks at its ends", value)


def _check_level(key: str, level: str) -> None:
    if level not in LEVELS:
        raise _wrong(key, f"must name one of {', '.join(LEVELS)}", level)


def _wrong(key: str, rule: str, value: object) -> UsageError:
    return UsageError(f"{key} of the mock GPUs {rule}, is {value!r}", hint=f"change {key}")
