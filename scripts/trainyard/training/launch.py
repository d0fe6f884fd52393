"""Launches a job from its settings: code to the store, the job to its queue, the results back."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard.errors import UsageError
from trainyard.kinds import JobSpec, TeamConfig, images, imports, manifest, mpi_launch, pods, requirements, saved
from trainyard.kinds import packages as of_packages
from trainyard.kinds.fit import Fit, fit, refusal
from trainyard.kinds.spec import JOB, several_nodes
from trainyard.kinds.team_config import BUCKET
from trainyard.kube import Kube, caller
from trainyard.training import detect, packages, results
from trainyard.training.pack import Pack, pack
from trainyard.training.settings import FILE, Settings
from trainyard.training.transfer import Store, open_store

if TYPE_CHECKING:
    from trainyard.contract import Contract

Object = dict[str, Any]
LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, to avoid words
SUFFIX = 5
SENT, NOTE, WARNING, HINT = "sent", "note", "warning", "hint"
PYTHONS = ("python3", "python")
UNSAVED = (
    "an elastic job restarts all ranks when a node comes or goes, from the beginning unless they save: "
    "set the folder of checkpoints with --checkpoints"
)


@dataclass(frozen=True)
class Advice:
    """A sentence about a job. `level`: SENT is about what is sent to the cluster, all others also apply to dry runs."""

    level: str
    text: str


@dataclass(frozen=True)
class Launch:
    """A job that is ready to be created, with its code and the sentences about both."""

    spec: JobSpec
    manifest: Object
    code: Pack
    advice: tuple[Advice, ...]


def prepare(folder: Path, settings: Settings, team_config: TeamConfig, archive: Path, *, resume: str = "") -> Launch:
    """Packs the code and builds the manifest; sends nothing.

    Args:
        archive: path of the archive to write.
        resume: an earlier run, from whose checkpoints this one starts.

    Raises:
        UsageError: a setting is invalid, the team may not use it, or the image lacks an import of the code.
    """
    given, why, team = dict(settings), "", team_config.team.name
    given.pop("team", None)
    given.setdefault("name", detect.job_name(folder))
    if not given.get("command"):
        raise UsageError("no command to run", hint=f"write it after --, or as command in {FILE}")
    given, note = mpi_launch.translated(given, folder)
    if "framework" not in given:
        given["framework"], why = detect.framework(folder, given["command"])
        if given["framework"] == JOB and int(given.get("nodes", 1)) > 1:
            what = f"{why}, so it is unknown how {given['nodes']} nodes find each other"
            raise UsageError(what, hint=f"set --framework {several_nodes()}")
    if resume and not given.get("checkpoints"):
        raise UsageError("no folder of checkpoints is set", hint="set the folder with --checkpoints")
    listed = requirements.of_folder(folder, given.pop("requirements", None))
    spec, seen = _fitting(JobSpec.of(given), folder, team_config, listed.names)
    run = f"{spec.name}-{''.join(secrets.choice(LETTERS) for _ in range(SUFFIX))}"
    needs = packages.of(listed, team, pods.image_of(spec, team_config), team_config.contract.packages)
    kept = tuple(filter(None, (spec.results, spec.checkpoints)))
    lost = saved.lost(folder, spec.command, kept, [mount.path for mount in spec.mounts])
    code = pack(folder, archive, without=kept)
    spec = replace(
        spec,
        name=run,
        team=team,
        code=f"{team}/code/{code.sha256}.tar.gz",
        code_sha256=code.sha256,
        command=of_packages.started(spec.command) if needs.key else spec.command,
        requirements=needs.file,
        packages=needs.key,
        output=output_of(team, run),
        resume=output_of(team, resume) if resume else "",
    )
    made = manifest(spec, team_config)
    why = "; ".join(filter(None, (why, seen.why)))
    advice = [
        (NOTE, note),
        (WARNING, UNSAVED if spec.min_nodes and not spec.checkpoints else ""),
        (SENT, _headline(spec, f"{made['kind']} ({why})" if why else made["kind"], team_config, code)),
        *((SENT, f"skipped: {name} is not a file") for name in code.left_out),
        *((SENT, f"sent: {name} is a link to a file outside the folder") for name in code.outside),
        *((NOTE, line) for line in needs.said),
        *((WARNING, f"{one.where} {one.what}; {one.hint}") for one in seen.doubtful),
        *((WARNING, "; ".join(one.advice(spec.results))) for one in lost),
    ]
    return Launch(spec, made, code, tuple(Advice(level, text) for level, text in advice if text))


def _headline(spec: JobSpec, kind: str, team_config: TeamConfig, code: Pack) -> str:
    size = f"{spec.min_nodes} to " if spec.min_nodes else ""
    size += f"{spec.nodes} {'node' if spec.nodes == 1 else 'nodes'}"
    size += f" with {spec.gpus} {'GPU' if spec.gpus == 1 else 'GPUs'} each" if spec.gpus else ""
    queue = spec.queue or team_config.team.queues[0]
    return f"{spec.name}: {kind} on {size}, queue {queue}, {code.files} files of code"


def _fitting(spec: JobSpec, folder: Path, team_config: TeamConfig, listed: Collection[str]) -> tuple[JobSpec, Fit]:
    """The job with an image that has the code's imports, and the result of comparing them. Raises UsageError.

    `listed` are the packages of its requirements. The image's Python, if it surely has one, prints on which device the
    command computes.
    """
    found = imports.of_folder(folder, spec.command, imports.environment(spec.env))
    reference, asked = pods.image_of(spec, team_config), bool(spec.image)
    seen = fit(found, spec.framework, reference, team_config, asked=asked, listed=listed)
    if seen.refused:
        raise refusal(seen.refused)
    spec = replace(spec, image=seen.image or spec.image)
    ours = images.of_reference(seen.image or reference) is not None
    python = spec.command[0] if spec.command[0] in PYTHONS else PYTHONS[0] if ours else ""
    return replace(spec, python=python), seen


def linted(launch: Launch, known: Contract) -> list[Advice]:
    """Warnings about the job, including its pods. Raises UsageError for errors that the cluster would reject."""
    from trainyard.policy import lint

    findings = lint.manifest(launch.manifest, lint.site(known, launch.spec.team))
    for one in findings:
        if one.severity is lint.Severity.ERROR:
            raise UsageError(f"{one.reason} ({one.code}, {one.field})", where=launch.spec.name, hint=one.hint)
    warnings = [f"{one.reason} ({one.code})" for one in findings if one.severity is lint.Severity.WARNING]
    return [Advice(WARNING, text) for text in dict.fromkeys(warnings)]  # several roles have the same warnings


def output_of(team: str, run: str) -> str:
    """Location of a run's results and checkpoints in the bucket."""
    return f"{team}/jobs/{run}"


def send(store: Store, launch: Launch) -> bool:
    """Uploads the code to the store; returns False if the store has it already."""
    label, errors = f"sending {launch.code.size / 1024:.0f} KiB", sys.stderr
    with click.progressbar(length=launch.code.size, label=label, file=errors) as bar:
        return store.put(launch.code.path, f"{BUCKET}/{launch.spec.code}", progress=bar.update)


def submit(kube: Kube, team_config: TeamConfig, launch: Launch) -> bool:
    """Sends the code and creates the job; returns whether the code was new.

    Before sending anything, checks that the cluster would accept the job. Raises TrainyardError.
    """
    kube.create(launch.manifest, dry_run=True)
    with open_store(kube, team_config) as store:
        new = send(store, launch)
    caller.sign(kube, launch.manifest)
    kube.create(launch.manifest)
    return new


def bring(kube: Kube, team_config: TeamConfig, run: str, folder: str, target: Path) -> list[str]:
    """Downloads the results of a run to `target`; returns the names of the files. Raises TrainyardError."""
    with open_store(kube, team_config) as store:
        return results.fetch(store, output_of(team_config.team.name, run), folder, target)
