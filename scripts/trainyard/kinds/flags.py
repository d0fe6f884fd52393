"""Flags on the command line of a training command."""

from collections.abc import Sequence

PROGRAMS = (".py", "python", "python3")


def of_program(words: Sequence[str]) -> list[str]:
    """The program and its arguments, without the words that launch it."""
    begins = [at for at, word in enumerate(words) if word.endswith(PROGRAMS) and " " not in word]
    return list(words[begins[-1] :]) if begins else list(words)


def flags(words: Sequence[str]) -> dict[str, str]:
    """`--lr 0.1`, `--lr=0.1` and `--fast` as names with values; a flag without a value is `true`."""
    found = {}
    for at, word in enumerate(words):
        if not word.startswith("--") or len(word) == 2:
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            following = words[at + 1] if at + 1 < len(words) else "--"
            value = "true" if following.startswith("--") else following
        found[name] = value
    return found
