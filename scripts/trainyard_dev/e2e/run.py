"""The order of an end-to-end run, and its clean-up in every case."""

import os
import platform
import shutil
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainyard.chart import diagnose
from trainyard.errors import TrainyardError
from trainyard.kube.kubectl import Kubectl
from trainyard.pipelines.local import dataset
from trainyard.shell import uninterrupted
from trainyard_dev import engine as engines
from trainyard_dev.cluster import config, lifecycle, nodes
from trainyard_dev.e2e import order, releases, second, selection
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.recorder import Recorder
from trainyard_dev.gpu import detect
from trainyard_dev.gpu.mock import MockGpuSpec
from trainyard_dev.images import source
from trainyard_dev.images.supply import Supply
from trainyard_dev.progress import Progress
from trainyard_dev.report import console, writer
from trainyard_dev.report.model import Gpu, Run, Span
from trainyard_dev.versions import load

# Images that an installation and the smallest check need.
INSTALLED = {image.name for image in load().images.values() if image.stage == "install"}


@dataclass(frozen=True)
class Options:
    """The command line's options."""

    name: str
    provider: str
    images: str
    gpu: str
    keep: bool
    out: Path
    only: tuple[str, ...] = ()  # ids or groups of checks; empty: the main job
    full: bool = False  # every check
    reuse: bool = False  # use a kept cluster, and keep it


def run(options: Options) -> bool:
    """One end-to-end run. Writes the report in every case but an interruption.

    Returns:
        whether every check passed.
    """
    engine, images = engines.find(options.provider), source.choose(options.images)
    chosen = detect.choose(options.gpu)
    name = config.check_name(options.name)
    ids = selection.chosen(options.only, full=options.full)
    cluster = lifecycle.Options(
        name, images, chosen.kind, MockGpuSpec(), chosen.uuids, chosen.reason, selection.login(ids)
    )
    there = lifecycle.exists(engine, cluster.name)
    if there and not options.reuse:
        raise TrainyardError(
            f"a cluster named {cluster.name} exists already",
            hint=f"remove it with `trainyard cluster down --name {cluster.name}`, check on it with REUSE=1, "
            "or run with NAME=another",
        )
    supply = Supply(engine, images, selection.images(ids, cuda=chosen.kind == "real") | INSTALLED)
    shutil.rmtree(options.out, ignore_errors=True)
    data = dataset.find()
    recorder, started = Recorder(), time.time()
    cause = ""
    print(f"trainyard {load().raw['trainyard']}: {lifecycle.describe(cluster)}, data: {data.name}", flush=True)
    try:
        context = _cluster(engine, cluster, recorder, supply, data, ids, there)
        if context:
            if options.full and chosen.kind == "mock":  # a real GPU is usable by one cluster only
                context.second = cache(lambda: second.make(context, cluster))
            try:
                order.checks(context)
            except Exception as error:  # between two checks
                with recorder.check("e2e.run", "between checks"):
                    raise error
        if failed := {check.id for check in recorder.checks if check.status == "failed"}:
            apart = options.full and selection.apart(failed)
            cause = _diagnose(engine, second.name(name) if apart else name, recorder, options.out)
    finally:
        # A second interruption must not stop the clean-up after the first.
        with uninterrupted():
            supply.close()
        recorder.spans += [Span("build", name, start, end) for name, start, end in supply.steps]
        gone = [second.name(name)] if options.full else []
        gone += [] if options.keep or options.reuse else [name]
        for one in gone:
            with recorder.span("cluster", "removing"), uninterrupted():
                lifecycle.down(engine, one)
    result = _report(engine, cluster, data, recorder, started, cause)
    writer.write(result, options.out)
    print(f"report: {options.out / 'report.html'}")
    if options.keep or options.reuse:
        print(f"the cluster is kept: export KUBECONFIG={lifecycle.kubeconfig(cluster.name)}")
    console.show(result)
    return result.verdict.ok


