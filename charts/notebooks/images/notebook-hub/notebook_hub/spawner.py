"""Starts notebooks in a team's namespace, created with the person's own token, so that every rule applies to them.

The hub's own account reads and deletes notebooks, and makes the Secret with a notebook's token.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from kubernetes_asyncio import client
from kubernetes_asyncio.client.rest import ApiException
from kubespawner import KubeSpawner
from tornado import web
from traitlets import Instance

from notebook_hub import choices, names, pods
from notebook_hub.settings import Settings

Object = dict[str, Any]
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


class NotStartedError(web.HTTPError):
    """The reason why a notebook did not start, for the person; JupyterHub's page hides other errors."""

    def __init__(self, reason: str) -> None:
        super().__init__(403, reason)
        self.jupyterhub_message = reason


class TeamSpawner(KubeSpawner):
    """The spawner of one notebook of one person."""

    api: Any
    settings: Any = Instance(Settings, config=True, help="What the site decides.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hidden: dict[str, str] = {}
        self._secret_name = ""

    async def load_user_options(self) -> None:
        """Sets team and size. Raises NotStartedError."""
        state = await self.user.get_auth_state()
        teams = self.authenticator.teams_of(self.user.name, state)
        try:
            choice = choices.chosen(self.settings, self.user.name, teams, self.user_options)
        except choices.RefusedError as error:
            raise NotStartedError(str(error)) from None
        for name, value in pods.traits(self.settings, self.user.name, choice).items():
            setattr(self, name, value)
        self.pod_name = self.pvc_name = names.notebook(self.user.name)
        self.dns_name = self.dns_name_template.format(namespace=self.namespace, name=self.pod_name)
        self._pvc_exists = False  # each team has a home of its own

    async def get_pod_manifest(self) -> Any:
        """Returns the pod, whose tokens are in a Secret that `put_secret` makes once the pod exists."""
        pod = await super().get_pod_manifest()
        [container] = pod.spec.containers
        values = {one.name: one.value for one in container.env}
        self._hidden = {name: values[name] for name in pods.SECRET if values.get(name)}
        self._secret_name = names.secret(self.user.name, secrets.token_hex(4))
        container.env = [one for one in container.env if one.name not in pods.SECRET]
        container.env += pods.store(self.settings.storage)
        reference = client.V1SecretEnvSource(name=self._secret_name)
        container.env_from = [client.V1EnvFromSource(secret_ref=reference)]
        return pod

    def get_pvc_manifest(self) -> Any:
        """Returns the claim of the home, without the legacy annotation that would override its class."""
        claim = super().get_pvc_manifest()
        (claim.metadata.annotations or {}).pop(OLD_CLASS, None)
        return claim

    async def put_secret(self, pod: Object) -> None:
        """Makes the Secret that the pod waits for, owned by the pod."""
        owner = client.V1OwnerReference(
            api_version="v1", kind="Pod", name=pod["metadata"]["name"], uid=pod["metadata"]["uid"]
        )
        meta = client.V1ObjectMeta(name=self._secret_name, labels={names.LABEL: "true"}, owner_references=[owner])
        body = client.V1Secret(metadata=meta, type="Opaque", string_data=self._hidden)
        await self.api.create_namespaced_secret(self.namespace, body)

    async def _make_create_pod_request(self, pod: Any, request_timeout: int) -> Any:
        async with self._in_the_name_of_the_person():
            return await self._explained(super()._make_create_pod_request(pod, request_timeout))

    async def _make_create_pvc_request(self, pvc: Any, request_timeout: int) -> Any:
        async with self._in_the_name_of_the_person():
            return await self._explained(super()._make_create_pvc_request(pvc, request_timeout))

    async def poll(self) -> int | None:
        """None while the notebook runs. Ends it when its person has left, or their token is no longer renewed."""
        status: int | None = await super().poll()
        if status is not None or await self._may_go_on():
            return status
        self.log.warning("%s may have no notebook in %s any more: it ends", self.user.name, self.namespace)
        await self.stop(now=True)
        return 1

    async def _may_go_on(self) -> bool:
        state = await self.user.get_auth_state()
        if state and state.get("sealed") and state.get("expires", 0) < time.time():
            renewed = await self.authenticator.refresh_user(self.user)
            if not renewed and not self.authenticator.unsaid(self.user.name):
                return False
            if isinstance(renewed, dict):
                state = renewed["auth_state"]
                await self.user.save_auth_state(state)
        mine = self.authenticator.teams_of(self.user.name, state)
        return self.namespace in {one.name for one in mine}

    @asynccontextmanager
    async def _in_the_name_of_the_person(self) -> AsyncIterator[None]:
        """Sends requests of the body with the person's token. Raises NotStartedError when there is no valid one."""
        state = await self.user.get_auth_state() or {}
        if not state.get("id_token") or state.get("expires", 0) <= time.time():
            raise NotStartedError("your log-in has ended: log out of the hub, log in again and start the notebook")
        known = client.Configuration.get_default_copy()
        configuration = client.Configuration(host=known.host, ssl_ca_cert=known.ssl_ca_cert)
        configuration.verify_ssl = known.verify_ssl
        person = client.ApiClient(
            configuration, header_name="Authorization", header_value=f"Bearer {state['id_token']}"
        )
        hub, self.api = self.api, client.CoreV1Api(person)
        try:
            yield
        finally:
            self.api = hub
            await person.close()

    async def _explained(self, request: Awaitable[Any]) -> Any:
        """Returns the request's result. Raises NotStartedError with the API server's reason for refusing it."""
        try:
            return await request
        except ApiException as error:
            if error.status not in (400, 401, 403, 422):
                raise
            raise NotStartedError(f"the cluster refused the notebook: {_reason(error)}") from None


def apply_options(spawner: TeamSpawner, options: Object) -> None:
    """Does nothing: `load_user_options` reads the options when the notebook starts."""


async def form(spawner: TeamSpawner) -> str:
    """Returns the form on which its person chooses; "" where there is nothing to choose."""
    state = await spawner.user.get_auth_state()
    return choices.offered(spawner.settings, spawner.authenticator.teams_of(spawner.user.name, state))


async def put_secret(spawner: TeamSpawner, pod: Object) -> None:
    """Hook that KubeSpawner calls when the pod exists."""
    await spawner.put_secret(pod)


def _reason(error: ApiException) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)
