"""Options that are disabled by default, and the values that enable them, to render the chart with all of them."""

from trainyard import components

# Our components that are disabled by default.
OPTIONS = tuple(one.name for one in components.dependencies() if one.optional and one.is_ours)
PARTS = ("monitoring.mockGpus",)  # parts of these that are disabled as well
# Values that an option requires.
NEEDS = {
    "login": ("global.contract.login.issuer=https://login.example.org", "login.people[0].email=ada@example.org"),
    "notebooks": (
        "notebooks.teams[0]=*",
        "notebooks.url=https://notebooks.example.org",
        "notebooks.oidc.issuer=https://issuer.example.org",
    ),
}


def switched(*options: str) -> list[str]:
    """Values for `--set` that enable these; by default, all options and parts."""
    return [
        word for option in options or OPTIONS + PARTS for word in (f"{option}.enabled=true", *NEEDS.get(option, ()))
    ]
