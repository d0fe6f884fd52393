"""The command `trainyard submit`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from trainyard.commands import common
from trainyard.commands.common import say
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import Access, options

if TYPE_CHECKING:
    from trainyard.contract import Contract
    from trainyard.kube import Kube
    from trainyard.pipelines.submit.prepare import Prepared, Wanted


_WHAT = (
    click.option("-p", "--param", "given", multiple=True, metavar="NAME=VALUE", help="Parameter of the pipeline."),
    click.option("--queue", default="", help="Queue of the team to submit to. Default: the team's own."),
    click.option("--priority", default="", help="Priority class of the team to use."),
    click.option("-e", "--experiment", default="default", show_default=True, help="Experiment that groups the runs."),
    click.option("--no-cache", is_flag=True, help="Run every step, even if the cache has its result."),
    click.option("--dry-run", is_flag=True, help="Check and print the object without submitting it."),
    common.contract_file,
)


def what_runs(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what a run is, of every command that sends one."""
    return functools.reduce(lambda made, option: option(made), reversed(_WHAT), command)


@click.command()
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.option("--name", default="", help="Pipeline to run, if the file contains several.")
@what_runs
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["yaml", "json", "name"]),
    help="Output format; with --wait, prints the finished run.",
)
@click.option("--after-started", is_flag=True, help="Submit the run once your team's queued jobs have started.")
@click.option("--wait", is_flag=True, help="Wait for the run to finish, without steps; exit code 1 if the run fails.")
@click.option("-d", "--detach", is_flag=True, help="Submit the run and return.")
@click.option("--logs", "step", default="", metavar="STEP", help="Follow the log of this step instead of the table.")
@click.option("--backend", type=click.Choice(["argo", "kfp"]), default="argo", show_default=True)
@click.option("--endpoint", envvar="KF_PIPELINES_ENDPOINT", default="", metavar="URL", help="URL of a site's own KFP.")
@click.option("--token", envvar="KFP_TOKEN", default="", help="Token of the KFP backend; prefer setting KFP_TOKEN.")
@click.option("--kfp-namespace", default="", help="Namespace in a multi-user KFP backend.")
@click.option("--kfp-ca", default="", metavar="FILE", help="CA certificate of the KFP backend.")
@options
def submit(
    pipeline: Path,
    given: tuple[str, ...],
    name: str,
    queue: str,
    priority: str,
    experiment: str,
    no_cache: bool,
    dry_run: bool,
    form: str | None,
    after_started: bool,
    wait: bool,
    detach: bool,
    step: str,
    contract_file: Path | None,
    backend: str,
    endpoint: str,
    token: str,
    kfp_namespace: str,
    kfp_ca: str,
    access: Access,
) -> None:
    """Run a pipeline in your team's queue. PIPELINE is a kfp file, compiled YAML, a hera workflow, or an Argo Workflow.
    Compiles, checks, translates, submits and follows the pipeline. Ctrl-C stops following, but the run continues.
    """
    if sum([wait, detach, bool(step), dry_run]) > 1:
        raise UsageError("--dry-run, --wait, --detach and --logs exclude each other")
    if step and form:
        raise UsageError("--logs and -o exclude each other", hint="pass one of them")
    if after_started and (dry_run or backend == "kfp"):
        raise UsageError("--after-started is only for runs in a queue", hint="remove --after-started")
    wanted = wanted_run(pipeline, name, given, queue, priority, experiment, no_cache)
    if backend == "kfp":
        from trainyard.pipelines.submit.kfp_backend import Endpoint

        if form:
            raise UsageError("-o is for the backend argo", hint="remove -o: the first line contains the run's ID")
        if dry_run or step:
            raise UsageError("--dry-run and --logs are for the backend argo", hint="remove them, or use --backend argo")
        to = Endpoint(endpoint, token, kfp_namespace, kfp_ca)
        _to_kfp(wanted, to if endpoint else _own_kfp(access, to), detach)
        return
    if endpoint and click.get_current_context().get_parameter_source("endpoint") == ParameterSource.COMMANDLINE:
        raise UsageError("--endpoint is for the backend kfp", hint="add --backend kfp")
    kube, prepared = checked(wanted, access, contract_file, dry_run)
    if dry_run:
        _print(prepared.workflow, form or "yaml")
        return
    assert kube is not None
    if after_started:
        _wait_for_turn(kube, prepared)
    _send(kube, prepared, access, form, wait, detach, step)


