"""Components of the release: one entry each, `components/<name>.yaml`, from which all else about them derives."""

from trainyard.components.registry import Component, all_components, dependencies, find, rendered

__all__ = ["Component", "all_components", "dependencies", "find", "rendered"]
