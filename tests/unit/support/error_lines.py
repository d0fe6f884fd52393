"""The lines that the command line prints for an error: `error: …`, with at most one `hint: …` below."""


def sentence(err: str) -> str:
    """Both lines in one; fails where standard error has anything else."""
    lines = err.strip().splitlines()
    assert [line.partition(": ")[0] for line in lines] in (["error"], ["error", "hint"]), err
    return " ".join(line.partition(": ")[2] + "." for line in lines)
