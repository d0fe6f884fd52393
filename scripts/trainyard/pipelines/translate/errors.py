"""Errors for parts of a pipeline that the translator refuses."""

from trainyard.errors import UsageError


class Unsupported(UsageError):  # noqa: N818 - the package's users read it as an adjective
    """A part of a pipeline that would change its meaning on Argo: its user, the feature, and what to write instead.

    Args:
        feature: the kfp feature, by the name that users know.
        user: the task or component that uses it.
    """

    def __init__(self, feature: str, *, user: str, where: str = "", hint: str = "", reason: str = "") -> None:
        self.feature, self.user = feature, user
        super().__init__(f"{user} uses {feature}{f', {reason}' if reason else ''}", where=where, hint=hint)
