"""Lint and Argo's own published schema know the same fields."""

import json

from trainyard.policy.lint import shapes
from trainyard_dev import tools

OURS = "io.argoproj.workflow.v1alpha1."


def test_lint_takes_every_field_of_argo() -> None:
    published = json.loads((tools.module_dir("argo") / "api" / "jsonschema" / "schema.json").read_text())["definitions"]
    known = {
        name: one for kind in ("Workflow", "CronWorkflow") for name, one in shapes._argo(kind).schema["$defs"].items()
    }
    both = {name for name in known if f"{OURS}{name}" in published}
    assert len(both) > 90
    for name in both:
        lacks = published[OURS + name].get("properties", {}).keys() - known[name].get("properties", {}).keys()
        assert not lacks, (name, lacks)
