"""Commands under `trainyard generate`."""

from pathlib import Path
from typing import Any

import click

from trainyard import structured
from trainyard.commands import common
from trainyard.errors import UsageError
from trainyard.kinds.registry import with_gang
from trainyard.kube import Access, options
from trainyard.training.settings import Settings, flags, merged

WHOLE = "# Complete list: Helm replaces lists, so use this list instead of the one in your values.\n"
AMOUNTS = "RESOURCE=AMOUNT,..."


@click.group()
def generate() -> None:
    """Print a job, queue, team or pipeline without creating it."""


@generate.command()
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@flags
@click.option("--file", type=click.Path(path_type=Path), help="Settings file, like trainyard.yaml; flags override it.")
@common.contract_file
@common.output("yaml", "json")
@options
def job(
    name: str,
    command: tuple[str, ...],
    settings: Settings,
    file: Path | None,
    contract_file: Path | None,
    form: str,
    access: Access,
) -> None:
    """Print a training job whose code is in its image. Prints a job of training-operator or Volcano, or a plain Job.

    \b
    trainyard generate job digits --framework pytorch --nodes 2 --gpus 1 --image team/digits:1 -- python train.py
    """
    from trainyard.kinds import JobSpec, TeamConfig, manifest, mpi_launch
    from trainyard.training import detect, packages

    if "name" in settings:
        raise UsageError("the name is given twice", hint="remove --name")
    found, note = mpi_launch.translated({**merged(None, file, settings, command), "name": name}, Path("."))
    if note:
        common.say(note)
    if "framework" not in found:
        found["framework"], _ = detect.framework(Path("."), found.get("command") or ())
    team = access.namespace or found.pop("team", "")
    found.pop("team", None)
    kube = common.cluster_for(access, contract_file, team)
    known = common.contract_of(kube, contract_file)
    team_config = TeamConfig.of(known, team or (kube.namespace if kube else ""))
    spec, said = packages.without_code(JobSpec.of(found), Path("."), team_config)
    for line in said:
        click.echo(line, err=True)
    click.echo(structured.text(manifest(spec, team_config), form), nl=False)


@generate.command()
@click.argument("name")
@click.option("--weight", type=click.IntRange(1, 65535), default=1, show_default=True, help="Weight among siblings.")
@click.option("--parent", default="", help="Parent queue. Default: root.")
@click.option("--owner", default="", help="Owner of the queue (free text).")
@click.option("--reclaimable/--not-reclaimable", default=True, help="Whether others may reclaim borrowed resources.")
@click.option("--capability", multiple=True, metavar=AMOUNTS, help="Upper bound; list every resource.")
@click.option("--deserved", multiple=True, metavar=AMOUNTS, help="Deserved share; list every resource.")
@click.option("--guarantee", multiple=True, metavar=AMOUNTS, help="Resources reserved for the queue.")
@click.option("--values", "file", type=click.Path(path_type=Path), help="Values file whose list to extend.")
def queue(
    name: str,
    weight: int,
    parent: str,
    owner: str,
    reclaimable: bool,
    capability: tuple[str, ...],
    deserved: tuple[str, ...],
    guarantee: tuple[str, ...],
    file: Path | None,
) -> None:
    """Print a shared queue, as values of the chart.

    \b
    trainyard generate queue research --deserved nvidia.com/gpu=8,cpu=64,memory=512Gi > queues.yaml
    """
    from trainyard.training.generate import values

    block: dict[str, Any] = {"name": name, "weight": weight, "reclaimable": reclaimable}
    block |= {key: text for key, text in (("owner", owner), ("parent", parent)) if text}
    for key, strings in (("deserved", deserved), ("guarantee", guarantee), ("capability", capability)):
        if found := values.quantities(strings, f"--{key}"):
            block[key] = found
    own = values.read(file)
    _print_values(values.with_one(own, "queues", block, values.listed(values.defaults(), "queues")))


