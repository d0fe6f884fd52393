"""Attacks on log-in on a cluster: forged tokens, Kubernetes' own names, Dex's other ports."""

import time
from typing import Any

from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.recorder import had, require
from trainyard_dev.e2e.sites.login import ADA, EVE, PREFIX, Site
from trainyard_dev.e2e.sites.person import Person

TITLE = "forged, foreign and long-lived tokens, `system:` names, Dex's other ports and its Secrets are all refused"
SECRETS = ("trainyard-login", "trainyard-login-people", "trainyard-login-tls", "trainyard-notebooks-oidc")
HTTPS, GRPC, TELEMETRY = 5556, 5557, 5558
CLOSED = (GRPC, TELEMETRY)
TRY_S = 3
DOORS = "login-doors"
ANYWHERE = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": DOORS},
    "spec": {"podSelector": {"matchLabels": {"app": DOORS}}, "policyTypes": ["Egress"], "egress": [{}]},
}


def refused(there: Site, ada: Person, eve: Person, figures: dict[str, Any]) -> None:
    """Runs all attacks. Raises CheckError."""
    figures["tokens refused"] = _tokens(there)
    _prefixed(there, eve)
    for name in SECRETS:
        there.secret(name)
        code, said = ada.kubectl("get", "secret", name, "-n", SYSTEM)
        require(code != 0 and "cannot get resource" in said, f"a member reads {name}: {said[-300:]}")
    _doors(there.context)


def _tokens(there: Site) -> int:
    """Each token is the valid one with a single defect. Raises CheckError."""
    now, dex, own = int(time.time()), there.forger(), there.forger(own=True)
    who = there.asked(dex.token())
    require(who and who["username"] == f"{PREFIX}{ADA}", f"the token that the attacks vary belongs to {who}")
    head, claims, signature = dex.token().split(".")
    foreign = there.context.kubectl("create", "token", "default", "-n", NAMESPACE, "--audience", "trainyard")
    tried = {
        "of another audience": dex.token(aud="somebody-else"),
        "that has ended": dex.token(iat=now - 900, exp=now - 60),
        "of another issuer": dex.token(iss="https://elsewhere.example.org/dex"),
        "signed with another key under the name of the issuer's": own.token(),
        "with no signature": dex.unsigned(),
        "with the claims of another": f"{head}.{dex.token(groups=['system:masters']).split('.')[1]}.{signature}",
        "that counts two days": dex.token(exp=now + 172800),
        "without a name": dex.token(email=None),
        "whose email nobody has verified": dex.token(email_verified=False),
        "of a pod, made for our audience": foreign.stdout.strip(),
    }
    require(claims, "a token has no claims")
    taken = {what: found for what, text in tried.items() if (found := there.asked(text)) is not None}
    require(not taken, f"the API server accepted a token {taken}")
    return len(tried)


def _prefixed(there: Site, eve: Person) -> None:
    """An issuer's token with `system:masters` makes nobody an administrator. Raises CheckError."""
    who = had(there.asked(eve.token) or there.asked(_renewed(eve)), "eve is refused altogether")
    right = [name for name in who["groups"] if name != "system:authenticated" and not name.startswith(PREFIX)]
    require(not right and who["username"] == f"{PREFIX}{EVE}", f"eve is {who}")
    require(f"{PREFIX}system:masters" in who["groups"], f"her groups are {who['groups']}, so the attack was not tried")
    for verb in (("*", "*"), ("list", "nodes"), ("list", "pods", "-n", NAMESPACE), ("get", "secrets", "-n", SYSTEM)):
        require(eve.may(*verb) == "no", f"eve may {' '.join(verb)}")
    admin = there.asked(there.forger().token(email="system:admin", groups=["system:masters"]))
    require(admin and admin["username"] == f"{PREFIX}system:admin", f"a name reserved by Kubernetes is {admin}")


def _renewed(person: Person) -> str:
    person.kubectl("auth", "whoami")
    return person.token


def _doors(context: Context) -> None:
    """A team's pod without egress limits reaches the page, but no metrics and no other port. Raises CheckError."""
    (issuer,) = context.kubectl.get("pods", "-n", SYSTEM, "-l", "app.kubernetes.io/name=login")
    address = issuer["status"]["podIP"]
    asks = [
        f"timeout {TRY_S} bash -c 'exec 3<>/dev/tcp/{address}/{port}' 2>/dev/null && echo {port}"
        for port in (HTTPS, *CLOSED)
    ]
    every = "\n".join(f"{ask} || true" for ask in asks) + "\necho asked"

    def seen_by(name: str, waiting: str) -> list[str]:
        pod = context.pod(name, f"{waiting}\n{every}", labels={"app": DOORS})
        return context.run_pod(pod)[1].split()

    def until(way: str) -> str:  # a busy node applies a pod's policies later
        return f"for _ in $(seq 10); do {asks[0]} >/dev/null {way} break; sleep 1; done"

    seen = seen_by(DOORS, until("||"))
    require(seen == ["asked"], f"a team's pod reaches {seen} of Dex instead of nothing")
    context.kubectl.apply([ANYWHERE], NAMESPACE)  # teams' own policies block all of it; this tests Dex's policy
    try:
        seen = seen_by(f"{DOORS}-open", until("&&"))
    finally:
        context.kubectl("delete", "networkpolicy", DOORS, "-n", NAMESPACE)
    require(seen == [str(HTTPS), "asked"], f"a team's pod reaches {seen} of Dex instead of only the page")
