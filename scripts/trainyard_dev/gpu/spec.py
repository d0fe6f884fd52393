"""What the pretended GPUs of a node are, and the `gpu.conf` that says so to the mock NVML library."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.errors import UsageError

MAX_GPUS = 16


@dataclass(frozen=True)
class MockGpuSpec:
    """The GPUs of one node; all are alike. What else no node can have is refused by the library that reads it.

    Attributes:
        count: 1 to 16.
        memory_mib: memory of each GPU in MiB.
        driver, cuda: versions that the driver reports.
        compute: CUDA compute capability, such as `8.0`.
        pci_device_id: device id in the upper 16 bits, vendor 10de in the lower.
        nvlinks: `(gpu, gpu, links)`. None: GPUs 0-1, 2-3, … share four links each.
        pairs: `(gpu, gpu, level)`, such as `single`. None: linked pairs stand behind one PCIe switch.
        default_pair: level of all other pairs.

    Raises:
        UsageError: for a count that no node can have.
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
        if not 1 <= self.count <= MAX_GPUS:
            what = f"count of the mock GPUs must be a number of GPUs from 1 to {MAX_GPUS}, is {self.count!r}"
            raise UsageError(what, hint="change count")

    def conf(self, node: str) -> str:
        """The text of `gpu.conf` for one node."""
        links = self.nvlinks
        if links is None:
            links = tuple((gpu, gpu + 1, 4) for gpu in range(0, self.count - 1, 2))
        pairs = self.pairs if self.pairs is not None else tuple((a, b, "single") for a, b, _ in links)
        lines = [
            f"model = {self.model}", f"count = {self.count}", f"memory_mib = {self.memory_mib}", f"node = {node}",
            f"driver = {self.driver}", f"cuda = {self.cuda}", f"compute = {self.compute}",
            f"pci_device_id = {self.pci_device_id:#010x}", f"default_pair = {self.default_pair}",
        ]  # fmt: skip
        lines += [f"nvlink = {a}-{b}:{number}" for a, b, number in links]
        lines += [f"pair = {a}-{b} {level}" for a, b, level in pairs]
        return "\n".join(lines) + "\n"
