"""Access of others to a member's notebook, and of a member who has left: none."""

import json
import time
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.e2e.checks import policies
from trainyard_dev.e2e.context import NAMESPACE, OTHER, Context
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.sites.login import ADA, BOB, CID, PREFIX, TOKEN_S
from trainyard_dev.e2e.sites.notebook_page import NotebookWindow
from trainyard_dev.e2e.sites.notebooks import NOTEBOOK, Site
from trainyard_dev.e2e.sites.person import WRONG, fill_in

STRANGERS = "another team's member and a colleague have no access to a notebook: page, token, command, Secret, home"
LEFT = "hub, notebook and API server refuse a person who left, and the notebook ends"
TOLD_S, ENDS_S = 120.0, 180.0
ANSWER_S = 30.0


def strangers(there: Site, desk: NotebookWindow, figures: dict[str, Any]) -> None:
    """Another team's member, with a browser and by the API, while the notebook runs. Raises CheckError."""
    context = there.context
    desk.at_work()
    secrets = [one["metadata"]["name"] for one in context.kubectl.get("secrets", "-n", NAMESPACE)]
    token = next((name for name in secrets if name.startswith(f"{NOTEBOOK}.")), "")
    require(token, f"the notebook's Secret is not among {secrets}")
    figures["rules"] = policies.installed(context, "serving", "notebooks")
    with there.desk(BOB) as other:
        other.log_in()
        page = other.page
        page.wait("document.querySelector('#team') !== null", "the choice of a team")
        teams = page.run("[...document.querySelectorAll('#team option')].map(one => one.value)")
        require(teams == [OTHER], f"he may choose {teams}")
        for path, due in (
            (f"/user/{ADA}/lab", (403,)),
            (f"/user/{ADA}/api/contents", (403,)),
            (f"/hub/api/users/{ADA}", (403, 404)),
            (f"/hub/spawn/{ADA}", (403, 404)),
        ):
            code = page.run(f"fetch({json.dumps(path)}).then(said => said.status)")
            require(code in due, f"{path} answers him {code}")
        page.open(f"{there.hub}/user/{ADA}/lab")
        page.wait_text("403")
        figures["page"] = other.seen("what another team's member gets at her address", there.picture("stranger"))
    thief = context.pod("thief", "cat /mnt/*", image=context.image("pipeline"), claims={NOTEBOOK: "/mnt"})
    named = context.pod(NOTEBOOK, "true", image=context.image("pipeline"), labels={"trainyard.io/notebook": "true"})
    tried = 0
    for person, team, command, secret, home in (
        (BOB, OTHER, "cannot get resource", "cannot get resource", "cannot create resource"),
        (
            CID,
            NAMESPACE,
            "is another person's, whose token it holds",
            "cannot get resource",
            "belongs to the notebook of its person",
        ),
    ):
        for words, said, manifest in (
            (("exec", NOTEBOOK, "--", "true"), command, None),
            (("get", "secret", token), secret, None),
            (("create", "--dry-run=server", "-f", "-"), home, thief),
        ):
            _denied(context, person, team, words, said, manifest)
            tried += 1
    _denied(context, CID, NAMESPACE, ("create", "--dry-run=server", "-f", "-"), "may create only one", named)
    code, said = _as(context, ADA, NAMESPACE, ("exec", NOTEBOOK, "--", "true"))
    require(code == 0, f"she may not herself: {said[-300:]}")
    figures["refused"] = tried + 5


def left(there: Site, desk: NotebookWindow, figures: dict[str, Any]) -> None:
    """Removed at the issuer and blocked while her notebook runs. Raises CheckError."""
    context = there.context
    desk.at_work()
    desk.says("!kubectl get pods -o name", f"pod/{NOTEBOOK}")
    there.tell(people=[BOB], blocked=[ADA])
    began = time.monotonic()
    while said := _let_in(desk):
        require(time.monotonic() < began + TOLD_S, f"her notebook still has access: {said[-300:]}")
        time.sleep(2)
    figures["refused in the notebook after s"] = round(time.monotonic() - began, 1)
    desk.page.open("about:blank")
    while context.kubectl.find("pod", NOTEBOOK, "-n", NAMESPACE):
        require(time.monotonic() < began + TOKEN_S + ENDS_S, "her notebook still runs")
        time.sleep(2)
    figures["notebook ended after s"] = round(time.monotonic() - began, 1)
    desk.page.open(there.hub)
    fill_in(desk.page, desk.email, desk.password)
    desk.page.wait_text(WRONG)
    figures["page"] = desk.seen("where who has left ends up", there.picture("left"))
    with there.desk(BOB) as other:
        other.log_in()
        other.page.wait("document.querySelector('#team') !== null", "the choice of a team")


def _let_in(desk: NotebookWindow) -> str:
    """The API server's answer to a cell; "" if it is a refusal, or if the window's notebook is closed to her."""
    try:
        said = desk.cell("!kubectl get pods -o name", ANSWER_S)
    except TrainyardError:
        if desk.answers():
            raise
        return ""
    return "" if "Unauthorized" in said or "the hub answered" in said else said


def _as(
    context: Context, person: str, team: str, words: tuple[str, ...], manifest: dict[str, Any] | None = None
) -> tuple[int, str]:
    """(code, output) of kubectl in the first team's namespace, impersonating a member of `team`."""
    who = [f"--as={PREFIX}{person}", f"--as-group={PREFIX}{team}-members", "--as-group=system:authenticated"]
    done = context.kubectl(*who, "-n", NAMESPACE, *words, check=False, input=json.dumps(manifest) if manifest else None)
    return done.returncode, (done.stdout or "") + (done.stderr or "")


def _denied(
    context: Context, person: str, team: str, words: tuple[str, ...], due: str, manifest: dict[str, Any] | None = None
) -> None:
    """Checks that the request is refused with these words. Raises CheckError."""
    code, said = _as(context, person, team, words, manifest)
    require(code != 0 and due in said, f"{person}: kubectl {' '.join(words)} ended with {code}: {said[-300:]}")
