"""A member in the checks of log-in: a home, a browser, `trainyard` and kubectl, and nothing else."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainyard.login import kubeconfig as configs
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev import browser, tools
from trainyard_dev.e2e.context import NAMESPACE
from trainyard_dev.e2e.recorder import CheckError, require

LOGIN_S, PROGRAM_S = 180, 90
WRONG = "Invalid Email Address and password"


def fill_in(page: browser.Browser, email: str, password: str) -> None:
    """Fills in the issuer's form, and sends it."""
    page.fill("#login", email)
    page.fill("#password", password)
    page.click("#submit-login")


@dataclass
class Person:
    """A person who has never logged in.

    Args:
        home: holds the kubeconfig and the tokens.
        issuer: the log-in page, and `ca` its authority.
        trusted: digest of the issuer's key, for the browser.
    """

    home: Path
    email: str
    password: str
    issuer: str
    ca: Path
    cluster: configs.Cluster
    trusted: str

    @property
    def config(self) -> Path:
        """The path of the kubeconfig that `trainyard login` has written."""
        return self.home / "kubeconfig"

    @property
    def env(self) -> dict[str, str]:
        """Environment of this person's shell."""
        return {"KUBECONFIG": str(self.config), "TRAINYARD_LOGIN": str(self.home / "login"), "BROWSER": "true"}

    @property
    def kept(self) -> dict[str, str]:
        """The tokens in the file of `trainyard login`."""
        (file,) = (self.home / "login").glob("*.json")
        found: dict[str, str] = json.loads(file.read_text())
        return found

    @property
    def token(self) -> str:
        """The stored ID token."""
        return self.kept["id_token"]

    def forget_token(self) -> None:
        """Makes the stored ID token expire, so that the next command requests another."""
        (file,) = (self.home / "login").glob("*.json")
        file.write_text(json.dumps(self.kept | {"id_token": "e30.eyJleHAiOjF9.x"}))

    def log_in(self, wrong: str = "") -> float:
        """Logs in with `trainyard login` and a real browser; returns the seconds. `wrong` comes first and must fail."""

        def way(page: browser.Browser, address: str, _: str) -> None:
            page.open(address)
            if wrong:
                fill_in(page, self.email, wrong)
                page.wait_text(WRONG)
            page.fill("#login", self.email)
            page.fill("#password", self.password)
            page.picture(self.home / "page.png")
            page.click("#submit-login")
            page.wait_text("Logged in")
            page.picture(self.home / "done.png")

        return self._log_in(way)

    def log_in_by_code(self) -> float:
        """Logs in with `trainyard login --device`: the browser could be anywhere, and gets the address and the code."""

        def way(page: browser.Browser, address: str, code: str) -> None:
            page.open(address)
            page.fill("#user_code", code)
            page.picture(self.home / "page.png")
            page.click("#submit-login")
            page.wait_text("Log in to Your Account")
            fill_in(page, self.email, self.password)
            page.wait_text("Login Successful")
            page.picture(self.home / "done.png")

        return self._log_in(way, "--device")

    def refused_at_the_page(self) -> None:
        """Checks that the issuer refuses this password. Raises TrainyardError if it accepts it."""

        def way(page: browser.Browser, address: str, _: str) -> None:
            page.open(address)
            fill_in(page, self.email, self.password)
            page.wait_text(WRONG)
            raise _RefusedError

        try:
            self._log_in(way)
        except _RefusedError:
            return
        raise CheckError(f"{self.email} could still log in")

    def _log_in(self, way: Callable[[browser.Browser, str, str], None], *words: str) -> float:
        authority = self.home / "cluster.crt"
        authority.write_text(self.cluster.ca)
        argv = [ROOT / "bin" / "trainyard", "login", f"--issuer={self.issuer}", f"--issuer-ca={self.ca}",
                f"--server={self.cluster.server}", f"--certificate-authority={authority}", "-n", NAMESPACE,
                "-o", str(self.config), *words]  # fmt: skip
        began = time.monotonic()
        with (
            browser.window(trusted=self.trusted) as page,
            subprocess.Popen(
                list(map(str, argv)), env=os.environ | self.env, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            ) as process,
        ):  # fmt: skip
            try:
                assert process.stderr
                first, second = (process.stderr.readline().strip() for _ in range(2))
                device = "--device" in words
                address = first.removeprefix("open ") if device else second
                require(address.startswith("https://"), f"trainyard login printed {first!r}, {second!r}")
                way(page, address, second.rpartition(" ")[2] if device else "")
                out, said = process.communicate(timeout=LOGIN_S)
            finally:
                process.kill()
        require(process.returncode == 0 and f"logged in as {self.email}" in out, f"trainyard login: {said[-600:]}")
        return round(time.monotonic() - began, 1)

    def kubectl(self, *args: str) -> tuple[int, str]:
        """Run kubectl; returns (code, output)."""
        return self._run(tools.binary("kubectl"), *args)

    def may(self, *verb: str) -> str:
        """The answer of `kubectl auth can-i`: yes or no."""
        done = self._done(tools.binary("kubectl"), "auth", "can-i", *verb)  # warnings go to standard error
        return (done.stdout or done.stderr or "nothing").strip().splitlines()[-1]

    def trainyard(self, *args: str | Path, timeout: float = PROGRAM_S) -> tuple[int, str]:
        """Run trainyard; returns (code, output)."""
        return self._run(ROOT / "bin" / "trainyard", *args, timeout=timeout)

    def _run(self, *argv: str | Path, timeout: float = PROGRAM_S) -> tuple[int, str]:
        done = self._done(*argv, timeout=timeout)
        return done.returncode, (done.stdout or "") + (done.stderr or "")

    def _done(self, *argv: str | Path, timeout: float = PROGRAM_S) -> subprocess.CompletedProcess[str]:
        return run(list(argv), check=False, timeout=timeout, env=self.env)


class _RefusedError(Exception):
    """The page showed the expected refusal; the log-in failed."""
