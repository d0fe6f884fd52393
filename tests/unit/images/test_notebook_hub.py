"""Decisions of the hub of notebooks that need no JupyterHub: names, settings, choices, pods, tokens."""

import base64
import json
import runpy
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from notebook_hub import choices, names, pods, tokens
from notebook_hub.settings import Settings, SettingsError, parsed, read
from trainyard.paths import ROOT
from trainyard.policy import cel, offline

DATA: dict[str, Any] = {
    "url": "https://notebooks.example.org",
    "api_url": "http://hub:8081",
    "oidc": {"issuer": "https://i", "client_id": "c", "callback": "https://n/hub/oauth_callback"},
    "storage": {"home_size": "5Gi", "home_class": "ws"},
    "teams": [
        {
            "name": "vision", "groups": ["vision-members"], "queue": "vision", "priority": "training-low",
            "cpu_labels": {"pool": "cpu"}, "gpu_labels": {"pool": "gpu"},
            "gpu_tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
        {"name": "speech", "users": ["bob@example.org"]},
    ],
    "profiles": [
        {"name": "small", "title": "Small", "cpu": 0.5, "cpu_limit": 2, "memory": "1Gi"},
        {"name": "gpu", "title": "One GPU", "cpu": 2, "memory": "8Gi", "gpus": 1, "deadline": 14400},
    ],
}  # fmt: skip
ENDLESS = {"name": "g", "title": "G", "cpu": 1, "memory": "1Gi", "gpus": 1}
PERSON = "ada@example.org"


@pytest.fixture
def settings() -> Settings:
    return parsed(DATA)


# names


@pytest.mark.parametrize(
    ("person", "slug"),
    [
        ("ada", "ada"),
        (PERSON, "ada-40example-2eorg"),
        ("Ada", "-41da"),
        ("ada-40", "ada-2d40"),
        ("7_x+y:z|#=~", "7-5fx-2by-3az-7c-23-3d-7e"),
    ],
)
def test_a_name_is_written_as_the_rule_of_names_writes_it(person: str, slug: str) -> None:
    assert names.slug(person) == slug
    rule = next(one for one in offline.policies() if one.name == "notebook-names")
    scope = {"request": {"userInfo": {"username": f"oidc:{person}"}}}
    scope["variables"] = offline.Variables(rule.variables, scope, {"params": {"notebookUserPrefix": "oidc:"}})
    assert cel.compile("variables.own")(scope) == names.notebook(person) == f"trainyard-notebook-{slug}"


def test_no_two_persons_have_one_name() -> None:
    persons = ["ada", "Ada", "a-da", "a.da", "ada-", "ada-2d", "a@da", "a-40da", "a_da"]
    assert len({names.slug(one) for one in persons}) == len(persons)


@pytest.mark.parametrize(
    ("person", "said"),
    [
        ("", "no notebook can be named after ''"),
        ("ada lovelace", "a name has letters a to z, digits and"),
        ("ädä", "a name has letters a to z, digits and"),
        ("ada@example.org/lab", "a name has letters a to z, digits and"),
        ("a" * 45, "written for a pod it has 45 signs of 44; give the hub a shorter claim"),
        ("@" * 15, "written for a pod it has 45 signs of 44"),
    ],
)
def test_a_person_without_a_fitting_name_is_told_why(person: str, said: str) -> None:
    with pytest.raises(names.UnfitNameError, match=said):
        names.notebook(person)


# settings


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"profiles": []}, "settings has no profile, so that nobody could start a notebook"),
        ({"odd": 1}, "settings has the key odd, which nothing reads: use api_url, blocked, cull_every"),
        ({"oidc": {"issuer": "x"}}, "settings.oidc lacks .*client_id"),
        ({"teams": [{"name": "a", "gid": 1}]}, r"settings.teams\[0\] has the key gid, which nothing reads"),
        ({"teams": ["vision"]}, r"settings.teams\[0\] is not an object"),
        ({"profiles": [{**ENDLESS, "memory": "1G"}]}, "profile g has memory '1G': write it as 4Gi or 512Mi"),
        ({"profiles": [ENDLESS]}, "profile g has GPUs and no deadline, and would hold them forever: set deadline"),
    ],
)
def test_settings_that_do_not_fit(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parsed({**DATA, **change})


def test_a_size_without_an_image_has_the_hub_s(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    own = {"name": "own", "title": "Own", "cpu": 1, "memory": "1Gi", "image": "r/own:1"}
    file.write_text(json.dumps({**DATA, "profiles": [*DATA["profiles"], own]}))
    assert [one.image for one in read(file, "r/notebook:1").profiles] == ["r/notebook:1", "r/notebook:1", "r/own:1"]
    with pytest.raises(SettingsError, match="the hub's settings can't be read"):
        read(tmp_path / "none.json", "r/notebook:1")


def test_an_authority_counts_where_its_file_is(tmp_path: Path) -> None:
    """The chart names the Secret's, which need not have one."""
    file, ca = tmp_path / "settings.json", tmp_path / "ca.crt"
    file.write_text(json.dumps(DATA | {"oidc": DATA["oidc"] | {"ca_file": str(ca)}}))
    assert read(file, "own:1").oidc.ca_file == ""
    ca.write_text("-----BEGIN CERTIFICATE-----")
    assert read(file, "own:1").oidc.ca_file == str(ca)


def test_who_is_blocked_is_of_no_team_in_whatever_letters() -> None:
    blocked = parsed({**DATA, "blocked": ["Ada@example.org"]})
    assert parsed(DATA).teams_of(PERSON, ["vision-members"])
    assert not blocked.teams_of(PERSON, ["vision-members"]) and not blocked.teams_of(PERSON.upper(), ["vision-members"])
    assert blocked.teams_of("bob@example.org", ["vision-members"]) == parsed(DATA).teams_of(
        "bob@example.org", ["vision-members"]
    )


def test_a_person_is_of_the_teams_that_name_them_or_a_group_of_theirs_with_prefixes(settings: Settings) -> None:
    def teams(found: Settings, person: str, *groups: str) -> list[str]:
        return [one.name for one in found.teams_of(person, groups)]

    assert teams(settings, PERSON, "vision-members", "other") == ["vision"]
    assert teams(settings, "bob@example.org") == ["speech"]
    assert teams(settings, "bob@example.org", "vision-members") == ["vision", "speech"]
    assert teams(settings, "eve@example.org", "vision", "members") == []
    prefixed = parsed({**DATA, "oidc": {**DATA["oidc"], "username_prefix": "o:", "groups_prefix": "g:"}})
    assert teams(prefixed, "bob@example.org", "vision-members") == []
    named = [{"name": "a", "users": ["o:bob"], "groups": ["g:x"]}]
    prefixed = parsed(
        {**DATA, "teams": named, "oidc": {**DATA["oidc"], "username_prefix": "o:", "groups_prefix": "g:"}}
    )
    assert teams(prefixed, "bob") == ["a"] and teams(prefixed, "eve", "x") == ["a"] and teams(prefixed, "eve") == []


# choices


def test_the_first_of_each_where_nothing_is_said_and_what_is_said(settings: Settings) -> None:
    mine = settings.teams_of("bob@example.org", ["vision-members"])
    found = choices.chosen(settings, "bob@example.org", mine, {})
    assert (found.team.name, found.profile.name) == ("vision", "small")
    found = choices.chosen(settings, "bob@example.org", mine, {"team": "speech", "profile": "gpu", "image": "evil"})
    assert (found.team.name, found.profile.name) == ("speech", "gpu")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"team": "speech"},
            "ada@example.org is not a member of team speech, or it has no notebooks: choose one of vision",
        ),
        ({"team": "kube-system"}, "is not a member of team kube-system"),
        ({"profile": "huge"}, "there is no size huge of notebooks: choose one of small, gpu"),
    ],
)
def test_what_one_does_not_have_is_refused(settings: Settings, options: dict[str, str], said: str) -> None:
    with pytest.raises(choices.RefusedError, match=said):
        choices.chosen(settings, PERSON, settings.teams_of(PERSON, ["vision-members"]), options)


