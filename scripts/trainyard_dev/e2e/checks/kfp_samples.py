"""KFP's own compiled samples, each submitted unchanged by a member, on nodes without egress."""

import csv
import hashlib
import io
import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import OUT
from trainyard.pipelines.ir import load
from trainyard.pipelines.ir.model import Pipeline
from trainyard.pipelines.runs import end, nodes
from trainyard_dev import campaigns
from trainyard_dev.e2e import runs, store
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.entry import ALONE, KFP_IMAGES, TENSORFLOW, TORCH, check
from trainyard_dev.e2e.recorder import Figures, require
from trainyard_dev.e2e.runs import Seen
from trainyard_dev.e2e.sites import egress

FOLDER, FILE = "KFP_SAMPLES", OUT / "kfp" / "samples.csv"
AT_ONCE, ONE_S, PUT_S = 4, 1200, 600  # two samples sleep for 900 s
NAME = "kfp-samples"  # a claim and an object that samples use
VALUES: dict[str, Any] = {"STRING": "text", "NUMBER_INTEGER": 2, "NUMBER_DOUBLE": 1.5, "BOOLEAN": True,
                          "LIST": ["a", "b"], "STRUCT": {"a": 1}}  # fmt: skip
WELL = ("done", "cached", "skipped", "omitted")
LEAST = 0.95  # share of the valid samples that are not `elsewhere` which must do as KFP documents


@dataclass(frozen=True)
class Verdict:
    """The outcome of one sample: succeeded, failed or refused as expected, or `differs`; and whether it was judged."""

    file: str
    verdict: str
    judged: bool
    seconds: int
    why: str = ""


@cache
def due() -> dict[str, Any]:
    """The table of expected outcomes next to this file."""
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return found


def folder() -> Path:
    """The folder of the samples. Raises UsageError if they are not the table's."""
    place = Path(os.environ[FOLDER])
    found = digest(place) if place.is_dir() else "nothing"
    if found != due()["digest"]:
        hint = f"check out {due()['commit']} of kubeflow/pipelines and name its test_data/sdk_compiled_pipelines"
        raise UsageError(f"the samples differ from the table: {found}", where=f"{FOLDER}={place}", hint=hint)
    return place


def digest(place: Path) -> str:
    """A digest of all YAML files below a folder, by name and content."""
    told = hashlib.sha256()
    for name in names(place):
        told.update(f"{name} {hashlib.sha256((place / name).read_bytes()).hexdigest()}\n".encode())
    return told.hexdigest()[:16]


def names(place: Path) -> list[str]:
    """Paths of the samples below the folder."""
    return sorted(str(one.relative_to(place)) for one in place.rglob("*.yaml"))


@check("pipelines.kfp-samples", title="KFP's own compiled samples run unchanged on nodes without egress",
       asked=FOLDER, locks={ALONE}, long=True, images=(*KFP_IMAGES, TENSORFLOW, TORCH))  # fmt: skip
def samples(context: Context, figures: Figures) -> None:
    """All samples, a few at a time; the table of outcomes is written to `FILE`."""
    with _ready(context) as place:
        said = threading.Lock()

        def told(name: str) -> Verdict:
            found = _one(context, place / name, name)
            with said:
                print(f"    {found.verdict:10}{found.file:90}{found.seconds:4} s  {found.why[:160]}", flush=True)
            return found

        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(told, names(place)))
        FILE.parent.mkdir(parents=True, exist_ok=True)
        with FILE.open("w", newline="") as file:
            csv.writer(file).writerows([[one.name for one in fields(Verdict)], *map(astuple, found)])
        judged = [one for one in found if one.judged]
        figures |= Counter(one.verdict for one in judged) | {"elsewhere": len(found) - len(judged)}
        valid = [one for one in judged if one.file.startswith("valid/")]
        well = sum(one.verdict in ("succeeded", "failed") for one in valid)
        figures["well"] = f"{well} of {len(valid)}"
        require(not any("Traceback" in one.why for one in found), "a sample ended with a traceback")
        others = [f"{one.file}: {one.why}" for one in judged if one.verdict == "differs"]
        require(not others, f"{len(others)} end differently than KFP specifies: {'; '.join(others)[:900]}")
        require(well >= LEAST * len(valid), f"{well} of {len(valid)} valid samples behave as KFP specifies, below 95 %")
        campaigns.ended("kfp-conformance", good=True)


