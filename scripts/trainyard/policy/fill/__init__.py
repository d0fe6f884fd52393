"""Defaults that the platform fills in for members, from the table in policies/fill/table.yaml.

from trainyard.policy import fill

fill.policies()                            # a MutatingAdmissionPolicy for each group of kinds, for the chart
made = fill.filled(manifest, contract, team)   # the same without an API server
made.obj, made.names, made.images          # the object, what was filled in, (old, new) images
"""

from trainyard.policy.fill.apply import Filled, filled, lists
from trainyard.policy.fill.render import API, KIND, PREFIX, TOLD, packed, policies
from trainyard.policy.fill.table import FILE, WARNING, Entry, Group, groups

__all__ = [
    "API", "FILE", "KIND", "PREFIX", "TOLD", "WARNING", "Entry", "Filled", "Group", "filled", "groups", "lists",
    "packed", "policies",
]  # fmt: skip
