"""Cuts the nodes of a test cluster off from everything but themselves, and reconnects them.

The rules are in the nodes' own network namespace: a chain of the mangle table, which sees every packet that a node
sends or forwards before network policies apply. Names of nodes and registry are written to the nodes' hosts
files, because the name server is outside.
"""

import json
from collections.abc import Sequence

from trainyard_dev.cluster import config
from trainyard_dev.engine import Engine
from trainyard_dev.images import registry
from trainyard_dev.images.registry import NETWORK

CHAIN = "TRAINYARD-AIRGAP"
MARK = "# trainyard-airgap"
HOOKS = ("OUTPUT", "FORWARD")
# Neighbour discovery and link-local multicast: IPv6 doesn't work without them.
LINK6 = ("fe80::/10", "ff02::/16", "::1/128")
_HOSTS = 'for f in /etc/hosts $(grep -ls "(host network)" /var/lib/kubelet/pods/*/etc-hosts)'


def cut(engine: Engine, nodes: Sequence[str]) -> None:
    """Limits the nodes and their pods to nodes, pods, services and the registry.

    Inbound connections to a node continue; a node's earlier outbound connections are cut, too.
    """
    listed = addresses(engine, [*nodes, registry.NAME])
    networking = config.template()["networking"]
    four = [networking["podSubnet"], networking["serviceSubnet"], "127.0.0.0/8"]
    four += [address for found in listed.values() for address in found if ":" not in address]
    six = [*LINK6, *(address for found in listed.values() for address in found if ":" in address)]
    names = "\\n".join(f"{found[0]} {name} {MARK}" for name, found in listed.items())
    script = f"""
{_rules("iptables", four)}
if [ -n "$(ip -6 -o addr show scope global)" ]; then
{_rules("ip6tables", six)}
fi
{_HOSTS}; do printf '{names}\\n' >> "$f"; done
"""
    for node in nodes:
        engine.exec(node, ["bash", "-euc", script])


def rejoin(engine: Engine, nodes: Sequence[str]) -> None:
    """Reverts all that `cut` did; harmless without it."""
    lines = [
        f"{program} -w -t mangle {what} 2>/dev/null || true"
        for program in ("iptables", "ip6tables")
        for what in (*(f"-D {hook} -j {CHAIN}" for hook in HOOKS), f"-F {CHAIN}", f"-X {CHAIN}")
    ]
    # Written in place: an engine may have mounted the file.
    lines.append(f"""{_HOSTS}; do rest=$(grep -v '{MARK}' "$f"); printf '%s\\n' "$rest" > "$f"; done""")
    for node in nodes:
        engine.exec(node, ["bash", "-uc", "\n".join(lines)])


def dropped(engine: Engine, nodes: Sequence[str]) -> dict[str, int]:
    """Packets dropped since `cut`: `web` to ports 80 and 443, as registries have them, and `other`."""
    counts = {"web": 0, "other": 0}
    for node in nodes:
        for program in ("iptables", "ip6tables"):
            listed = engine.exec(node, [program, "-w", "-t", "mangle", "-nvxL", CHAIN], check=False)
            for line in listed.stdout.splitlines():
                words = line.split()
                if len(words) > 2 and words[2] == "DROP":
                    counts["web" if "80,443" in line else "other"] += int(words[0])
    return counts


def addresses(engine: Engine, containers: Sequence[str]) -> dict[str, list[str]]:
    """IP addresses of containers on the cluster's network, version 4 first."""
    found = {}
    for name in containers:
        answer = json.loads(engine("inspect", "--format", "{{json .NetworkSettings.Networks}}", name).stdout)
        network = answer[NETWORK]
        found[name] = [one for one in (network["IPAddress"], network.get("GlobalIPv6Address")) if one]
    return found


def gateway(engine: Engine) -> str:
    """This machine's address on the cluster's network, from docker or podman."""
    [network] = json.loads(engine("network", "inspect", NETWORK).stdout)
    ranges = network.get("subnets") or network["IPAM"]["Config"]
    found = [one.get("gateway") or one.get("Gateway") for one in ranges]
    return next(one for one in found if one and ":" not in one)


def _rules(program: str, allowed: Sequence[str]) -> str:
    run = f"{program} -w -t mangle"
    return "\n".join(
        [
            f"{run} -N {CHAIN} 2>/dev/null || {run} -F {CHAIN}",
            f"{run} -A {CHAIN} -m conntrack --ctstate ESTABLISHED,RELATED --ctdir REPLY -j RETURN",
            *(f"{run} -A {CHAIN} -d {address} -j RETURN" for address in allowed),
            f"{run} -A {CHAIN} -p tcp -m multiport --dports 80,443 -j DROP",
            f"{run} -A {CHAIN} -j DROP",
            *(f"{run} -C {hook} -j {CHAIN} 2>/dev/null || {run} -I {hook} 1 -j {CHAIN}" for hook in HOOKS),
        ]
    )