@generate.command()
@click.argument("name")
@click.option("--gid", type=int, default=None, help="Group ID of the files. Default: the next free one in --values.")
@click.option("--group", "groups", multiple=True, help="Group of members, as the cluster's authentication reports it.")
@click.option("--user", "users", multiple=True, help="Individual member.")
@click.option("--viewer-group", "viewers", multiple=True, help="Group with read access.")
@click.option("--description", default="", help="Description of the team.")
@click.option("--max-gpus-per-job", type=click.IntRange(0), default=None, help="Maximum number of GPUs per job.")
@click.option(
    "--quota", multiple=True, metavar="[CLASS:]RESOURCE=AMOUNT", help="Limit such as training-normal:gpus=4, pods=100."
)
@click.option("--queue", "queues", multiple=True, help="Additional queue that the team may use.")
@click.option("--priority-class", "classes", multiple=True, help="Priority class that the team's jobs may use.")
@click.option("--deserved", multiple=True, metavar=AMOUNTS, help="Deserved share of the team's queue.")
@click.option("--parent", default="", help="Parent of the team's queue.")
@click.option("--values", "file", type=click.Path(path_type=Path), help="Values file whose list to extend.")
def team(
    name: str,
    gid: int | None,
    groups: tuple[str, ...],
    users: tuple[str, ...],
    viewers: tuple[str, ...],
    description: str,
    max_gpus_per_job: int | None,
    quota: tuple[str, ...],
    queues: tuple[str, ...],
    classes: tuple[str, ...],
    deserved: tuple[str, ...],
    parent: str,
    file: Path | None,
) -> None:
    """Print a team, as values of the chart. The chart creates its namespace, queue, permissions, keys and volumes.

    \b
    trainyard generate team vision --group vision-members --max-gpus-per-job 4 --values teams.yaml
    """
    from trainyard.training.generate import values

    own = values.read(file)
    block: dict[str, Any] = {"name": name, "gid": values.free_gid(own) if gid is None else gid}
    if description:
        block["description"] = description
    members = {key: list(who) for key, who in (("groups", groups), ("users", users)) if who}
    if members:
        block["members"] = members
    if viewers:
        block["viewers"] = {"groups": list(viewers)}
    inner = {"deserved": values.quantities(deserved, "--deserved"), "parent": parent}
    if any(inner.values()):
        block["queue"] = {key: value for key, value in inner.items() if value}
    if max_gpus_per_job is not None:
        block["maxGpusPerJob"] = max_gpus_per_job
    if quota:
        block["quota"] = values.quotas(quota)
    block |= {key: list(given) for key, given in (("queues", queues), ("priorityClasses", classes)) if given}
    if any(other.get("gid") == block["gid"] for other in values.listed(own, "teams")):
        raise UsageError(f"gid {block['gid']} belongs to another team", hint="omit --gid to use the next free gid")
    _print_values(values.with_one(own, "teams", block, []))


@generate.command()
@click.argument("name")
@click.option(
    "--train", "framework", type=click.Choice([kind.framework for kind in with_gang()]), help="Framework of the job."
)
@click.option("--nodes", type=click.IntRange(1, 1024), default=2, show_default=True, help="Nodes of the job.")
@click.option("--gpus", type=click.IntRange(0, 64), default=1, show_default=True, help="GPUs per node of the job.")
@click.option("--image", default="", help="Image of the steps. Default: the platform's PyTorch trainer.")
@common.contract_file
def pipeline(name: str, framework: str | None, nodes: int, gpus: int, image: str, contract_file: Path | None) -> None:
    """Print a kfp pipeline that is ready to run. The three steps prepare, train and evaluate.

    \b
    trainyard generate pipeline digits > digits.py && trainyard run --local digits.py
    """
    from trainyard import contract
    from trainyard.training.generate import pipeline as made

    chosen = image or contract.find(contract_file).images["trainerTorch"]
    click.echo(made.text(name, chosen, framework or "", nodes, gpus), nl=False)


def _print_values(values: dict[str, Any]) -> None:
    click.echo(WHOLE + structured.text(values, "yaml"), nl=False)
