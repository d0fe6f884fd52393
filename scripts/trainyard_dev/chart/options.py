"""What is off by default, and the values that switch it on, to render the chart with all of it."""

from __future__ import annotations

# Components that may be left out, in the order of the chart.
OPTIONS = ("monitoring", "logs", "serving", "login", "notebooks")
# What is as well off by default and belongs to a component that need not be an option.
PARTS = ("metrics-server", "monitoring.mockGpus")
# What an option can't do without.
NEEDS = {
    "login": ("global.contract.login.issuer=https://login.example.org", "login.people[0].email=ada@example.org"),
    "notebooks": (
        "notebooks.teams[0]=*",
        "notebooks.url=https://notebooks.example.org",
        "notebooks.oidc.issuer=https://issuer.example.org",
    ),
}


def switched(*options: str) -> list[str]:
    """Values for `--set` that switch these on; without any, all options and parts."""
    return [
        word for option in options or OPTIONS + PARTS for word in (f"{option}.enabled=true", *NEEDS.get(option, ()))
    ]
