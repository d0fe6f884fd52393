"""JupyterHub's configuration file: everything is in notebook_hub."""

from notebook_hub.config import configure

configure(get_config())  # type: ignore[name-defined]  # noqa: F821
