"""Commands under `trainyard kfp`, and where the platform's service behind kfp.Client is."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import click

from trainyard.commands.common import say
from trainyard.errors import TrainyardError
from trainyard.kube import Access, options

if TYPE_CHECKING:
    from trainyard.kube import Kube


@click.group()
def kfp() -> None:
    """Use kfp's own client with this platform."""


@kfp.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8890, show_default=True, help="Local port; 0: any.")
@click.option("--endpoint", default="", metavar="URL", help="URL of the service. Default: the platform's.")
@click.option("--ca", default="", metavar="FILE", help="CA certificate of the service (PEM).")
@options
def proxy(port: int, endpoint: str, ca: str, access: Access) -> None:
    """Let kfp.Client on this machine talk to the platform, until Ctrl-C. Requests to the local port get the token of
    your kubeconfig, which is renewed before it expires. Everyone who may log in to this machine can use the port.

    \b
    trainyard kfp proxy &
    export KF_PIPELINES_ENDPOINT=http://localhost:8890
    """
    from trainyard.kube.relay import Relay

    kube = access.connect()
    with Relay(kube, endpoint or service(kube), port, ca) as relay:
        relay.token()  # a kubeconfig without one is refused now
        if relay.target.startswith("http://") and ".svc" not in relay.target:
            say(f"{relay.target} is not https: your token is readable on the way there")
        click.echo(f"export KF_PIPELINES_ENDPOINT=http://localhost:{relay.port}")
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        try:
            threading.Event().wait()
        finally:
            relay.shutdown()


def service(kube: Kube) -> str:
    """The service's URL: $KFP_API_URL, else what the platform publishes. Raises TrainyardError."""
    from trainyard import contract

    if found := os.environ.get("KFP_API_URL"):
        return found
    published = contract.live(kube).raw.get("kfpApi") or {}
    if url := published.get("service" if "KUBERNETES_SERVICE_HOST" in os.environ else "url"):
        return str(url)
    hint = "pass --endpoint URL, set KFP_API_URL, or ask your platform engineer for kfpApi.url"
    raise TrainyardError("the platform publishes no URL of a service for kfp.Client", where=kube.host, hint=hint)