def test_a_person_without_a_team_is_told_whom_to_ask(settings: Settings) -> None:
    with pytest.raises(choices.RefusedError, match="eve is a member of no team that has notebooks: ask"):
        choices.chosen(settings, "eve", (), {})


def test_the_page_offers_one_s_teams_and_nobody_else_s(settings: Settings) -> None:
    page = choices.offered(settings, settings.teams_of(PERSON, ["vision-members"]))
    assert 'value="vision"' in page and "speech" not in page
    assert "One GPU (2 CPU, 8Gi, 1 GPU, ends after 4 h, and earlier when others need it)" in page
    single = parsed({**DATA, "profiles": DATA["profiles"][:1]})
    assert choices.offered(single, single.teams[:1]) == ""
    assert choices.sent({"team": ["vision"], "profile": [], "image": ["evil"]}) == {"team": "vision"}
    hostile = parsed({**DATA, "profiles": [{"name": "a", "title": "<b>", "cpu": 1, "memory": "1Gi"}]})
    assert "<b>" not in choices.offered(hostile, hostile.teams)


# pods


def traits(settings: Settings, profile: str) -> dict[str, Any]:
    return pods.traits(settings, PERSON, choices.chosen(settings, PERSON, settings.teams[:1], {"profile": profile}))


def test_a_small_notebook_goes_by_the_cluster_s_scheduler_without_a_deadline(settings: Settings) -> None:
    found = traits(settings, "small")
    assert found["namespace"] == "vision" and found["node_selector"] == {"pool": "cpu"} and found["tolerations"] == []
    assert found["scheduler_name"] is None and found["priority_class_name"] == "" and found["extra_annotations"] == {}
    assert "activeDeadlineSeconds" not in found["extra_pod_config"]
    assert (found["cpu_guarantee"], found["cpu_limit"], found["mem_limit"]) == (0.5, 2, 1 << 30)
    assert found["environment"]["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_one_with_gpus_waits_in_the_team_s_queue_may_be_displaced_and_ends(settings: Settings) -> None:
    found = traits(settings, "gpu")
    assert found["scheduler_name"] == "volcano" and found["priority_class_name"] == "training-low"
    queue = {"scheduling.volcano.sh/queue-name": "vision", "volcano.sh/preemptable": "true"}
    assert found["extra_annotations"] == queue
    assert found["extra_pod_config"]["activeDeadlineSeconds"] == 14400
    assert found["extra_pod_config"]["restartPolicy"] == "Never"
    assert found["extra_resource_limits"] == found["extra_resource_guarantees"] == {"nvidia.com/gpu": "1"}
    assert found["node_selector"] == {"pool": "gpu"} and found["tolerations"][0]["key"] == "nvidia.com/gpu"
    assert "NVIDIA_VISIBLE_DEVICES" not in found["environment"]


@pytest.mark.parametrize(("idle", "tells"), [(3600, "300"), (600, "150"), (60, "15"), (20, "10"), (0, "300")])
def test_a_notebook_at_work_says_so_before_it_counts_as_idle(idle: int, tells: str) -> None:
    found = parsed({**DATA, "idle": idle})
    env = pods.environment(found.teams[0], found.profiles[0], found.idle)
    assert env["JUPYTERHUB_ACTIVITY_INTERVAL"] == tells


def test_home_is_the_person_s_workspace_the_team_s_and_shared_is_read(settings: Settings) -> None:
    found = traits(settings, "small")
    claims = {one["name"]: one["persistentVolumeClaim"] for one in found["volumes"] if "persistentVolumeClaim" in one}
    assert claims == {
        "home": {"claimName": "trainyard-notebook-ada-40example-2eorg"},
        "workspace": {"claimName": "workspace"},
        "shared": {"claimName": "shared", "readOnly": True},
    }
    places = {one["name"]: one["mountPath"] for one in found["volume_mounts"]}
    assert places["home"] == pods.HOME and places["workspace"] == "/workspace" and places["shared"] == "/shared"
    bare = parsed({**DATA, "storage": {"workspace": "", "shared": ""}})
    assert {"name": "home", "emptyDir": {}} in traits(bare, "small")["volumes"]
    assert {one["name"] for one in traits(bare, "small")["volumes"]} == {"tmp", "shm", "cluster", "home"}


def test_every_notebook_is_marked_and_has_no_token_of_an_account(settings: Settings) -> None:
    for profile in ("small", "gpu"):
        assert traits(settings, profile)["extra_labels"]["trainyard.io/notebook"] == "true"
    fixed = pods.fixed()
    assert fixed["automount_service_account_token"] is False and fixed["service_account"] == "training"
    assert fixed["pod_security_context"]["runAsNonRoot"] is True
    assert fixed["container_security_context"]["capabilities"] == {"drop": ["ALL"]}


# tokens


def token(**claims: Any) -> str:
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{middle}.c2ln"


def test_when_a_token_ends() -> None:
    assert tokens.expires(token(exp=1700000000)) == 1700000000
    assert [tokens.expires(one) for one in ("", "x", "a.b.c", token(), token(exp="soon"), token(exp=True))] == [0] * 6


def test_only_this_hub_opens_what_it_closed() -> None:
    seal = tokens.Seal("one")
    closed = seal.close("refresh")
    assert "refresh" not in closed and seal.open(closed) == "refresh"
    assert tokens.Seal("two").open(closed) == "" and seal.open("nonsense") == "" and seal.close("") == ""
    with pytest.raises(ValueError, match="the hub has no key to close tokens with: set JUPYTERHUB_CRYPT_KEY"):
        tokens.Seal("")


# the notebook's image


def test_a_notebook_reaches_the_cluster_as_its_person_by_a_question_to_the_hub() -> None:
    start = runpy.run_path(str(ROOT / "images" / "notebook" / "start-notebook"))
    env = {"TRAINYARD_CLUSTER_CA": "/etc/ca.crt", "TRAINYARD_TEAM": "vision", "KUBERNETES_SERVICE_HOST": "fd00::1"}
    made = start["kubeconfig"](env)
    assert made["clusters"][0]["cluster"] == {"server": "https://[fd00::1]:443", "certificate-authority": "/etc/ca.crt"}
    asks = made["users"][0]["user"]["exec"]
    assert [asks["command"], *asks["args"]] == ["trainyard", "login", "--credential", "--hub"]
    assert "token" not in made["users"][0]["user"]
    assert made["contexts"][0]["context"]["namespace"] == "vision"


def test_kfp_s_client_finds_a_proxy_in_a_notebook_where_the_platform_has_a_service(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "KF_PIPELINES_ENDPOINT" not in traits(settings, "small")["environment"]
    (tmp_path / "service").write_text("http://trainyard-kfp-api.trainyard-system.svc:8888")
    (tmp_path / "url").write_text("")
    changed = replace(settings, kfp_api=str(tmp_path))
    env = traits(changed, "small")["environment"]
    assert env["KFP_API_URL"] == "http://trainyard-kfp-api.trainyard-system.svc:8888"
    assert env["KF_PIPELINES_ENDPOINT"] == "http://localhost:8890" and "KF_PIPELINES_UI_ENDPOINT" not in env
    (tmp_path / "url").write_text("https://runs.example.org")
    env = traits(changed, "small")["environment"] | {"HOME": str(tmp_path)}
    assert env["KF_PIPELINES_UI_ENDPOINT"] == "https://runs.example.org"
    program = tmp_path / "trainyard"
    program.write_text('#!/bin/sh\necho "$@" >"$HOME/asked"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    start = runpy.run_path(str(ROOT / "images" / "notebook" / "start-notebook"))
    start["start_proxy"]({"HOME": str(tmp_path)})
    assert not (tmp_path / ".config").exists()
    start["start_proxy"](env)
    assert json.loads((tmp_path / ".config" / "kfp" / "context.json").read_text()) == {"namespace": "vision"}
    wait = time.monotonic() + 10
    while not (tmp_path / "asked").exists() or not (tmp_path / "asked").read_text():
        assert time.monotonic() < wait
        time.sleep(0.02)
    assert (tmp_path / "asked").read_text() == "kfp proxy --port 8890\n"


def test_the_pins_of_what_comes_as_source_are_those_of_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split()[0] for line in (ROOT / "images/notebook/sources.txt").read_text().splitlines() if "==" in line]
    assert pins and all(pin in lock for pin in pins)
