"""Data-parallel training over MPI on MNIST: `mpirun … python3 -m mnist.train_mpi --data … --out …`.

Horovod averages the gradients, and it fails where Horovod can't be imported. `--backend mpi4py` selects mpi4py's
Allreduce on one flat buffer instead. Every rank is a worker; rank 0 writes the metrics and the checkpoint.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from mnist import data, options, store
from mnist.errors import TrainError
from mnist.result import Result


class HorovodGroup:
    """Gradients and sums through Horovod; `backend` names what Horovod itself uses."""

    def __init__(self) -> None:
        import horovod.torch as hvd

        hvd.init()
        self.hvd, self.rank, self.size = hvd, hvd.rank(), hvd.size()
        self.backend = "horovod-mpi" if hvd.mpi_enabled() else "horovod-gloo"

    def wrap(self, optimizer: Any, model: Any) -> tuple[Any, Callable[[], None]]:
        """An optimizer that averages by itself, and nothing left to do before its step."""
        self.hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        return self.hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters()), lambda: None

    def total(self, values: list[float]) -> list[float]:
        import torch

        numbers = torch.tensor(values, dtype=torch.float64)
        return [float(value) for value in self.hvd.allreduce(numbers, op=self.hvd.Sum, name="tally")]

    def barrier(self) -> None:
        self.total([0.0])


class MpiGroup:
    """Gradients and sums through mpi4py."""

    backend = "mpi4py"

    def __init__(self) -> None:
        from mpi4py import MPI

        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()

    def wrap(self, optimizer: Any, model: Any) -> tuple[Any, Callable[[], None]]:
        """The optimizer itself, and the averaging to do before its step."""
        import torch

        parameters = list(model.parameters())

        def average() -> None:
            grads = [parameter.grad for parameter in parameters]
            flat = torch.cat([grad.reshape(-1) for grad in grads]).cpu().numpy()
            self.comm.Allreduce(self.mpi.IN_PLACE, flat, op=self.mpi.SUM)
            flat /= self.size
            start = 0
            for grad in grads:
                piece = torch.from_numpy(flat[start : start + grad.numel()])
                grad.copy_(piece.view_as(grad))
                start += grad.numel()

        return optimizer, average

    def total(self, values: list[float]) -> list[float]:
        return [float(self.comm.allreduce(value, op=self.mpi.SUM)) for value in values]

    def barrier(self) -> None:
        self.comm.Barrier()


BACKENDS: dict[str, type[HorovodGroup] | type[MpiGroup]] = {"horovod": HorovodGroup, "mpi4py": MpiGroup}


def join_group(backend: str) -> HorovodGroup | MpiGroup:
    """The group of that back end, never of another one. Raises TrainError where it can't be imported."""
    try:
        return BACKENDS[backend]()
    except ImportError as error:
        others = " or ".join(f"--backend {name}" for name in BACKENDS if name != backend)
        hint = f"take an image that has it, such as trainer-horovod, or say {others}"
        raise TrainError(f"{backend} can't be imported here ({error})", hint=hint) from None


def main(argv: Sequence[str]) -> None:
    """Trains, evaluates over all ranks, writes results; raises TrainError below --min-accuracy."""
    options.early_threads(argv)
    flags = options.parser("MPI training on MNIST", lr=0.002, epochs=2)
    flags.add_argument("--backend", choices=tuple(BACKENDS), default="horovod", help="what averages the gradients")
    args = flags.parse_args(argv)
    source, target = store.open_store(args.data), store.open_store(args.out)

    import torch
    from torch.nn.functional import cross_entropy

    from mnist import torch_model

    torch.set_num_threads(args.threads)
    group = join_group(args.backend)
    rank, size = group.rank, group.size
    device = torch_model.pick_device()
    result = Result("mpi", group.backend, "worker", rank, rank, size, str(device), args.data)
    print(f"rank {rank} of {size}: {group.backend} on {device}, GPUs {result.visible_devices}", flush=True)

    everything = data.load(source, args.train_samples)
    x, y = everything.shard(rank, size)
    model = torch_model.build(device)
    optimizer, average = group.wrap(torch.optim.Adam(model.parameters(), lr=args.lr), model)
    started, total = time.monotonic(), 0.0
    for epoch in range(args.epochs):
        total = 0.0
        for images, labels in torch_model.batches(x, y, max(1, args.batch_size // size), epoch, device):
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            average()
            optimizer.step()
            total += float(loss.detach()) * len(labels)
        if rank == 0:
            print(f"epoch {epoch + 1} of {args.epochs}: loss {total / len(y):.4f}", flush=True)
    result.train_seconds = time.monotonic() - started

    right = torch_model.count_correct(model, *everything.tests(rank, size), device)
    right_all, loss_all = group.total([float(right), total])
    result.samples, result.epochs = len(y), args.epochs
    result.accuracy, result.loss = right_all / len(everything.test_y), loss_all / (len(y) * size)
    if rank == 0:
        result.checkpoint = store.put_checked(target, "checkpoint.pt", torch_model.checkpoint_bytes(model, args.epochs))
    result.publish(target, group.barrier)
    options.check_accuracy(result.accuracy, args.min_accuracy)


def run() -> int:
    """As `options.run`, but an error ends all ranks at once: MPI would wait for the failed one at its end."""
    try:
        code = options.run(main)
    except Exception:
        traceback.print_exc()
        code = 1
    mpi = sys.modules.get("mpi4py.MPI")
    if code and mpi is not None and mpi.Is_initialized():
        sys.stderr.flush()
        mpi.COMM_WORLD.Abort(code)
    return code


if __name__ == "__main__":
    sys.exit(run())
