"""The site for the policies' cases, as tests/policies makes it on a real API server."""

import yaml

from trainyard import contract
from trainyard.paths import ROOT

PLACE = ROOT / "tests" / "policies"
VALUES = [yaml.safe_load((PLACE / name).read_text()) for name in ("teams.yaml", "options.yaml")]
SITE = contract.read.contract(contract.render.of_values(VALUES[0] | VALUES[1], str(PLACE)), str(PLACE))
# Namespaces made by hand, as tests/policies/extra.yaml has them: no LimitRange gives amounts there.
BARE = contract.Team("bare", ("vision",), ("training-normal",), 8, "10Gi", quota={"training-normal": {"gpus": 8}})
POOLS = [(name, {"trainyard.io/pool": name}) for name in ("gpu", "cpu")]
POOLS += [("data", {"site": "north", "trainyard.io/pool": "data"})]
STAYS = tuple(contract.Pool(name, "gpu" if name == "gpu" else "cpu", labels) for name, labels in POOLS)
KEPT = contract.Team("kept", ("vision",), ("training-normal",), 8, "10Gi", pools=STAYS, stays=True)
