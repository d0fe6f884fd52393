"""Makes JupyterHub the hub of a platform's notebooks: who may log in, which pod they get, and whose token creates it.

`jupyterhub_config.py` calls `notebook_hub.config.configure`. All of a site's settings are in one JSON file, which
the chart writes (`settings`).
"""
