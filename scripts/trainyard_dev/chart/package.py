"""Assembles the chart from its parts, packages and renders it, and measures its release."""

import atexit
import base64
import gzip
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trainyard import components
from trainyard.chart import helm, values_schema
from trainyard.chart.helm import NAME, NAMESPACE, RELEASE
from trainyard.components.registry import pin_of
from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import OUT, cache_dir
from trainyard.policy import fill
from trainyard.policy.rules import completed, policy, policy_files
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.chart import adapt, fetched, other, parts, renamed, schema
from trainyard_dev.monitoring import dashboards
from trainyard_dev.versions import load

VERSION = load().raw["trainyard"]
CSI = "csi-driver-nfs"
RELEASE_LIMIT = 800 * 1024  # bytes; the API server's own limit for a Secret is 1 MiB


def assemble(folder: Path, *, csi: bool = True, others: Mapping[str, str] | None = None) -> Path:
    """Write the whole chart to `folder`, which must be empty or absent; returns folder/trainyard.

    Args:
        csi: try to fetch csi-driver-nfs; a package made without it refuses nfs.provisioner: csi with one sentence.
        others: upstream's parts in versions other than the pinned ones, which are untested.
    """
    others = others or {}
    chart = folder / NAME
    parts.copy(parts.UMBRELLA, chart)
    for file in parts.UMBRELLA.parent.glob("*/umbrella/*"):
        shutil.copy(file, chart / "templates")
    meta = yaml.safe_load((chart / "Chart.yaml").read_text())
    versions: dict[str, str] = {}
    for name in parts.own():
        target = chart / "charts" / name
        parts.copy(parts.chart_folder(name), target)
        _write_schema(target, schema.source(name))
    for name, files in parts.crd_files().items():
        crds = chart / "charts" / name / "crds"
        crds.mkdir()
        for file in files:
            (crds / file.name).write_text(
                adapt.slim_crd(file.read_text(), version=load().raw["components"][pin_of(name)])
            )
    for part in parts.upstream():
        target = chart / "charts" / part.name
        source = other.folder(part, others[part.name]) if part.name in others else parts.chart_folder(part.name)
        run(["cp", "-r", "--no-preserve=mode", source, target])
        adapt.adapt(part.name, target)
        for file in sorted(target.rglob("crd/bases/*.yaml")):
            file.write_text(adapt.slim_crd(file.read_text(), keep=True))
    kept = []
    for dependency in meta["dependencies"]:
        name = dependency["name"]
        if name == CSI and not (csi and _fetch_csi(chart)):
            continue
        if not (chart / "charts" / name).exists():
            continue
        versions[name] = _checked_version(chart / "charts" / name, "" if name in others else dependency["version"])
        kept.append({key: value for key, value in dependency.items() if key != "repository"})
        kept[-1] |= {"version": versions[name]} if name in others else {}
    meta["dependencies"] = kept
    if others:
        note = ", ".join(f"{name} {version}" for name, version in sorted(others.items()))
        meta["annotations"] = meta.get("annotations", {}) | {other.NOT_RUN: note}
        other.retag(chart / "values.yaml", others)
    (chart / "Chart.yaml").write_text(yaml.safe_dump(meta, sort_keys=False))
    rules = {file.stem: policy(file) for file in policy_files()}
    (chart / "files" / "policies.json").write_text(json.dumps(rules, indent=1))
    fills = fill.packed() | {"told": completed(fill.WARNING)}
    (chart / "files" / "fills.json").write_text(json.dumps(fills))
    (chart / "files" / "components.json").write_text(json.dumps(components.rendered(), indent=1))
    kinds = json.dumps(registry.rendered(), indent=1)
    (chart / "files" / "kinds.json").write_text(kinds)
    for_monitoring = chart / "charts" / components.MONITORING / "files"  # a part can only read its own files
    for_monitoring.mkdir(exist_ok=True)
    (for_monitoring / "kinds.json").write_text(kinds)
    dashboards.write(for_monitoring / "dashboards")
    (for_monitoring / "endpoints.json").write_text(json.dumps(components.endpoints(), indent=1))
    (chart / "files" / "packaged.yaml").write_text(yaml.safe_dump({"components": versions}))
    _list_options(chart / "values.yaml")
    _write_schema(chart, schema.complete(renamed.allow(schema.source()), kept))
    return chart


