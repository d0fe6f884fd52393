"""`trainyard login` at a real Dex: by a browser's way or a code; tokens are kept and renewed."""

import json
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml
from login_world import ADA, BOB, REUSED_S, SYSTEM, World, kept, needs_dex, stale

pytestmark = needs_dex


def test_a_member_logs_in_by_a_browser_and_works_in_her_team_only(world: World, home: Path) -> None:
    who = yaml.safe_load(world.kubectl(home, "auth", "whoami", "-o", "yaml").stdout)["status"]["userInfo"]
    assert who["username"] == f"oidc:{ADA}"
    assert sorted(who["groups"]) == ["oidc:vision-members", "system:authenticated"]
    assert "Logged in" in (world.folder / "page.html").read_text()
    assert world.kubectl(home, "auth", "can-i", "create", "pytorchjobs.kubeflow.org").stdout == "yes\n"
    assert world.kubectl(home, "auth", "can-i", "get", "secrets").stdout == "no\n"
    denied = world.kubectl(home, "get", "pods", "-n", "speech")
    assert denied.returncode == 1 and f'User "oidc:{ADA}" cannot list resource "pods"' in denied.stderr
    keys = world.kubectl(home, "get", "signingkeies.dex.coreos.com", "-n", SYSTEM)
    assert keys.returncode == 1 and "cannot list resource" in keys.stderr


def test_tokens_are_in_one_file_that_its_owner_alone_reads_and_the_kubeconfig_has_none(
    world: World, home: Path
) -> None:
    file, held = kept(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    config = (home / "kubeconfig").read_text()
    assert held["id_token"] not in config and held["refresh_token"] not in config
    assert stat.S_IMODE((home / "kubeconfig").stat().st_mode) == 0o600
    file.chmod(0o644)
    refused = world.kubectl(home, "get", "pods")
    assert refused.returncode == 1 and "others can read the tokens (mode 0644)" in refused.stderr


def test_an_ended_token_is_renewed_once_whoever_asks_at_the_same_time(world: World, home: Path) -> None:
    time.sleep(REUSED_S)
    before = stale(home)
    argv = ("login", "--credential", f"--issuer={world.issuer.url}", f"--issuer-ca={world.issuer.ca}")
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: world.trainyard(*argv, TRAINYARD_LOGIN=str(home / "login")), range(6)))
    assert [one.returncode for one in done] == [0] * 6, [one.stderr for one in done]
    # Each renewal makes another token: all six got that of the first.
    (given,) = {json.loads(one.stdout)["status"]["token"] for one in done}
    after = kept(home)[1]
    assert after["id_token"] == given and after["refresh_token"] != before["refresh_token"]
    assert world.asked(given)[1]["username"] == f"oidc:{ADA}"


def test_a_machine_without_a_browser_logs_in_by_a_code(world: World, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "trainyard", "login", *world.login_arguments(), "-o", str(tmp_path / "kubeconfig")]
    env = world.environment(TRAINYARD_LOGIN=str(tmp_path / "login"))
    env.pop("DISPLAY", None)
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr and process.stdout
        address = process.stderr.readline().removeprefix("open ").strip()
        code = process.stderr.readline().removeprefix("and confirm the code ").strip()
        page = world.person(BOB).confirm(address, code)
        assert "Login Successful" in page[1] or "successful" in page[1].lower(), page[1][-1500:]
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f"logged in as {BOB}" in out
    assert world.kubectl(tmp_path, "auth", "can-i", "list", "pods", "-n", "speech").stdout == "yes\n"
    assert world.kubectl(tmp_path, "auth", "can-i", "list", "pods", "-n", "vision").stdout == "no\n"


def test_nobody_is_asked_where_nobody_is(world: World, home: Path) -> None:
    assert (
        world.trainyard("logout", TRAINYARD_LOGIN=str(home / "login")).stdout == f"logged out of {world.issuer.url}\n"
    )
    assert not list((home / "login").glob("*.json"))
    refused = world.kubectl(home, "get", "pods")
    assert refused.returncode == 1
    url = world.issuer.url
    assert f"error: {url}: you are not logged in\nhint: run `trainyard login --issuer={url}" in refused.stderr


def test_trainyard_itself_goes_the_same_way_and_says_what_is_wrong(world: World, home: Path) -> None:
    access = {"KUBECONFIG": str(home / "kubeconfig"), "TRAINYARD_LOGIN": str(home / "login")}
    listed = world.trainyard("runs", "list", **access)
    assert "log-in of the kubeconfig failed" not in listed.stderr, listed.stderr
    world.trainyard("logout", TRAINYARD_LOGIN=str(home / "login"))
    refused = world.trainyard("runs", "list", **access)
    assert refused.returncode == 1 and "the log-in of the kubeconfig failed" in refused.stderr
    assert "you are not logged in" in refused.stderr


def test_a_restart_of_the_issuer_is_noticed_by_nobody(world: World, home: Path) -> None:
    stale(home)
    world.issuer.start()
    done = world.kubectl(home, "auth", "whoami", "-o", "name")
    assert done.returncode == 0, done.stderr
