"""Log-in by OpenID Connect, an option: members log in by browser or code, work in their own team only, and leave."""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from trainyard_dev.e2e.checks import costs, kfp_client, login_attacks
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.entry import PEOPLE, UPGRADES, WAITS, check
from trainyard_dev.e2e.recorder import patience, require
from trainyard_dev.e2e.sites.login import ADA, BOB, CID, EVE, PREFIX, TOKEN_S, Site, missing
from trainyard_dev.e2e.sites.person import Person
from trainyard_dev.report.photo import photo

TITLES = {
    "login.browser": "a member logs in with a browser and no certificate; a wrong password is refused",
    "login.code": "another member logs in with a device code in a browser elsewhere",
    "login.team": "the member works in her team, and has no access to other teams and the platform",
    "login.job": "the member trains a folder's code, but not in another team's namespace",
    "kfp.outside": kfp_client.OUTSIDE,
    "login.renewed": "an expired token is renewed without interaction and is no longer accepted",
    "login.refused": login_attacks.TITLE,
    "login.left": "a person who leaves the issuer, the team's values or both is refused from then on, nobody else",
    "login.off": "when disabled, no pods run and no token is accepted",
}
TOLD_S, TRAIN_S = 120.0, 300.0
AUDIENCES = ("trainyard", "trainyard-notebooks")  # tokens of laptops and of the hub
CODE = 'import os\nprint("trained by", os.environ.get("HOSTNAME", ""))\n'
SMALL = ("--framework", "job", "--cpu", "50m", "--memory", "128Mi", "--shared-memory", "16Mi", "--deadline", "10m")


@check(*TITLES, rank=WAITS, locks={PEOPLE}, shares={UPGRADES}, images=("dex", "kfp-api", "pipeline", "argoexec"),
       long=True, login=True, inputs=("charts/login", "charts/kfpApi", "scripts/kfp_api", "scripts/trainyard/login",
               "scripts/trainyard/commands/login.py", "scripts/trainyard_dev/cluster/login.py",
               "scripts/trainyard_dev/e2e/sites/person.py", "scripts/trainyard_dev/e2e/sites/login.py"))  # fmt: skip
def member(context: Context) -> None:
    """All checks after one upgrade, another one for members who leave, and a last one that switches log-in off."""
    if reason := missing(context):
        context.recorder.skip_all(TITLES, reason)
        return
    check = context.recorder.check
    with tempfile.TemporaryDirectory(prefix="login-") as folder:
        with Site.on(context, Path(folder)) as there:
            began = costs.look(context)
            ada, bob, cid, eve = (there.person(one) for one in (ADA, BOB, CID, EVE))
            with check("login.browser", TITLES["login.browser"]) as figures:
                figures["seconds"] = ada.log_in(wrong=bob.password)
                figures["page"] = photo("the issuer's page, as a member fills it in", ada.home / "page.png")
                figures["done"] = photo("where the member ends up", ada.home / "done.png")
                for one in (bob, eve):
                    one.log_in()
            first = ada.kept
            with check("login.code", TITLES["login.code"]) as figures:
                figures["seconds"] = cid.log_in_by_code()
                figures["page"] = photo("the page that takes the code", cid.home / "page.png")
            with check("login.team", TITLES["login.team"]) as figures:
                figures |= _team(ada)
                _by_name(cid)
            with check("login.job", TITLES["login.job"]) as figures:
                figures["seconds"] = _job(context, ada, Path(folder))
            with check("kfp.outside", TITLES["kfp.outside"]) as figures:
                kfp_client.outside(context, ada, figures)
            with check("login.renewed", TITLES["login.renewed"]) as figures:
                figures |= _renewed(there, ada, first)
                figures["cost"] = _cost(context, began)
            with check("login.refused", TITLES["login.refused"]) as figures:
                login_attacks.refused(there, ada, eve, figures)
            with check("login.left", TITLES["login.left"]) as figures:
                figures |= _left(there, ada, bob, cid, eve)
        with check("login.off", TITLES["login.off"]):
            held = context.kubectl("get", "all,secret,configmap,networkpolicy,role,rolebinding", "-n", SYSTEM,
                                   "-o", "name", "-l", "app.kubernetes.io/name=login").stdout.split()  # fmt: skip
            require(not held, f"still exists: {', '.join(held)}")
            wait = patience(TOLD_S, 3)
            while (said := bob.kubectl("get", "pods"))[0] == 0 or "cannot list" in said[1]:
                wait(f"a token is still accepted: {said[1]}")


def _team(ada: Person) -> dict[str, Any]:
    """Actions that a logged-in member may do. Raises CheckError."""
    wait = patience(TOLD_S, 3)
    while (asked := ada.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo}"))[0] != 0:
        wait(f"the API server accepts no token: {asked[1][-400:]}")
    who = json.loads(asked[1])
    require(who["username"] == f"{PREFIX}{ADA}", f"the API server identifies her as {who}")
    for verb, expected in (
        (("create", "pytorchjobs.kubeflow.org", "-n", NAMESPACE), "yes"),
        (("get", "secrets", "-n", NAMESPACE), "no"),
        (("list", "pods", "-n", OTHER), "no"),
        (("update", "configmaps/trainyard-login", "-n", SYSTEM), "no"),
        (("get", "signingkeies.dex.coreos.com", "-n", SYSTEM), "no"),
        (("create", "passwords.dex.coreos.com", "-n", SYSTEM), "no"),
        (("get", "secrets", "-n", SYSTEM), "no"),
    ):
        said = ada.may(*verb)
        require(said == expected, f"may she {' '.join(verb)}? {said}")
    code, said = ada.trainyard("gpus", "-o", "json")
    require(code == 0 and json.loads(said)["team"] == NAMESPACE, f"trainyard gpus: {said[-400:]}")
    _denied(ada, OTHER)
    return {"groups": ", ".join(sorted(who["groups"]))}


