"""What is off by default, and the values that switch it on, to render the chart with all of it."""

from trainyard import components

# Components of ours that are off by default.
OPTIONS = tuple(one.name for one in components.dependencies() if one.optional and one.is_ours)
PARTS = ("monitoring.mockGpus",)  # of these, what is off as well
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