def wanted_run(
    pipeline: Path, name: str, given: tuple[str, ...], queue: str, priority: str, experiment: str, no_cache: bool
) -> Wanted:
    """What the options of `what_runs` ask for. Raises UsageError when there is no such file."""
    from trainyard.pipelines.submit.prepare import Wanted

    if not pipeline.exists():
        raise UsageError("no such file", where=str(pipeline), hint="pass the path of a pipeline")
    return Wanted(pipeline, name, given, queue, priority, experiment, not no_cache)


def checked(wanted: Wanted, access: Access, contract_file: Path | None, dry_run: bool) -> tuple[Kube | None, Prepared]:
    """What would be sent, after lint has said its warnings; a dry run may be without a cluster."""
    from trainyard.pipelines.submit import prepare

    kube, contract, team = _place(access, contract_file, dry_run)
    prepared = prepare.workflow(wanted, contract, team, say)
    for one in prepared.findings:
        say(prepare.line(one))
    return kube, prepared


def _place(access: Access, contract_file: Path | None, dry_run: bool) -> tuple[Kube | None, Contract, str]:
    """The cluster, its contract and the team. A dry run does without a cluster where there is none."""
    from trainyard import contract

    kube: Kube | None = None
    try:
        kube = access.connect()
    except TrainyardError:
        if not dry_run:
            raise
    team = kube.namespace if kube else access.namespace or "default"
    if contract_file:
        return kube, contract.load(contract_file), team
    if kube is not None and not dry_run:
        return kube, contract.live(kube), team
    found = contract.find(None, kube)
    say(f"checked against {found.source}")
    return kube, found, team


def _wait_for_turn(kube: Kube, prepared: Prepared) -> None:
    from trainyard.pipelines.runs.model import Run
    from trainyard.pipelines.submit import turn

    run = Run("", kube.namespace, "Pending", (), prepared.workflow)
    turn.wait(kube, run.queue, run.priority, say)


def _send(
    kube: Kube, prepared: Prepared, access: Access, form: str | None, wait: bool, detach: bool, step: str
) -> None:
    from trainyard.pipelines.runs import follow
    from trainyard.pipelines.runs.end import finish
    from trainyard.pipelines.submit import send

    made = send.create(kube, prepared.workflow)
    name = made["metadata"]["name"]
    at_end = wait and form in ("yaml", "json")  # who reads it wants how the run ended, and one document
    if form and not at_end:
        _print(made, form)
    spec = made["spec"]
    parts = [f"priority {spec['podPriorityClassName']}"] if spec.get("podPriorityClassName") else []
    say(", ".join([f"run {name} created in {kube.namespace}", *parts]))
    if detach:
        say(follow.again(name, kube.namespace))
    elif step:
        send.follow_log(kube, name, step)
        finish(kube, follow.quietly(kube, name))
    else:
        run = follow.quietly(kube, name) if wait else follow.to_end(kube, name)
        if at_end:
            _print(run.raw, str(form))
        finish(kube, run, programs=bool(form))


def _own_kfp(access: Access, to: Any) -> Any:
    """The platform's own service behind KFP's API, which takes the kubeconfig's token."""
    from trainyard.commands.kfp import service
    from trainyard.kube import relay

    kube = access.connect()
    renew = None if to.token else lambda: relay.token(kube)
    return replace(to, url=service(kube), namespace=to.namespace or kube.namespace, renew=renew)


def _to_kfp(wanted: Wanted, endpoint: Any, detach: bool) -> None:
    from trainyard.pipelines import source
    from trainyard.pipelines.ir import arguments
    from trainyard.pipelines.ir import compile as compiling
    from trainyard.pipelines.submit import kfp_backend

    if wanted.queue or wanted.priority:
        raise UsageError("KFP supports neither queues nor priority classes", hint="remove --queue and --priority")
    if source.kind(wanted.file) != source.KFP:
        raise UsageError("KFP accepts only kfp pipelines", where=str(wanted.file), hint="remove --backend kfp")
    pipeline = compiling.pipeline(wanted.file, wanted.name or None)
    run = kfp_backend.submit(
        pipeline,
        arguments.checked(pipeline, arguments.split(wanted.given)),
        endpoint,
        name=pipeline.name,
        experiment=wanted.experiment,
        cache=None if wanted.cache else False,
    )
    say(f"run {run.id} created: {run.link}")
    if not detach:
        run.wait(say)


def _print(workflow: dict[str, Any], form: str) -> None:
    if form == "name":
        meta = workflow["metadata"]
        click.echo(meta.get("name") or meta["generateName"])
    else:
        from trainyard import structured

        click.echo(structured.text(workflow, form), nl=False)
