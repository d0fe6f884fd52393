"""Argo Workflows' kinds without their schemas, for servers on which Argo itself is not installed."""

from __future__ import annotations

from typing import Any

KINDS = {"workflows": "Workflow", "workflowtemplates": "WorkflowTemplate", "cronworkflows": "CronWorkflow"}


def _crd(plural: str, kind: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.argoproj.io"},
        "spec": {"group": "argoproj.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


CRDS = [_crd(plural, kind) for plural, kind in KINDS.items()]
