"""Names of claims, Secrets and ConfigMaps that are parameters: a template gets them as extra inputs."""

from typing import Any

from trainyard.pipelines.translate import values


class References:
    """Collects references to parameters while a template is made."""

    def __init__(self) -> None:
        self.found: list[tuple[str, dict[str, Any]]] = []

    def name(self, spec: dict[str, Any] | None, written: str = "") -> str:
        """The text to write as the name: the name itself, or the input that holds it."""
        if spec is None:
            return written
        constant = spec.get("runtimeValue", {}).get("constant")
        if constant is not None:
            return str(constant)
        for parameter, known in self.found:
            if known == spec:
                return values.tag(f"inputs.parameters.{parameter}")
        self.found.append((f"ref-{len(self.found)}", spec))
        return values.tag(f"inputs.parameters.{self.found[-1][0]}")
