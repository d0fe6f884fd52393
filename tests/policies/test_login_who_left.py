"""Who leaves gets no new token, and a blocked name is refused at once: the last of all tests of log-in, by its name."""

import re
import time
from pathlib import Path

import yaml
from dex_issuer import Person
from login_world import (
    ADA,
    BOB,
    RELOADED_S,
    REUSED_S,
    World,
    authentication,
    kept,
    needs_dex,
    rendered,
    stale,
    token,
    values,
)

from waiting import wait

pytestmark = needs_dex


class TestOffboarding:
    """Last in this file: who is gone stays gone."""

    def test_who_left_the_values_gets_no_new_token_and_the_last_one_counts_until_it_ends(
        self, world: World, home: Path
    ) -> None:
        held = kept(home)[1]
        left = [one for one in world.issuer.config["staticPasswords"] if one["email"] != ADA]
        world.issuer.start(staticPasswords=left)
        assert world.asked(held["id_token"])[0] == 201
        time.sleep(REUSED_S)
        stale(home)
        refused = world.kubectl(home, "get", "pods")
        assert refused.returncode == 1 and "the issuer did not renew the log-in" in refused.stderr, refused.stderr
        page = Person(world.issuer, ADA, world.issuer.passwords[ADA]).log_in(
            f"{world.issuer.url}/auth?response_type=code&client_id=trainyard&scope=openid"
            "&redirect_uri=http://127.0.0.1:1/callback"
        )
        assert "Invalid Email Address and password" in re.sub(r"\s+", " ", page[1])

    def test_a_blocked_name_is_refused_at_once_everywhere_and_others_are_not(
        self, world: World, tmp_path: Path
    ) -> None:
        ada, bob = token(world), token(world, email=BOB, groups=["speech-members"])
        hub = token(world, aud="trainyard-notebooks")
        assert [world.asked(one)[0] for one in (ada, bob, hub)] == [201, 201, 201]
        objects = rendered(tmp_path, values(world.issuer.url, blocked=[ADA]))
        said = yaml.safe_load(authentication(objects))
        said["jwt"][0]["issuer"]["certificateAuthority"] = world.issuer.ca.read_text()
        world.file.write_text(yaml.safe_dump(said))
        wait(lambda: world.asked(ada)[0] == 401, "the refusal of a blocked name", RELOADED_S, 1.0)
        assert [world.asked(one)[0] for one in (ada, hub)] == [401, 401]
        assert "this member is blocked" in world.log
        assert world.asked(bob)[1]["username"] == f"oidc:{BOB}"

    def test_a_blocked_name_is_blocked_in_any_letters(self, world: World) -> None:
        """An issuer may let people write themselves with other ones; the group would let them in."""
        for email in ("Ada@example.org", "ADA@EXAMPLE.ORG"):
            assert world.asked(token(world, email=email))[0] == 401, email
