"""Names of `trainyard runs`: a run of a pipeline or a training job; `pipeline/NAME`, `job/NAME` where both have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds import registry
from trainyard.kube import Access, KubeError

if TYPE_CHECKING:
    from trainyard.kube import Kube

PIPELINE, JOB = "pipeline", "job"


@dataclass(frozen=True)
class NamedRun:
    """What a name stands for. `job`: the training job's object; None for a run of a pipeline.

    `gone`: neither is there any longer; what a job has left in the store may be.
    """

    name: str
    job: dict[str, Any] | None = None
    gone: bool = False


def named(kube: Kube, text: str) -> NamedRun:
    """What a name stands for. Raises TrainyardError when that is nothing, or several."""
    from trainyard.observe import jobs
    from trainyard.training import report

    prefix, name, kinds = split(text)
    if prefix == PIPELINE:
        return NamedRun(name)
    found = jobs.named(kube, name, kinds)
    is_run = prefix == "" and _is_run(kube, name, bool(found))
    if len(found) + is_run > 1:
        names = ([f"{PIPELINE}/{name}"] if is_run else []) + [report.full_name(job) for job in found]
        if len(found) == 1:
            names[-1] = f"{JOB}/{name}"
        raise UsageError(f"{text} is ambiguous: {', '.join(names)}", hint="use one of these names")
    if found:
        return NamedRun(name, found[0])
    if is_run:
        return NamedRun(name)
    if prefix:
        raise jobs.missing(kube, name)
    hint = "list all runs with `trainyard runs list`"
    raise KubeError(f"no run or job {name} in {kube.namespace}", status=404, hint=hint)


def named_or_gone(kube: Kube, text: str) -> NamedRun:
    """The same; a name that nothing has is taken for that of a job which went after its time."""
    try:
        return named(kube, text)
    except KubeError as error:
        if error.status != 404:
            raise
        return NamedRun(split(text)[1], gone=True)


def pipeline(kube: Kube, text: str, lacks: str, hint: str) -> str:
    """The name of a run of a pipeline, for what training jobs haven't. Raises UsageError for the name of one."""
    this = named(kube, text)
    if this.job:
        raise UsageError(f"job {this.name} is a training job, which {lacks}", hint=hint.format(name=this.name))
    return this.name


def split(text: str) -> tuple[str, str, tuple[registry.Kind, ...]]:
    """(prefix, name, the kinds of job that it may be)."""
    prefix, _, name = text.rpartition("/")
    if prefix in ("", JOB):
        return prefix, name, registry.KINDS
    kinds = tuple(kind for kind in registry.KINDS if prefix in (kind.resource, kind.framework, kind.kind.lower()))
    if prefix != PIPELINE and not kinds:
        raise UsageError(f"invalid kind of run: {prefix}", where=text, hint=f"write {PIPELINE}/{name} or {JOB}/{name}")
    return prefix, name, kinds


def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Names of runs and jobs for the shell; silence when the cluster can't be asked."""
    return [name for name in _known(context, jobs=True) if name.startswith(begun)]


def complete_pipelines(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Names of runs of pipelines for the shell."""
    return [name for name in _known(context, jobs=False) if name.startswith(begun)]


def _known(context: click.Context, *, jobs: bool) -> list[str]:
    from trainyard.commands.runs_list import names

    given = context.params
    access = Access(
        given.get("kubeconfig") or "",
        given.get("context") or "",
        given.get("namespace") or "",
        given.get("as_user") or "",
        tuple(given.get("as_group") or ()),
    )
    try:
        return names(access.connect(), jobs=jobs)
    except TrainyardError:
        return []


def _is_run(kube: Kube, name: str, is_job: bool) -> bool:
    from trainyard.pipelines.runs import model

    try:
        return kube.find(kube.path(model.VERSION, model.RESOURCE, name)) is not None
    except KubeError as error:
        if error.status == 403 and is_job:
            return False
        raise
