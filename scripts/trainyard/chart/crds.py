"""Which kinds the chart's parts bring, by the plural that their CRD is named after."""

from __future__ import annotations

from trainyard.kinds import registry

OPERATOR_CRDS = tuple(kind.plural for kind in registry.of_part(registry.OPERATOR))
# Of Argo's kinds those that its controller watches, but for the one of the whole cluster, which no team could use.
ARGO_CRDS = (
    "workflows", "workflowtemplates", "cronworkflows",
    "workflowtaskresults", "workflowtasksets", "workflowartifactgctasks",
)  # fmt: skip
