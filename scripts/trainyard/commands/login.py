"""`trainyard login` and `trainyard logout`: a kubeconfig that logs its member in by OpenID Connect."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainyard.errors import TrainyardError, UsageError

if TYPE_CHECKING:
    from trainyard.login.kubeconfig import Cluster
    from trainyard.login.session import Settings
    from trainyard.login.tokens import Tokens

CLIENT = "trainyard"
POD_CA = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"  # a notebook has none: TRAINYARD_CLUSTER_CA says where
_issuer = click.option("--issuer", default="", envvar="TRAINYARD_ISSUER", metavar="URL",
                       help="OpenID Connect issuer. Default: the kubeconfig's issuer.")  # fmt: skip
_client = click.option("--client-id", default="", metavar="ID", help=f"OAuth client ID. Default: {CLIENT}.")
_ca = click.option("--issuer-ca", default="", metavar="FILE", help="CA certificate of the issuer (PEM).")


@click.command()
@_issuer
@_client
@_ca
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Scope to request instead of the defaults.")
@click.option("--device", is_flag=True, help="Log in with a code, in a browser on another device.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Local callback port, if the issuer allows only certain ports.",
)
@click.option("--hub", is_flag=True, help="In a notebook, use the hub's log-in.")
@click.option("--server", default="", metavar="URL", help="URL of the API server. Default: the context's server.")
@click.option("--certificate-authority", "authority", default="", metavar="FILE", help="CA of the API server (PEM).")
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig. Default: $KUBECONFIG or ~/.kube/config.")
@click.option("--context", default="", metavar="NAME", help="Kubeconfig context to take the cluster from.")
@click.option("-n", "--namespace", default="", metavar="TEAM", help="Your team. Default: the context's namespace.")
@click.option(
    "-o",
    "--output",
    default="",
    metavar="FILE",
    help="File to write the kubeconfig to; - prints it without a log-in. Default: --kubeconfig.",
)
@click.option("--credential", is_flag=True, hidden=True, help="Answer kubectl with a token.")
def login(
    issuer: str, client_id: str, issuer_ca: str, scopes: tuple[str, ...], device: bool, port: int, hub: bool,
    server: str, authority: str, kubeconfig: str, context: str, namespace: str, output: str, credential: bool,
) -> None:  # fmt: skip
    """Log in by OpenID Connect. Opens a browser, or shows a code if no browser is found. Writes a kubeconfig that
    contains no token: kubectl and trainyard request tokens from this program, which stores them in a file that only you
    can read, and renews them.

    \b
    trainyard login --issuer https://login.example.org --server https://cluster:6443 \\
      --certificate-authority ca.crt -n vision
    """
    from trainyard.login import asking, session, tokens
    from trainyard.login import kubeconfig as configs

    place = str(Path(issuer_ca).expanduser().resolve()) if issuer_ca else ""
    known = session.Settings("", CLIENT) if hub or issuer else _known(kubeconfig, context)
    settings = session.Settings(
        issuer or known.issuer, client_id or known.client, place or known.ca, scopes or known.scopes,
        device or known.device, port or known.port,
    )  # fmt: skip
    if credential:
        said = _hub_tokens() if hub else session.current(settings, interactive=_interactive())
        click.echo(tokens.credential(said, _asked_version()))
        return
    files = _files(kubeconfig)
    cluster, held = _cluster(server, authority, files, context, hub)
    arguments = ["--hub"] if hub else settings.arguments
    if output == "-":
        if not hub:
            asking.checked(settings.issuer)
        empty = configs.read(Path(os.devnull))
        click.echo(_text(configs.merged(empty, cluster, arguments, namespace or held, for_others=True)), nl=False)
        return
    found = _hub_tokens() if hub else session.log_in(settings)
    target = Path(output).expanduser() if output else files[0]
    configs.write(target, configs.merged(configs.read(target), cluster, arguments, namespace or held))
    click.echo(f"logged in as {tokens.person(found.claims)}; kubectl and trainyard use {target}")


@click.command()
@_issuer
@click.option("--client-id", default="", metavar="ID", help="Log out only this OAuth client.")
@_ca
def logout(issuer: str, client_id: str, issuer_ca: str) -> None:
    """Delete the tokens of every log-in, or of one issuer. Also revokes them at the issuer, if possible. A copied
    token stays valid until it expires, minutes later. Your browser may still be logged in at the issuer.
    """
    from trainyard.login import session, store

    wanted = issuer.rstrip("/")
    found = [one for one in store.kept() if (not wanted or one[0].rstrip("/") == wanted) and client_id in ("", one[1])]
    for held, client, ca in found:
        session.log_out(session.Settings(held, client, issuer_ca or ca))
        click.echo(f"logged out of {held}")
    if not found:
        click.echo(f"no log-in found{f' at {issuer}' if issuer else ''}")


def _hub_tokens() -> Tokens:
    from trainyard.login import hub

    return hub.tokens()


def _interactive() -> bool:
    """Whether kubectl says that a person is there; without kubectl, whether this is a terminal."""
    said = os.environ.get("KUBERNETES_EXEC_INFO")
    if not said:
        return sys.stderr.isatty()
    try:
        return bool(json.loads(said)["spec"]["interactive"])
    except (ValueError, KeyError, TypeError):
        return False


def _asked_version() -> str:
    """The version of ExecCredential that is asked for; it must be answered in the same."""
    from trainyard.login.kubeconfig import API_VERSION

    try:
        return str(json.loads(os.environ["KUBERNETES_EXEC_INFO"])["apiVersion"])
    except (ValueError, KeyError, TypeError):
        return API_VERSION


def _files(kubeconfig: str) -> list[Path]:
    """Where a kubeconfig is or would be, as kubectl looks for it."""
    from trainyard.kube.access import HOME_CONFIG

    if kubeconfig:
        return [Path(kubeconfig).expanduser()]
    places = [Path(part).expanduser() for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return places or [HOME_CONFIG.expanduser()]


def _cluster(server: str, authority: str, files: list[Path], context: str, hub: bool) -> tuple[Cluster, str]:
    """The cluster that is meant, and the namespace of its context."""
    from trainyard.login import kubeconfig as configs

    if hub and not server:
        host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
        if not host:
            raise TrainyardError("not in a pod: KUBERNETES_SERVICE_HOST is not set", hint="pass --server")
        server = f"https://{f'[{host}]' if ':' in host else host}:{port or 443}"
        authority = authority or os.environ.get("TRAINYARD_CLUSTER_CA", POD_CA)
    if not server:
        return configs.chosen(files, context)
    if not server.startswith("https://"):
        raise UsageError(f"--server {server} is not an https URL", hint="write https://HOST:PORT")
    name = server.removeprefix("https://").rstrip("/")
    return configs.Cluster(name, server, configs.authority(authority) if authority else ""), ""


def _known(kubeconfig: str, context: str) -> Settings:
    """What the kubeconfig's own user logs in with, where we wrote it."""
    from trainyard.login import kubeconfig as configs
    from trainyard.login import session

    arguments = configs.arguments([place for place in _files(kubeconfig) if place.is_file()], context)
    pairs = [one[2:].partition("=")[::2] for one in arguments if one.startswith("--")]
    said, scopes = dict(pairs), tuple(value for key, value in pairs if key == "scope")
    if not said.get("issuer"):
        raise UsageError("no issuer configured", hint="pass --issuer URL (ask your platform engineer)")
    port = said.get("port", "")
    return session.Settings(
        said["issuer"], said.get("client-id", CLIENT), said.get("issuer-ca", ""), scopes, "device" in said,
        int(port) if port.isdigit() else 0,
    )  # fmt: skip


def _text(config: dict[str, object]) -> str:
    import yaml

    return yaml.safe_dump(config, sort_keys=False)
