"""Gives upstream components the rights that they use, in place of the wider ones that their charts hand out.

The rights stand in `rights/<component>.yaml`, found by reading what the component's source asks the API for. The hash
of upstream's own rules is kept beside: when an upstream release changes them, packaging stops until someone has looked.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from trainyard.errors import TrainyardError

RIGHTS = Path(__file__).parent / "rights"
# From `rules:` to the end of the document or of the template's last condition.
_RULES = re.compile(r"^rules:\n(?P<rules>.*?)(?=^---$|^\{\{- end \}\}\n?\Z)", re.M | re.S)
_IN_NAMESPACE = """\
---
kind: Role
apiVersion: rbac.authorization.k8s.io/v1
metadata:
  name: {{ .Release.Name }}-@NAME@
  namespace: {{ .Release.Namespace }}
rules:
@RULES@---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata:
  name: {{ .Release.Name }}-@NAME@
  namespace: {{ .Release.Namespace }}
subjects:
  - kind: ServiceAccount
    name: {{ .Release.Name }}-@NAME@
    namespace: {{ .Release.Namespace }}
roleRef:
  kind: Role
  name: {{ .Release.Name }}-@NAME@
  apiGroup: rbac.authorization.k8s.io
"""


@dataclass(frozen=True)
class Role:
    """The one Role or ClusterRole in a template of a chart; `seen` is the hash of the rules that ours stand for."""

    chart: str
    component: str
    seen: str

    @property
    def file(self) -> str:
        """The template that holds it."""
        return f"templates/{self.component}.yaml"


ROLES = (
    Role("volcano", "scheduler", "1ea95893849d368a"),
    Role("volcano", "controllers", "e02835db7a62e522"),
    Role("volcano", "admission", "c7690289896e0c93"),
    Role("volcano", "admission-init", "6cb078cbe335d5d4"),
)


def adapt_rbac(name: str, folder: Path) -> None:
    """Replace the rules in the copy of chart `name` in `folder`. Raises TrainyardError when upstream's have changed."""
    for role in (role for role in ROLES if role.chart == name):
        file = folder / role.file
        text = file.read_text()
        found = _RULES.findall(text)
        seen = hashlib.sha256(found[0].strip().encode()).hexdigest()[:16] if len(found) == 1 else f"{len(found)} roles"
        if seen != role.seen:
            raise TrainyardError(
                f"the {name} chart changed the rights of its {role.component} ({seen})",
                where=role.file,
                mend=f"compare them with chart/rights/{role.component}.yaml, then note the new hash in adapt_rbac.py",
            )
        everywhere, _, here = (RIGHTS / f"{role.component}.yaml").read_text().partition("---\n")
        made = f"rules:\n{everywhere}"
        if here:
            made += _IN_NAMESPACE.replace("@RULES@", here).replace("@NAME@", role.component)
        file.write_text(_RULES.sub(lambda _, made=made: made, text))
