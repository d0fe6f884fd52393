"""What is done to the copies of upstream charts when the chart is packaged.

Changes of lines are patches, `charts/<component>/patches/`. This module does what a patch can't: what is left out, and
what is computed from what is there: references of images, pull secrets, names of helpers. All of it stops the
packaging when an upstream release is not what was looked at, so that no change is lost in silence.
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

# Left out of the copies: what can't be switched on through our values, and what only old clusters read.
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


CRD_VERSION = "trainyard.io/crd-version"  # as scripts/trainyard_agent/install/crds.py reads it
CRD_DIGEST = "trainyard.io/crd-digest"  # as charts/trainyard/templates/_hooks.tpl compares it


def adapt(name: str, folder: Path) -> None:
    """Change the copy of upstream chart `name` in `folder`. Raises TrainyardError when it is not what was looked at."""
    for entry in DROPPED.get(name, ()):
        target = folder / entry
        if not target.exists():
            raise TrainyardError(f"the {name} chart has no {entry} any more", hint="look at DROPPED in chart/adapt.py")
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    patches.apply_all(patches.of(name), folder)
    if name == "csi-driver-nfs":
        _closed_csi(folder)
    adapt_images(name, folder)


def _closed_csi(folder: Path) -> None:
    """csi-driver-nfs without Secrets, which our storage classes name none of, and with helpers under names of its own.

    Names of helpers are shared by all charts of a release, and our own NFS chart has some of the same.
    """
    found = 0
    for file in sorted((folder / "templates").glob("*")):
        text, count = _CSI_SECRETS.subn("", file.read_text())
        found += count
        file.write_text(text.replace('"nfs.', '"csi-nfs.'))
    if not found:
        raise TrainyardError(
            "the csi-driver-nfs chart changed: its rule for Secrets isn't where it was", hint="look at chart/adapt.py"
        )


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Not everybody's, in which hera writes texts in another way once it is imported."""


_Dumper.add_representer(str, yaml.SafeDumper.represent_str)


def slim_crd(text: str, *, keep: bool = False, version: str = "") -> str:
    """A CRD without the descriptions inside pod templates; they repeat Kubernetes' own documentation a thousand times.

    Descriptions of the kind's own fields stay, so that `kubectl explain` still works for them.

    Args:
        keep: tell Helm to leave the CRD when the release goes; without it every object of its kind would go, too.
        version: the component's version, noted for the hook that moves CRDs on an upgrade, with a digest of all.
    """
    crd = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    marks = crd["metadata"].setdefault("annotations", {})
    # Argo CD looks at every CRD, also at those that Helm never removes.
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
