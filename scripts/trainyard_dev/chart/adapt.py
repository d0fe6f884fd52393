"""The few changes that upstream charts need, made on their copies when the chart is packaged.

Each names the exact line it stands on: an upstream release that changes the line stops the packaging, so that no
change is lost in silence.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev.chart.adapt_images import adapt_images
from trainyard_dev.chart.adapt_rbac import adapt_rbac


@dataclass(frozen=True)
class Change:
    """Replace `old`, which must occur exactly once in the file, by `new`."""

    file: str
    old: str
    new: str
    why: str


VOLCANO = (
    Change(
        "templates/scheduler.yaml",
        "  template:\n    metadata:\n      labels:\n        app: volcano-scheduler\n",
        "  template:\n    metadata:\n      annotations:\n"
        "        cluster-autoscaler.kubernetes.io/safe-to-evict: \"true\"\n"
        "      labels:\n        app: volcano-scheduler\n",
        "its scratch folder holds a socket only: an autoscaler may move it off a node",
    ),
    Change(
        "templates/scheduler.yaml",
        "{{- .Values.custom.scheduler_config_override | nindent 4 }}",
        "{{- tpl .Values.custom.scheduler_config_override . | nindent 4 }}",
        "lets the scheduler's configuration take the GPU resource from the contract",
    ),
    Change(
        "templates/scheduler.yaml",
        "            - --enable-healthz=true\n",
        "            - --enable-healthz=true\n"
        "            - --percentage-nodes-to-find={{ .Values.custom.scheduler_nodes_percent }}\n",
        "the chart has no value for it; packing by GPUs wants every node looked at",
    ),
    Change(
        "templates/scheduler.yaml",
        "          env:\n            - name: DEBUG_SOCKET_DIR\n",
        '          env:\n            - name: GOGC\n              value: "300"\n            - name: GOMEMLIMIT\n'
        "              value: {{ .Values.custom.scheduler_memory_target | quote }}\n"
        "            - name: DEBUG_SOCKET_DIR\n",
        "collects garbage less often until it has that much memory, and then often enough to stay there",
    ),
    Change(
        "values.yaml",
        "  scheduler_kube_api_qps: 2000\n",
        "  scheduler_kube_api_qps: 2000\n  scheduler_memory_target: 850MiB\n  scheduler_nodes_percent: 100\n",
        "the values that the lines above read",
    ),
    Change(
        "templates/scheduler.yaml",
        "        app: volcano-scheduler\n        {{- if or (.Values.custom.scheduler_podLabels)",
        "        app: volcano-scheduler\n        trainyard.io/config: "
        '{{ tpl (.Values.custom.scheduler_config_override | default "") . | sha256sum | trunc 16 | quote }}\n'
        "        {{- if or (.Values.custom.scheduler_podLabels)",
        "a changed configuration restarts the scheduler at once",
    ),
    Change(
        "templates/scheduler.yaml",
        "            {{- toYaml $scheduler_main_csc | nindent 12 }}\n          {{- end }}\n      volumes:\n",
        "            {{- toYaml $scheduler_main_csc | nindent 12 }}\n          {{- end }}\n"
        '        {{- with include "trainyard.schedulerTurns" . }}{{ . | nindent 8 }}{{ end }}\n      volumes:\n',
        "strict order needs a program of ours beside the scheduler",
    ),
    Change(
        "templates/admission.yaml",
        "        rollme/helm-revision: \"{{ .Release.Revision }}\"\n",
        "        trainyard.io/config: {{ .Values.custom | toJson | sha256sum | trunc 16 | quote }}\n",
        "upstream restarts its admission at every upgrade, which leaves the webhooks without an answer for seconds",
    ),
    Change(
        "templates/admission-init.yaml",
        '          command: ["./gen-admission-secret.sh", "--service", "{{ .Release.Name }}-admission-service",'
        ' "--namespace",\n'
        '                    "{{ .Release.Namespace }}", "--secret", "{{.Values.basic.admission_secret_name}}"]\n',
        "          command:\n"
        "            - sh\n"
        "            - -c\n"
        '            - kubectl get secret "$2" -n "$1" -o name 2>/dev/null && exit 0;\n'
        '              exec ./gen-admission-secret.sh --service "$0" --namespace "$1" --secret "$2"\n'
        '            - "{{ .Release.Name }}-admission-service"\n'
        '            - "{{ .Release.Namespace }}"\n'
        '            - "{{ .Values.basic.admission_secret_name }}"\n',
        "an upgrade or a GitOps sync must not replace the certificate (ten years) below a running admission",
    ),
)  # fmt: skip

DEVICE_PLUGIN = (
    Change(
        "templates/daemonset-device-plugin.yml",
        "      {{- if $useServiceAccount }}\n      serviceAccountName:",
        "      automountServiceAccountToken: {{ $useServiceAccount }}\n"
        "      {{- if $useServiceAccount }}\n      serviceAccountName:",
        "it asks the API for nothing unless its configuration comes from a ConfigMap",
    ),
    Change(
        "templates/daemonset-device-plugin.yml",
        "{{- with .Values.affinity }}",
        '{{- with .Values.affinity | default (include "trainyard.gpuAffinity" . | fromYaml) }}',
        "sends it to the GPU pools of the contract",
    ),
    Change(
        "templates/daemonset-device-plugin.yml",
        "{{- with .Values.tolerations }}",
        '{{- with .Values.tolerations | default (include "trainyard.gpuTolerations" . | fromYamlArray) }}',
        "lets it tolerate the taints of the contract",
    ),
)

CHANGES = {"volcano": VOLCANO, "nvidia-device-plugin": DEVICE_PLUGIN}

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
    "nvidia-device-plugin": ("charts", "templates/daemonset-mps-control-daemon.yml", "templates/daemonset-gfd.yml"),
}


CRD_VERSION = "trainyard.io/crd-version"  # as scripts/trainyard_agent/crds.py reads it


def adapt(name: str, folder: Path) -> None:
    """Change the copy of upstream chart `name` in `folder`. Raises TrainyardError when a line is not where it was."""
    for entry in DROPPED.get(name, ()):
        target = folder / entry
        if not target.exists():
            raise TrainyardError(f"the {name} chart has no {entry} any more", mend="look at DROPPED in chart/adapt.py")
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    for change in CHANGES.get(name, ()):
        file = folder / change.file
        text = file.read_text()
        if text.count(change.old) != 1:
            raise TrainyardError(
                f"the {name} chart changed: a line that is adapted is there {text.count(change.old)} times",
                where=change.file,
                mend=f"look at chart/adapt.py, the change that {change.why}",
            )
        file.write_text(text.replace(change.old, change.new))
    if name == "nvidia-device-plugin":
        _without_dependencies(folder)
        _without_placement(folder)
    if name == "csi-driver-nfs":
        _closed_csi(folder)
    adapt_images(name, folder)
    adapt_rbac(name, folder)


def _without_dependencies(folder: Path) -> None:
    """Feature discovery is not part of the platform: node preparation sets the labels."""
    meta = yaml.safe_load((folder / "Chart.yaml").read_text())
    meta.pop("dependencies", None)
    (folder / "Chart.yaml").write_text(yaml.safe_dump(meta, sort_keys=False))
    (folder / "Chart.lock").unlink(missing_ok=True)


def _without_placement(folder: Path) -> None:
    """Empty means "as the contract says"; upstream's defaults would look like a choice."""
    values = yaml.safe_load((folder / "values.yaml").read_text())
    values |= {"affinity": {}, "tolerations": []}
    (folder / "values.yaml").write_text(yaml.safe_dump(values, sort_keys=False))


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
            "the csi-driver-nfs chart changed: its rule for Secrets isn't where it was", mend="look at chart/adapt.py"
        )


def slim_crd(text: str, *, keep: bool = False, version: str = "") -> str:
    """A CRD without the descriptions inside pod templates; they repeat Kubernetes' own documentation a thousand times.

    Descriptions of the kind's own fields stay, so that `kubectl explain` still works for them.

    Args:
        keep: tell Helm to leave the CRD when the release goes; without it every object of its kind would go, too.
        version: the component's version, noted for the hook that moves CRDs on an upgrade.
    """
    crd = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    marks = crd["metadata"].setdefault("annotations", {})
    # Argo CD looks at every CRD, also at those that Helm never removes.
    marks["argocd.argoproj.io/sync-options"] = "Prune=false,Delete=false"
    if keep:
        marks["helm.sh/resource-policy"] = "keep"
    if version:
        marks[CRD_VERSION] = version
    for version in crd["spec"]["versions"]:
        _slim(version["schema"]["openAPIV3Schema"], depth=0)
    return yaml.dump(crd, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, width=200)


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
