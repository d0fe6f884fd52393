"""Binaries built from pinned Go modules, cached outside the tree."""

from trainyard_dev.tools.build import binary, ensure, module_dir, tested_kubernetes

__all__ = ["binary", "ensure", "module_dir", "tested_kubernetes"]