def _by_name(cid: Person) -> None:
    """A member listed by name; the group of the token has no effect. Raises CheckError."""
    code, said = cid.kubectl("get", "pods", "-n", NAMESPACE)
    require(code == 0, f"a member listed by name may not list the team's pods: {said[-300:]}")


def _denied(person: Person, namespace: str) -> None:
    """The person is logged in, without any permission there. Raises CheckError."""
    code, said = person.kubectl("get", "pods", "-n", namespace)
    denied = f'User "{PREFIX}{person.email}" cannot list resource "pods"'
    require(code != 0 and denied in said, f"pods of {namespace}: {said[-300:]}")


def _job(context: Context, ada: Person, folder: Path) -> float:
    """One `trainyard train` to its end, with her own permissions; refused in the other team. Raises CheckError."""
    code = folder / "code"
    code.mkdir()
    (code / "train.py").write_text(CODE)
    words = ("train", "--dir", code, "--name", "login", *SMALL, "--image", context.image("pipeline"), "--no-fetch")
    began = time.monotonic()
    ended, said = ada.trainyard(*words, "--", "python3", "train.py", timeout=TRAIN_S)
    require(ended == 0 and "trained by" in said, f"trainyard train exited with {ended}: {said[-800:]}")
    seconds = round(time.monotonic() - began, 1)
    ended, said = ada.trainyard(*words, "-n", OTHER, "--", "python3", "train.py", timeout=TRAIN_S)
    require(ended != 0 and "trained by" not in said, f"she trains in {OTHER}: {said[-400:]}")
    require(f"{PREFIX}{ADA}" in said or "may not" in said, f"the output lacks the reason: {said[-400:]}")
    return seconds


def _renewed(there: Site, ada: Person, first: dict[str, str]) -> dict[str, Any]:
    """The token is renewed without a prompt, and the first one expires. Raises CheckError."""
    wait = patience(TOKEN_S + TOLD_S)
    while ada.token == first["id_token"]:
        code, said = ada.kubectl("get", "pods")
        require(code == 0, f"while the token expired: {said[-300:]}")
        wait("the token was not renewed")
    require(ada.kept["refresh_token"] != first["refresh_token"], "the refresh token is accepted more than once")
    while there.asked(first["id_token"]) is not None:
        wait("the first token is accepted after its expiry")
    who = there.asked(ada.token)
    require(who and who["username"] == f"{PREFIX}{ADA}", f"the new token belongs to {who}")
    return {"a token counts s": TOKEN_S}


def _left(there: Site, ada: Person, bob: Person, cid: Person, eve: Person) -> dict[str, Any]:
    """Ada leaves altogether, cid the team, eve the issuer; bob stays. Raises CheckError."""
    for one in (ada, eve):
        require(one.kubectl("auth", "whoami")[0] == 0, f"{one.email} was refused before")
    forger, hers, eves = there.forger(), ada.token, eve.token
    # Her tokens are valid much longer than an upgrade takes: only her blocking ends them.
    lasting = [forger.token(aud=audience, exp=int(time.time()) + 3600) for audience in AUDIENCES]
    for token in lasting:
        require(there.asked(token) is not None, "a token of hers was refused before")
    there.tell(people=[BOB, CID], members=[], blocked=[ADA])
    began = time.monotonic()
    _denied(cid, NAMESPACE)  # at once: permissions don't depend on tokens
    while any(there.asked(one) is not None for one in (hers, *lasting)):
        require(time.monotonic() < began + TOLD_S, "a blocked member still has access")
        time.sleep(1)
    figures: dict[str, Any] = {"blocked after s": round(time.monotonic() - began, 1)}
    code, said = ada.kubectl("get", "pods")
    require(code != 0, f"she still has access: {said[-300:]}")
    for one in (ada, eve):  # blocked or not, no token is renewed
        one.forget_token()
        code, said = one.trainyard("gpus")
        require(code != 0 and "the issuer did not renew the log-in" in said, f"{one.email} renews: {said[-300:]}")
        one.refused_at_the_page()
    while there.asked(eves) is not None:
        require(time.monotonic() < began + TOKEN_S + TOLD_S, "an expired token of a former member is accepted")
        time.sleep(2)
    figures["the last token of who left ended after s"] = round(time.monotonic() - began, 1)
    require(bob.may("list", "pods", "-n", OTHER) == "yes", "another member is also refused")
    return figures


def _cost(context: Context, began: dict[str, costs.Used]) -> str:
    """The option's pods' cost over the checks so far, in words."""
    pods = context.kubectl.get("pods", "-n", SYSTEM, "-l", "app.kubernetes.io/name=login")
    now = costs.look(context)
    rows = [
        costs.row("login", pod, began.get(name), now[name]) for pod in pods if (name := pod["metadata"]["name"]) in now
    ]
    require(rows, "kubelet has no metrics of the issuer's pod")
    cores, mib = (sum(one[key] for one in rows) for key in ("cores", "memory_mib"))
    return f"{cores:.4f} cores, {mib:.0f} MiB, {len(rows)} pod, ready after {rows[0]['ready_s']:.0f} s"
