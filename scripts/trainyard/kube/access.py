"""Choice of cluster, namespace and user, with kubectl's options and rules."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard.errors import TrainyardError, UsageError

if TYPE_CHECKING:
    from trainyard.kube.client import Kube

HOME_CONFIG = Path("~/.kube/config")
POD_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Access:
    """Values of the options; "" means kubectl's default."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    user: str = ""  # --as
    groups: tuple[str, ...] = ()  # --as-group

    def connect(self) -> Kube:
        """Returns a client of the chosen cluster, sending nothing. Raises TrainyardError for an invalid kubeconfig."""
        from kubernetes.client import Configuration
        from kubernetes.config import ConfigException, load_incluster_config

        from trainyard.kube.client import Kube

        if self.groups and not self.user:
            raise UsageError("--as-group needs --as", hint="pass both, as for kubectl: --as NAME --as-group GROUP")
        configuration = Configuration()
        files = self.files()
        if not files and "KUBERNETES_SERVICE_HOST" in os.environ and not self.context:
            try:
                load_incluster_config(configuration)
            except ConfigException as error:
                raise TrainyardError(f"this pod has no token for the API: {error}", hint="give --kubeconfig") from None
            own = POD_ACCOUNT / "namespace"
            return Kube(configuration, self.namespace or (own.read_text().strip() if own.exists() else "default"))
        found = self._load(configuration, files)
        user, groups = (self.user, self.groups) if self.user else (found.user, found.groups)
        return Kube(configuration, self.namespace or found.namespace or "default", user, groups)

    def files(self) -> list[Path]:
        """Existing kubeconfig files, searched as kubectl does. Raises TrainyardError if a named file is missing."""
        if self.kubeconfig:
            named = Path(self.kubeconfig).expanduser()
            if not named.is_file():
                raise TrainyardError("no such kubeconfig", where=str(named), hint="correct --kubeconfig")
            return [named]
        places = [Path(part).expanduser() for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
        return [path for path in places or [HOME_CONFIG.expanduser()] if path.is_file()]

    def _load(self, configuration: Any, files: list[Path]) -> Access:
        """Fills the client's configuration; returns the kubeconfig's namespace and the user to impersonate."""
        import yaml
        from kubernetes.config import ConfigException
        from kubernetes.config.kube_config import _get_kube_config_loader

        if not files:
            asked = os.environ.get("KUBECONFIG", "") or str(HOME_CONFIG)
            raise TrainyardError(
                f"no kubeconfig found at {asked}", hint="pass --kubeconfig FILE, or ask your platform engineer for one"
            )
        where = ", ".join(map(str, files))
        warnings = _LogCapture()
        try:
            loader = _get_kube_config_loader(
                filename=os.pathsep.join(map(str, files)), active_context=self.context or None
            )
            with warnings:
                loader.load_and_set(configuration)
            namespace = str(loader._current_context["context"].safe_get("namespace") or "")
            user = loader._user.value if loader._user else {}
            found = Access(
                namespace=namespace, user=str(user.get("as") or ""), groups=tuple(user.get("as-groups") or ())
            )
            configuration.proxy = proxy_of(configuration.host, str(loader._cluster.safe_get("proxy-url") or ""))
        except (ConfigException, yaml.YAMLError, KeyError, TypeError, ValueError, OSError) as error:
            text = " ".join(str(error).split())
            absent = self.context and f"name {self.context} in" in text and text.endswith("/contexts list")
            raise TrainyardError(
                f"no context {self.context!r}" if absent else f"invalid kubeconfig: {text}",
                where=where,
                hint="choose another with --context or --kubeconfig; `kubectl config get-contexts` lists them",
            ) from None
        if warnings.found:
            said = warnings.found[-1]
            if "NoneType" in said:
                # On a terminal the loader doesn't capture the program's stderr, and then fails on it.
                said = "its credential plugin failed with the error above"
            raise TrainyardError(f"the log-in of the kubeconfig failed: {said}", where=where, hint="log in again")
        return found


def proxy_of(host: str, chosen: str = "") -> str | None:
    """The kubeconfig's proxy, else the environment's, as for kubectl."""
    from requests.utils import get_environ_proxies, select_proxy

    return chosen or select_proxy(host, get_environ_proxies(host))


class _LogCapture(logging.Handler):
    """Collects what the kubeconfig loader only logs, such as a failed log-in program."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one log message."""
        self.found.append(" ".join(record.getMessage().split()))

    def __enter__(self) -> None:
        logging.getLogger().addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --kubeconfig, --context, -n/--namespace, --as and --as-group; the command gets them as `access: Access`."""

    @functools.wraps(function)
    def command(
        *args: Any, kubeconfig: str, context: str, namespace: str, as_user: str, as_group: tuple[str, ...], **rest: Any
    ) -> Any:
        return function(*args, access=Access(kubeconfig, context, namespace, as_user, as_group), **rest)

    for option in (
        click.option("--as-group", "as_group", multiple=True, metavar="GROUP", help="Group to impersonate, with --as."),
        click.option("--as", "as_user", default="", metavar="USER", help="User to impersonate, as for kubectl."),
        click.option("-n", "--namespace", default="", metavar="TEAM", help="Team. Default: the context's namespace."),
        click.option("--context", default="", metavar="NAME", help="Kubeconfig context to use."),
        click.option("--kubeconfig", default="", metavar="FILE", help="Default: KUBECONFIG or ~/.kube/config."),
    ):
        command = option(command)
    return command
