"""Changes to the copies of upstream charts when the chart is packaged.

Changes of lines are patches, `charts/<component>/patches/`. This module does what a patch can't: it omits files, and
computes changes from the content: references of images, pull secrets, names of helpers. Each step stops the
packaging if an upstream release differs from the expected one, so that no change is lost silently.
"""

import hashlib
import json
import re
import shutil
from pathlib import Path

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev import patches
from trainyard_dev.chart.adapt_images import adapt_images

_CSI_SECRETS = re.compile(r'^ +- apiGroups: \[""\]\n +resources: \["secrets"\]\n +verbs: \[[^]]*\]\n', re.M)

# Left out of the copies: files that our values can't switch on, and files that only old clusters read.
DROPPED = {
    "volcano": (
        "crd/v1beta1",
        "templates/grafana.yaml",
        "templates/prometheus.yaml",
        "templates/kubestatemetrics.yaml",
        "templates/agent.yaml",
        "templates/NOTES.txt",
        "charts/jobflow/templates/NOTES.txt",
    ),
    "nvidia-device-plugin": (
        "charts",
        "Chart.lock",
        "templates/daemonset-mps-control-daemon.yml",
        "templates/daemonset-gfd.yml",
    ),
}


CRD_VERSION = "trainyard.io/crd-version"  # scripts/trainyard_agent/install/crds.py reads it
CRD_DIGEST = "trainyard.io/crd-digest"  # charts/trainyard/templates/_hooks.tpl compares it


def adapt(name: str, folder: Path) -> None:
    """Change the copy of upstream chart `name` in `folder`. Raises TrainyardError if it is not the expected one."""
    for entry in DROPPED.get(name, ()):
        target = folder / entry
        if not target.exists():
            raise TrainyardError(f"the {name} chart no longer has {entry}", hint="update DROPPED in chart/adapt.py")
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    patches.apply_all(patches.of(name), folder)
    if name == "csi-driver-nfs":
        _closed_csi(folder)
    adapt_images(name, folder)


def _closed_csi(folder: Path) -> None:
    """csi-driver-nfs without Secrets, which our storage classes don't name, and with unique names of helpers.

    All charts of a release share names of helpers, and our own NFS chart has some of the same.
    """
    found = 0
    for file in sorted((folder / "templates").glob("*")):
        text, count = _CSI_SECRETS.subn("", file.read_text())
        found += count
        file.write_text(text.replace('"nfs.', '"csi-nfs.'))
    if not found:
        raise TrainyardError(
            "the csi-driver-nfs chart changed: its rule for Secrets was not found", hint="update chart/adapt.py"
        )


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """A separate dumper: importing hera changes how the shared one writes texts."""


_Dumper.add_representer(str, yaml.SafeDumper.represent_str)


def slim_crd(text: str, *, keep: bool = False, version: str = "") -> str:
    """A CRD without the descriptions inside pod templates; they repeat Kubernetes' own documentation a thousand times.

    Descriptions of the kind's own fields stay, so that `kubectl explain` still works for them.

    Args:
        keep: tell Helm to keep the CRD when the release is removed; otherwise every object of its kind would go, too.
        version: the component's version, noted for the hook that moves CRDs on an upgrade, with a digest of the whole.
    """
    crd = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    marks = crd["metadata"].setdefault("annotations", {})
    # Argo CD checks every CRD, even those that Helm never removes.
    marks["argocd.argoproj.io/sync-options"] = "Prune=false,Delete=false"
    if keep:
        marks["helm.sh/resource-policy"] = "keep"
    if version:
        marks[CRD_VERSION] = version
    for offered in crd["spec"]["versions"]:
        _slim(offered["schema"]["openAPIV3Schema"], depth=0)
    if version:
        marks[CRD_DIGEST] = hashlib.sha256(json.dumps(crd, sort_keys=True).encode()).hexdigest()[:32]
    return yaml.dump(crd, Dumper=_Dumper, sort_keys=False, width=200)


def _slim(node: object, *, depth: int) -> None:
    if isinstance(node, list):
        for item in node:
            _slim(item, depth=depth)
    if not isinstance(node, dict):
        return
    if depth > 0 and isinstance(node.get("description"), str):
        del node["description"]
    for key, value in node.items():
        _slim(value, depth=1 if depth or key == "template" else 0)
