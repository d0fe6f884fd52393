"""Which tokens a real API server takes, for whom it takes them, and what it says of those that it refuses."""

import subprocess
import time

import pytest
from login_world import ADA, World, forger, needs_dex, token

from trainyard_dev import tools

pytestmark = needs_dex


REFUSED = {
    "for another audience": ({"aud": "somebody-else"}, "audience"),
    "that has ended": ({"iat": -900, "exp": -60}, "token is expired"),
    "of another issuer": ({"iss": "https://elsewhere.example.org"}, "invalid bearer token"),
    "that counts for two days": ({"exp": 172800}, "the token is valid for more than a day"),
    "without a name": ({"email": None}, "email"),
    "with an email that nobody has verified": ({"email_verified": False}, "email not verified"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_token_is_refused(world: World, what: str) -> None:
    changed, why = dict(REFUSED[what][0]), REFUSED[what][1]
    for key in ("iat", "exp"):
        if key in changed:
            changed[key] = int(time.time()) + int(str(changed[key]))
    assert world.asked(token(world))[0] == 201  # the same token but for what is wrong with it
    world.refused(token(world, **changed), why)


def test_a_signature_of_somebody_else_counts_for_nobody(world: World) -> None:
    head, claims, signature = token(world).split(".")
    other = "A" if signature[10] != "A" else "B"
    world.refused(f"{head}.{claims}.{signature[:10]}{other}{signature[11:]}", "failed to verify signature")
    # An issuer that calls itself ours, and its key as well; a token that says that it needs no signature.
    world.refused(forger(world, own=True).token(), "failed to verify signature")
    world.refused(forger(world).unsigned(), "unsupported")


def test_names_of_kubernetes_own_are_nobodys(world: World) -> None:
    """The prefix is before each name and group, so that `system:masters` of an issuer is a group like any other."""
    _, who = world.asked(token(world, groups=["system:masters"], email="system:admin"))
    assert who["username"] == "oidc:system:admin"
    assert sorted(who["groups"]) == ["oidc:system:masters", "system:authenticated"]


def test_a_foreign_group_gets_nothing_in_a_team(world: World) -> None:
    found = token(world, groups=["vision-members-2", "oidc:vision-members", "members"])
    done = subprocess.run(
        [tools.binary("kubectl"), "--kubeconfig", "/dev/null", "--server", world.address, "--certificate-authority",
         world.ca, "--token", found, "get", "pods", "-n", "vision"],
        env=world.environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and f'User "oidc:{ADA}" cannot list resource "pods"' in done.stderr


def test_the_hubs_tokens_are_taken_as_well(world: World) -> None:
    assert world.asked(token(world, aud="trainyard-notebooks"))[1]["username"] == f"oidc:{ADA}"
