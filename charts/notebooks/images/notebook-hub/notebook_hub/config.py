"""Sets up JupyterHub: log-in, notebooks, rights within the hub, culling."""

from __future__ import annotations

import json
import os
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from notebook_hub import choices, pods, spawner
from notebook_hub.member import MemberAuthenticator
from notebook_hub.settings import Oidc, Settings, SettingsError, read
from notebook_hub.tokens import Seal

FILE = "NOTEBOOK_HUB_SETTINGS"
DEFAULT = "/etc/notebook-hub/settings.json"
IMAGE = "NOTEBOOK_IMAGE"
KEYS = ("JUPYTERHUB_CRYPT_KEY", "CONFIGPROXY_AUTH_TOKEN", "OIDC_CLIENT_SECRET", IMAGE)
ANSWER_S = 10
CULLER = "idle-culler"
# A notebook may read its person's state, which has the token; a person sees only their own part of the hub.
OWN_STATE = "admin:auth_state!user"


def configure(c: Any, env: Mapping[str, str] | None = None) -> None:
    """Writes the whole configuration into `c`.

    Raises:
        SettingsError: the settings are invalid, a key is missing, or the issuer doesn't publish its endpoints.
    """
    env = os.environ if env is None else env
    if missing := [name for name in KEYS if not env.get(name)]:
        raise SettingsError(f"the hub lacks {missing[0]} in its environment: the chart puts it there")
    settings = read(Path(env.get(FILE, DEFAULT)), env[IMAGE])
    _hub(c, settings)
    _login(c, settings, env)
    _notebooks(c, settings)
    _roles(c, settings)


def _hub(c: Any, settings: Settings) -> None:
    hub = c.JupyterHub
    hub.bind_url = "http://:8000"
    hub.hub_bind_url = "http://:8081"
    hub.hub_connect_url = settings.api_url
    hub.cleanup_servers = False  # notebooks outlive a hub that restarts
    hub.cleanup_proxy = False
    hub.db_url = settings.database
    hub.cookie_secret_file = str(Path(settings.database.removeprefix("sqlite:///")).parent / "cookie_secret")
    hub.show_config = False
    hub.concurrent_spawn_limit = 20
    hub.allow_named_servers = False
    hub.template_vars = {"announcement": ""}
    if settings.subdomains:
        hub.subdomain_host = settings.url
    c.ConfigurableHTTPProxy.should_start = False
    c.ConfigurableHTTPProxy.api_url = settings.proxy_api_url


def _login(c: Any, settings: Settings, env: Mapping[str, str]) -> None:
    oidc = settings.oidc
    authorize, token = _endpoints(oidc)
    c.JupyterHub.authenticator_class = MemberAuthenticator
    who = c.MemberAuthenticator
    who.settings = settings
    who.seal = Seal(env["JUPYTERHUB_CRYPT_KEY"])
    who.enable_auth_state = True
    who.auto_login = True
    who.client_id, who.client_secret = oidc.client_id, env["OIDC_CLIENT_SECRET"]
    who.oauth_callback_url = oidc.callback
    who.authorize_url, who.token_url = authorize, token
    who.scope = list(oidc.scopes)
    who.userdata_from_id_token = True
    who.enable_pkce = True
    who.auth_refresh_age = 60
    who.refresh_pre_spawn = True
    who.admin_users = set()
    who.any_allow_config = True  # check_allowed decides who may log in
    if oidc.ca_file:
        who.http_request_kwargs = {"ca_certs": oidc.ca_file}


def _notebooks(c: Any, settings: Settings) -> None:
    c.JupyterHub.spawner_class = spawner.TeamSpawner
    notebook = c.TeamSpawner
    notebook.settings = settings
    notebook.options_form = spawner.form
    notebook.options_from_form = choices.sent
    notebook.apply_user_options = spawner.apply_options
    notebook.after_pod_created_hook = spawner.put_secret
    notebook.cmd = ["start-notebook"]
    notebook.port = settings.port
    notebook.start_timeout = settings.start
    notebook.http_timeout = 120
    notebook.poll_interval = 30
    notebook.default_url = "/lab"
    notebook.storage_pvc_ensure = bool(settings.storage.home_size)
    notebook.storage_capacity = settings.storage.home_size or None
    notebook.storage_class = settings.storage.home_class or None
    notebook.storage_access_modes = ["ReadWriteMany"]
    for name, value in pods.fixed().items():
        setattr(notebook, name, value)


def _roles(c: Any, settings: Settings) -> None:
    c.JupyterHub.load_roles = [
        {"name": "user", "scopes": ["self", OWN_STATE]},
        {"name": "server", "scopes": ["users:activity!user", "access:servers!server", "read:users!user", OWN_STATE]},
    ]
    if not settings.idle:
        return
    c.JupyterHub.load_roles += [
        {
            "name": CULLER,
            "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
            "services": [CULLER],
        }
    ]
    # In the same pod, not by the Service, which has no endpoint until the hub is ready.
    own = f"http://127.0.0.1:{urlsplit(settings.api_url).port}/hub/api"
    command = [sys.executable, "-m", "jupyterhub_idle_culler", f"--url={own}", f"--timeout={settings.idle}"]
    c.JupyterHub.services = [{"name": CULLER, "command": [*command, f"--cull-every={settings.cull_every}"]}]


def _endpoints(oidc: Oidc) -> tuple[str, str]:
    """URLs for log-in and tokens, from the settings or else from the issuer."""
    if oidc.authorize_url and oidc.token_url:
        return oidc.authorize_url, oidc.token_url
    address = f"{oidc.issuer.rstrip('/')}/.well-known/openid-configuration"
    trusted = ssl.create_default_context(cafile=oidc.ca_file or None)
    try:
        with urlopen(Request(address), timeout=ANSWER_S, context=trusted) as answer:
            found = json.load(answer)
        return found["authorization_endpoint"], found["token_endpoint"]
    except (OSError, ValueError, KeyError) as error:
        raise SettingsError(
            f"the issuer {oidc.issuer} does not say at {address} where people log in ({error}): "
            "fix oidc.issuer, give its authority as oidc.ca or as ca.crt of the Secret, "
            "or name oidc.authorizeUrl and oidc.tokenUrl"
        ) from None
