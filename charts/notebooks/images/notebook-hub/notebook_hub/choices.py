"""The choices of a person and the form for them: one of their teams, and a size."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notebook_hub.settings import Profile, Settings, Team


class RefusedError(ValueError):
    """A choice that the person may not make; the message is shown to them."""


@dataclass(frozen=True)
class Choice:
    """A choice of where a notebook runs and how large it is."""

    team: Team
    profile: Profile


def offered(settings: Settings, teams: Sequence[Team]) -> str:
    """Returns the form, or "" where there is nothing to choose."""
    if len(teams) < 2 and len(settings.profiles) < 2:
        return ""
    return "\n".join(
        (
            _select("team", "Team", [(one.name, one.name) for one in teams]),
            _select("profile", "Size", [(one.name, _about(one)) for one in settings.profiles]),
        )
    )


def sent(form: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns the submitted form as the hub keeps it."""
    return {name: form[name][0] for name in ("team", "profile") if form.get(name)}


def chosen(settings: Settings, person: str, teams: Sequence[Team], options: Mapping[str, Any]) -> Choice:
    """Returns the person's choice; the first of each where they chose nothing.

    Raises:
        RefusedError: they are in no team with notebooks, not in that one, or there is no such size.
    """
    if not teams:
        raise RefusedError(
            f"{person} is a member of no team that has notebooks: ask the platform engineer to add you to one"
        )
    wanted = str(options.get("team") or teams[0].name)
    team = next((one for one in teams if one.name == wanted), None)
    if team is None:
        mine = ", ".join(one.name for one in teams)
        raise RefusedError(f"{person} is not a member of team {wanted}, or it has no notebooks: choose one of {mine}")
    size = str(options.get("profile") or settings.profiles[0].name)
    profile = settings.profile(size)
    if profile is None:
        known = ", ".join(one.name for one in settings.profiles)
        raise RefusedError(f"there is no size {size} of notebooks: choose one of {known}")
    return Choice(team, profile)


def _about(profile: Profile) -> str:
    words = [f"{profile.cpu_limit or profile.cpu:g} CPU", profile.memory_limit or profile.memory]
    if profile.gpus:
        words += [f"{profile.gpus} GPU", f"ends after {profile.deadline / 3600:g} h, and earlier when others need it"]
    return f"{profile.title} ({', '.join(words)})"


def _select(name: str, title: str, options: Sequence[tuple[str, str]]) -> str:
    lines = "".join(f'<option value="{html.escape(key)}">{html.escape(text)}</option>' for key, text in options)
    label = f'<label for="{name}" class="form-label">{html.escape(title)}</label>'
    return f'{label}\n<select class="form-select mb-3" name="{name}" id="{name}">{lines}</select>'