@contextmanager
def _ready(context: Context) -> Iterator[Path]:
    """The samples, the data of KFP's tests, wheels, an object and a claim; nodes are cut off while the block runs."""
    place = folder()
    with tempfile.TemporaryDirectory(prefix="trainyard-e2e-") as scratch:
        wanted = Path(scratch) / "requirements.txt"
        wanted.write_text("\n".join(due()["wheels"]))
        runs.engineer(context, "wheels", "put", wanted, "--python", "3.11", timeout=PUT_S)
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
        for name, data in due()["secrets"].items()
    ]
    spec = {"storageClassName": context.shared_class, "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
    made.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": NAME}, "spec": spec})
    context.kubectl.apply(made, NAMESPACE)
    with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as s3:
        s3.client.put_object("runs", f"{NAMESPACE}/{NAME}/input.txt", io.BytesIO(b"text"), 4)
    cut = [node.name for node in context.nodes]
    egress.cut(context.engine, cut)
    try:
        yield place
    finally:
        egress.rejoin(context.engine, cut)
        for one in made:
            what = (one["kind"], one["metadata"]["name"], "-n", NAMESPACE, "--wait=false")
            context.kubectl("delete", *what, check=False)


def _one(context: Context, file: Path, name: str) -> Verdict:
    """Submits one and waits for its end."""
    began = time.monotonic()
    elsewhere = {one: why for why, all_ in due()["elsewhere"].items() for one in all_}
    options = [word for key, value in _arguments(file, name).items() for word in ("-p", f"{key}={value}")]
    try:
        code, out, said = runs.trainyard(
            context, "submit", file, "--wait", "-o", "json", *options, check=False, timeout=ONE_S
        )
        seen = Seen("", NAMESPACE, json.loads(out)) if out.strip() else None
        verdict, why = _judged(name, code, seen, said)
        if seen:
            seen.name = seen.workflow["metadata"]["name"]
            runs.forget(context, seen)  # a team may only have a limited number
    except Exception as error:  # the other samples are reported, too
        verdict, why = "differs", f"{type(error).__name__}: {error}"
    lacks = elsewhere.get(_short(name), "")
    told = "; ".join(filter(None, (lacks, why)))
    return Verdict(name, verdict, not lacks, round(time.monotonic() - began), told)


def _judged(name: str, code: int, seen: Seen | None, said: str) -> tuple[str, str]:
    """The outcome, and a sentence if it isn't the expected one."""
    told = " ".join(" ".join(line for line in said.splitlines() if ": note TY" not in line).split())[-400:]
    if seen is None:
        return ("refused" if code in (1, 2) and "Traceback" not in said else "differs"), told
    fails = name.startswith("valid/failing/") or _short(name) in due()["fail"]
    if name.startswith("invalid/") or seen.phase != ("Failed" if fails else "Succeeded"):
        return "differs", f"the run ended {seen.phase}: {seen.why_failed or told}"
    if fails:
        return "failed", ""
    bad = [f"{step.name} is {step.state}" for step in seen.run.steps if step.state not in WELL]
    have, wanted = end.results(nodes.run(seen.workflow)), due()["outputs"].get(_short(name), {})
    bad += [f"{key} is {have.get(key)}, due is {one}" for key, one in wanted.items() if _value(have.get(key)) != one]
    return ("differs" if bad else "succeeded"), "; ".join(bad)


def _short(name: str) -> str:
    return name.removeprefix("valid/").removesuffix(".yaml")


def _value(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except ValueError:
        return text


def _arguments(file: Path, name: str) -> dict[str, str]:
    """Values of the pipeline's inputs that have no default."""
    try:
        found = asked(load.file(file), VALUES, f"s3://runs/{NAMESPACE}/{NAME}/input.txt")
    except TrainyardError:
        return {}
    found |= due()["arguments"].get(_short(name), {})
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}


def asked(pipeline: Pipeline, values: Mapping[str, Any], artifact: str) -> dict[str, Any]:
    """A placeholder for every input without a default: a value of its type, or the artifact's address."""
    inputs = pipeline.inputs
    wanted = [one for one in inputs.parameters.values() if one.required and one.name not in pipeline.arguments]
    found = {one.name: values[one.type] for one in wanted}
    return found | {one.name: artifact for one in inputs.artifacts.values() if not one.optional}
