"""Binaries built from pinned Go modules, cached outside the tree."""

from trainyard.tools.build import binary, ensure, module_dir

__all__ = ["binary", "ensure", "module_dir"]
