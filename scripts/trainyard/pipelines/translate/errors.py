"""What the translator refuses, by name."""

from trainyard.errors import UsageError


class Unsupported(UsageError):  # noqa: N818 - the package's users read it as an adjective
    """A part of a pipeline that would not keep its meaning on Argo: who uses it, what it is, what to write instead.

    Args:
        feature: the kfp feature, as its user knows it.
        user: the task or component that has it.
    """

    def __init__(self, feature: str, *, user: str, where: str = "", hint: str = "", reason: str = "") -> None:
        self.feature, self.user = feature, user
        super().__init__(f"{user} uses {feature}{f', {reason}' if reason else ''}", where=where, hint=hint)
