"""metrics-server, an option of the chart: switched on by one upgrade, it answers a member's `kubectl top pods`."""

import time

from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context, member
from trainyard_dev.e2e.entry import MONITORING, TRAINS, UPGRADES, check
from trainyard_dev.e2e.recorder import CheckError, Figures, require
from trainyard_dev.e2e.releases import RELEASE, changed

ON = "metrics-server.enabled=true"
PATIENCE_S = 120
API = "v1beta1.metrics.k8s.io"
BUSY = "while true; do for i in {1..9999}; do :; done; sleep 0.2; done"  # enough load to be visible, and no full core


@check("metrics.top", title="enabled, metrics-server answers kubectl top pods of a member; disabled, it is gone",
       rank=TRAINS, locks={MONITORING}, shares={UPGRADES}, images=("metrics-server",),
       inputs=("charts/metrics-server",))  # fmt: skip
def top(context: Context, figures: Figures) -> None:
    """Switched on, queried by a member about a busy pod of the team, and switched off again."""
    with context.holding(context.pod("busy", BUSY)):
        with changed(context, ON) as figures["seconds"]:
            figures["said"] = said = _answer(context)
        name, cpu, memory = said.split()[:3]
        require(name == "busy" and int(cpu.removesuffix("m")) > 0, f"kubectl top printed {said}")
        require(memory.endswith("Mi"), f"kubectl top printed {said}")
    require(context.kubectl.find("apiservice", API) is None, f"APIService {API} still exists")


def _answer(context: Context) -> str:
    """The line that a member gets about the pod. Raises CheckError if there is none in time."""
    end = time.monotonic() + PATIENCE_S
    while True:
        asked = context.kubectl(*member(NAMESPACE), "top", "pod", "busy", "-n", NAMESPACE, "--no-headers", check=False)
        said = (asked.stdout or asked.stderr).strip()
        if asked.returncode == 0 and said:
            return said
        if time.monotonic() > end:
            raise CheckError(f"no metrics after {PATIENCE_S} s: {said[-300:]}; {_state(context)}")
        time.sleep(2)


def _state(context: Context) -> str:
    """The API server's status of the APIService, and the pod's last lines: after the run it is gone."""
    found = (context.kubectl.find("apiservice", API) or {}).get("status", {}).get("conditions") or []
    log = context.kubectl("logs", "-n", SYSTEM, f"deploy/{RELEASE}-metrics-server", "--tail=5", check=False)
    return f"{API}: {'; '.join(one.get('message', '') for one in found)}; its log: {(log.stdout or log.stderr)[-900:]}"
