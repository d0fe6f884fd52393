"""Sends a compiled pipeline by KFP's API, without translation: to the platform's own service, or a site's KFP."""

import contextlib
import io
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError, UsageError
from trainyard.pipelines.ir.model import Pipeline

POLL_INTERVAL_S = 5.0
ENDED = {"SUCCEEDED", "FAILED", "SKIPPED", "CANCELED"}


@dataclass(frozen=True)
class Endpoint:
    """The address of a KFP API and its credentials. Empty texts are not sent."""

    url: str
    token: str = ""
    namespace: str = ""  # of a multi-user KFP
    authority: str = ""  # file with the certificate authority
    account: str = ""
    renew: Callable[[], str] | None = None  # gives the token of each request


class KfpRun:
    """One run on a KFP server."""

    def __init__(self, client: Any, run_id: str, link: str) -> None:
        self._client, self.id, self.link = client, run_id, link

    def wait(self, say: Callable[[str], None]) -> str:
        """Follows the run to its end; returns KFP's state. Raises TrainyardError with KFP's message if it failed."""
        before = ""
        while True:
            with _answers(self.link):
                run = self._client.get_run(self.id)
            state = str(run.state or "PENDING").upper()
            if state != before:
                say(f"run {self.id}: {state.lower()}")
                before = state
            if state in ENDED:
                if state == "FAILED":
                    raise TrainyardError(f"run {self.id} failed: {_reason(run)}", hint=f"see {self.link}")
                return state
            time.sleep(POLL_INTERVAL_S)


def submit(
    pipeline: Pipeline, arguments: dict[str, Any], to: Endpoint, *, name: str, experiment: str, cache: bool | None
) -> KfpRun:
    """Starts a run. `cache` None keeps the compiled setting. Raises TrainyardError with the server's message."""
    if not to.url.startswith(("http://", "https://")):
        raise UsageError(f"--endpoint {to.url!r} is not a URL", hint="for example: https://kfp.example.org/pipeline")
    with tempfile.TemporaryDirectory(prefix="trainyard-kfp-") as folder, _answers(to.url):
        file = Path(folder) / "pipeline.yaml"
        # as JSON, which every YAML parser reads alike: KFP's takes `n` and `yes` for booleans
        documents = [pipeline.spec, *([pipeline.platform] if pipeline.platform else [])]
        file.write_text("\n---\n".join(json.dumps(document) for document in documents))
        client = _client(to)
        made = client.create_run_from_pipeline_package(
            str(file),
            arguments=arguments,
            run_name=name,
            experiment_name=experiment,
            namespace=to.namespace or None,
            enable_caching=cache,
            service_account=to.account or None,
        )
    page = os.environ.get("KF_PIPELINES_UI_ENDPOINT") or to.url  # kfp's own variable
    return KfpRun(client, made.run_id, f"{page.rstrip('/')}/#/runs/details/{made.run_id}")


def _client(to: Endpoint) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kfp.client import Client

        return Client(
            host=to.url,
            namespace=to.namespace or "kubeflow",
            existing_token=to.token or None,
            ssl_ca_cert=to.authority or None,
            credentials=_Renewed(to.renew) if to.renew else None,
        )


class _Renewed:
    """Credentials as kfp's client wants them: its configuration gets the token before each request."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def refresh_api_key_hook(self, config: Any) -> None:
        """Called by the client."""
        config.api_key["authorization"] = self._token()


@contextlib.contextmanager
def _answers(where: str) -> Iterator[None]:
    """Suppresses the client's output, and turns its exceptions into one sentence."""
    import urllib3
    from kfp_server_api import ApiException

    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ApiException as error:
        hint = "pass a valid --token" if error.status in (401, 403) else ""
        raise TrainyardError(f"KFP refused: {_message(error)}", where=where, hint=hint) from None
    except (urllib3.exceptions.HTTPError, TimeoutError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        text = str(reason).rsplit(">: ", 1)[-1].rsplit("): ", 1)[-1]
        raise TrainyardError(f"KFP did not answer: {text}", where=where, hint="correct --endpoint") from None
    except (ValueError, yaml.YAMLError) as error:
        raise TrainyardError(f"KFP's client refused: {' '.join(str(error).split())}", where=where) from None


def _message(error: Any) -> str:
    try:
        answer = json.loads(error.body)
        return str(answer.get("error_details") or answer.get("message") or answer.get("error") or error.reason)
    except (TypeError, ValueError, AttributeError):
        return f"{error.status} {error.reason}"


def _reason(run: Any) -> str:
    """The first failed task's message, else the run's."""
    tasks = getattr(run.run_details, "task_details", None) or []
    for task in tasks:
        message = getattr(task.error, "message", "") if task.error else ""
        if str(task.state).upper() == "FAILED" and message:
            return f"step {task.display_name}: {message}"
    return getattr(run.error, "message", "") or "KFP gives no reason"
