"""What makes JupyterHub the hub of a platform's notebooks: who comes in, which pod they get, and whose token makes it.

`jupyterhub_config.py` calls `notebook_hub.config.configure`. All that a site decides is in one JSON file, which
the chart writes (`settings`).
"""
