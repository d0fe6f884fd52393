"""Entry point of the image: `python3 -m kfp_api`, with settings in the environment."""

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from kubernetes.client import Configuration
from starlette.applications import Starlette

from kfp_api import app, settings
from kfp_api.artifacts import Artifacts
from kfp_api.call import Service
from kfp_api.caller import Cluster
from kfp_api.settings import Settings
from model_server import lines
from trainyard.errors import TrainyardError
from trainyard_agent.say import PlatformError
from trainyard_agent.store import connect

HEAD_S = 20.0  # to begin a request on a connection
KEPT_S = 75  # idle connections: longer than the 60 s of most proxies
END_S = 20  # for answers that have begun when the service ends
MOST = 200  # connections; others are answered 503


def build(found: Settings) -> Starlette:
    """The application of these settings. Raises TrainyardError if the contract or the CA can't be read."""
    current = settings.contract(found.contract, found.server)
    bucket = str(current().pipelines.get("bucket", ""))
    artifacts = Artifacts(connect.client(found.store), bucket) if found.store and bucket else None
    service = Service(current, artifacts)
    reached = Configuration()  # of the API server, with nobody's token
    reached.host, reached.ssl_ca_cert = found.server, found.authority
    cluster = Cluster(reached, lambda: list(current().teams))
    return app.build(service, cluster)


def config(application: Any, port: int) -> uvicorn.Config:
    """How it is served: no line per request, as its query may have names; no header that names the server."""
    return uvicorn.Config(
        application,
        host="0.0.0.0",
        port=port,
        lifespan="off",
        http=lines.patient(HEAD_S),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST,
        timeout_keep_alive=KEPT_S,
        timeout_graceful_shutdown=END_S,
    )


def main() -> int:
    """Serves until SIGTERM; returns 1 if it can't start."""
    try:
        found = settings.read()
        application = build(found)
    except (TrainyardError, PlatformError, OSError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    print(f"kfp_api answers on port {found.port}", flush=True)
    uvicorn.Server(config(application, found.port)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
