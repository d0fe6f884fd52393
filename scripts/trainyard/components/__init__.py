"""Components of the release: one entry each, `charts/<name>/component.yaml`, from which the rest is derived."""

from trainyard.components.registry import MONITORING, Component, all_components, dependencies, endpoints, find, rendered

__all__ = ["MONITORING", "Component", "all_components", "dependencies", "endpoints", "find", "rendered"]
