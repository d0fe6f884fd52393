"""Log-in as a person sees it, in Chromium: Dex's pages, and a certificate that nobody vouches for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from login_world import ADA, BOB, World, needs_browser, needs_dex

from trainyard.errors import TrainyardError
from trainyard_dev import browser

pytestmark = needs_dex


@needs_browser
def test_a_person_logs_in_and_sees_it(world: World, tmp_path: Path) -> None:
    trusted = browser.key_digest((world.issuer.folder / "tls.crt").read_bytes())
    argv = [sys.executable, "-m", "trainyard", "login", *world.login_arguments(), "-n", "vision", "-o",
            str(tmp_path / "kubeconfig")]  # fmt: skip
    env = world.environment(TRAINYARD_LOGIN=str(tmp_path / "login"), BROWSER="true")
    with (
        browser.window(trusted=trusted) as page,
        subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr
        process.stderr.readline()
        page.open(process.stderr.readline().strip())
        page.wait_text("Log in to Your Account")
        page.fill("#login", ADA)
        page.fill("#password", world.issuer.passwords[BOB])
        page.click("#submit-login")
        page.wait_text("Invalid Email Address and password.")
        page.fill("#password", world.issuer.passwords[ADA])
        page.picture(pictures(tmp_path) / "login.png")
        page.click("#submit-login")
        page.wait_text("Logged in")
        assert page.url.startswith("http://127.0.0.1:") and "Close this window" in page.text
        out, err = process.communicate(timeout=60)
        assert not page.errors
    assert process.returncode == 0 and f"logged in as {ADA}" in out, err
    assert world.kubectl(tmp_path, "auth", "can-i", "create", "pods").stdout == "yes\n"


@needs_browser
def test_a_certificate_that_nobody_vouches_for_is_not_taken(world: World) -> None:
    with browser.window() as page, pytest.raises(TrainyardError, match="ERR_CERT_AUTHORITY_INVALID"):
        page.open(f"{world.issuer.url}/device")


def pictures(folder: Path) -> Path:
    """Where pictures go: $TRAINYARD_PICTURES, for people, else beside the test's files."""
    return Path(os.environ.get("TRAINYARD_PICTURES") or folder)