def _cluster(
    engine: engines.Engine,
    options: lifecycle.Options,
    recorder: Recorder,
    supply: Supply,
    data: dataset.Dataset,
    ids: frozenset[str],
    there: bool,
) -> Context | None:
    """Makes the cluster, or uses the existing one; None if that failed."""
    progress = Progress(lifecycle.STEPS)
    title = "a kept cluster" if there else "a real kind cluster of four nodes"
    with recorder.check("cluster.up", title) as figures:
        try:
            kubectl = (
                lifecycle.again(engine, options, supply)
                if there
                else lifecycle.up(engine, options, supply=supply, progress=progress)
            )
        finally:
            recorder.spans += [
                Span("cluster", name.partition(" (")[0], start, end) for name, start, end in progress.steps
            ]
        figures |= {"nodes": len(options.nodes), "images": options.source.kind}
        return Context(
            options.name,
            engine,
            kubectl,
            recorder,
            options.nodes,
            options.gpu,
            options.spec,
            not nodes.kernel_has_nfs(),
            lifecycle.gpus_due(options),
            data,
            chosen=ids,
            reused=there,
            supply=supply,
        )
    return None


def _diagnose(engine: engines.Engine, name: str, recorder: Recorder, out: Path) -> str:
    """Collects evidence from the cluster while it exists; returns the probable cause as one sentence."""
    if not lifecycle.exists(engine, name):
        return next(check.reason for check in recorder.checks if check.status == "failed")
    print("  collecting a diagnosis …", flush=True)
    kubectl = Kubectl(lifecycle.kubeconfig(name))
    found = diagnose.collect(
        lambda argv: kubectl(*argv, timeout=30).stdout,
        out,
        [NAMESPACE, OTHER, SYSTEM],
        node_exec=lambda node, argv: engine.exec(node, argv, timeout=20).stdout,
        helm=lambda argv: releases.helm(kubectl, *argv),
        release=(releases.RELEASE, SYSTEM),
        checks=recorder.checks,
        expected=["too-large"],
    )
    return diagnose.probable_cause(found)


def _report(
    engine: engines.Engine,
    options: lifecycle.Options,
    data: dataset.Dataset,
    recorder: Recorder,
    started: float,
    cause: str,
) -> Run:
    components = load().raw["components"]
    versions = {"trainyard": load().raw["trainyard"], **{name: str(version) for name, version in components.items()}}
    built = options.source.kind == "build"
    listed = [image for image in load().images.values() if not image.local]
    images = {image.ref: "built here" if built or image.own else "pulled" for image in listed}
    description = (
        f"{options.spec.count} × {options.spec.model} on each of 2 nodes, mock NVML behind the real device plugin"
        if options.gpu == "mock"
        else f"the machine's own: {len(options.uuids)}"
    )
    return Run(
        started=started,
        ended=time.time(),
        versions=versions,
        images=images,
        image_source=options.source.kind,
        gpu=Gpu(options.gpu, description),  # type: ignore[arg-type]
        mocks=_mocks(options),
        checks=recorder.checks,
        spans=recorder.spans,
        environment={
            "engine": engine.name,
            "image source": f"{options.source.kind}: {options.source.reason}",
            "GPUs": f"{options.gpu}: {options.gpu_reason}",
            "data": data.name,
            "kernel": platform.release(),
            "cores": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        },
        cause=cause,
    )


def _mocks(options: lifecycle.Options) -> list[str]:
    """Limits of the run's proof, one sentence each."""
    said = []
    if options.gpu == "mock":
        said.append(
            "GPUs are mock: the real device plugin hands out devices of a mock NVML library; CUDA and NCCL did not run."
        )
    if not nodes.kernel_has_nfs():
        said.append(
            "NFS volumes were mounted by a userspace client (FUSE, NFSv3), because this kernel has no NFS client; "
            "locking and caching differ from the kernel's."
        )
    said.append("csi-driver-nfs did not run; shared volumes came from trainyard's own provisioner.")
    if options.source.kind == "build":
        said.append("Component images were built here from pinned modules; the published images were not pulled.")
    return said