def _write_schema(chart: Path, whole: values_schema.Schema) -> None:
    """Write a chart's schema to the path where Helm expects it, instead of its source file."""
    (chart / values_schema.FILE).unlink()
    (chart / "values.schema.json").write_text(json.dumps(whole, indent=1))


def package(
    out: Path = OUT, others: Mapping[str, str] | None = None, finish: Callable[[Path], None] = lambda chart: None
) -> Path:
    """Package the chart as out/charts/trainyard-<version>.tgz and return that path. Raises TrainyardError.

    Args:
        others: as for `assemble`.
        finish: what to change in the assembled folder before it is packed.
    """
    target = out / "charts"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="chart-", dir=cache_dir()) as folder:
        chart = assemble(Path(folder), others=others)
        finish(chart)
        helm.call("package", chart, "--destination", target)
    file = target / f"{NAME}-{VERSION}.tgz"
    if not file.exists():
        raise TrainyardError(f"helm did not create {file.name}", where=str(target))
    return file


@cache
def assembled() -> Path:
    """The whole chart, assembled once and removed when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="chart-", dir=cache_dir())
    atexit.register(folder.cleanup)
    return assemble(Path(folder.name), csi=False)


def template(
    profile: str,
    chart: Path | None = None,
    sets: Sequence[str] = (),
    values: Sequence[Path] = (),
    serves: Sequence[str] = (),
    crds: bool = True,
) -> str:
    """`helm template` of a profile as text.

    Args:
        sets: values as for --set; `values` are files of them.
        serves: API versions of the cluster in addition to Helm's defaults, as `admissionregistration.k8s.io/v1/KIND`.
    """
    flags = [word for file in (*parts.profile_files(profile), *values) for word in ("--values", str(file))]
    flags += [word for one in sets for word in ("--set", one)]
    flags += [word for one in serves for word in ("--api-versions", one)]
    flags += ["--include-crds"] if crds else []
    return helm.call(
        "template", RELEASE, chart or assembled(), "--namespace", NAMESPACE,
        "--kube-version", tools.tested_kubernetes().number, *flags,
    )  # fmt: skip


def render(profile: str, *given: Any, **named: Any) -> list[dict[str, Any]]:
    """Every object that a profile installs, hooks and tests included; arguments as for `template`."""
    return helm.parse(template(profile, *given, **named))


def release_secret_size(profile: str, chart: Path | None = None, values: Sequence[Path] = ()) -> int:
    """Bytes of the Secret in which Helm stores the release: base64 of the gzipped release, manifest and chart.

    Of the parts below charts/ Helm stores rendered objects and values, not files.
    """
    chart = chart or assembled()
    manifest = template(profile, chart, values=values, serves=[f"{fill.API}/{fill.KIND}"], crds=False)
    files = [
        {"name": str(file.relative_to(chart)), "data": base64.b64encode(file.read_bytes()).decode()}
        for file in sorted(chart.rglob("*"))
        if file.is_file() and (file.name == "values.yaml" or chart / "charts" not in file.parents)
    ]
    release = json.dumps({"manifest": manifest, "chart": files}).encode()
    return len(base64.b64encode(gzip.compress(release, 9)))


def _list_options(values: Path) -> None:
    """Add the switch of each component whose block is missing in the umbrella's values, so that readers find it."""
    text = values.read_text()
    known = yaml.safe_load(text)
    for one in components.dependencies():
        if one.name not in known:
            text += f"\n# {one.about}\n{one.name}:\n  enabled: {str(not one.optional).lower()}\n"
    values.write_text(text)


def _checked_version(chart: Path, wanted: str) -> str:
    found = str(yaml.safe_load((chart / "Chart.yaml").read_text())["version"])
    if wanted and found.removeprefix("v") != wanted:
        raise TrainyardError(
            f"chart {chart.name} has version {found}, the umbrella chart requires {wanted}", hint="correct Chart.yaml"
        )
    return found


def _fetch_csi(chart: Path) -> bool:
    """Fetch csi-driver-nfs by its tag; False if its host does not answer. Raises TrainyardError for another archive."""
    if not fetched.fetch(CSI, load().raw["charts"][CSI], chart / "charts"):
        return False
    adapt.adapt(CSI, chart / "charts" / CSI)
    return True
