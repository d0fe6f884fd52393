"""Settings of a notebook's server: idle kernels end, so that a forgotten one keeps no notebook from being culled.

It makes no outside requests: for news, newer versions, or extensions, which the read-only image couldn't hold anyway.
"""

c = get_config()  # type: ignore[name-defined]  # noqa: F821
c.ServerApp.root_dir = "/"
c.ServerApp.preferred_dir = "/home/notebook"
c.MappingKernelManager.cull_idle_timeout = 3600
c.MappingKernelManager.cull_interval = 300
c.MappingKernelManager.cull_connected = True
c.MappingKernelManager.cull_busy = False
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
