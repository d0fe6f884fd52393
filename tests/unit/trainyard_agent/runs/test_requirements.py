"""Files of requirements as people write them: what a pod can install, and what is refused with its line."""

from collections.abc import Callable

import pytest

from trainyard_agent.runs.requirements import RequirementError, Requirements, read


def files(**texts: str) -> Callable[[str], str]:
    known = {name.replace("__", "/") + ".txt": text for name, text in texts.items()}

    def text(name: str) -> str:
        if name not in known:
            raise FileNotFoundError(name)
        return known[name]

    return text


def of(text: str, **more: str) -> Requirements:
    return read(files(requirements=text, **more), "requirements.txt")


def test_lines_are_read_as_pip_reads_them() -> None:
    found = of("""\ufeff# what we need
Torch_Metrics>=1.0   # a remark
einops[extra]==0.8 ; python_version > "3.8"

pandas==2.0 \\
    --hash=sha256:aaa \\
    --hash=sha256:bbb
""")
    assert [(line.where, line.name) for line in found.lines] == [
        ("requirements.txt:2", "torch-metrics"),
        ("requirements.txt:3", "einops"),
        ("requirements.txt:5", "pandas"),
    ]
    assert found.lines[2].text == "pandas==2.0 --hash=sha256:aaa --hash=sha256:bbb"


def test_files_of_the_folder_that_are_named_belong_to_it() -> None:
    found = of("-r deps/more.txt\n-c limits.txt\n", deps__more="einops\n-r base.txt\n", deps__base="six\n",
               limits="six<2\n")  # fmt: skip
    assert [line.where for line in found.lines] == ["deps/more.txt:1", "deps/base.txt:1"]
    assert [line.text for line in found.constraints] == ["six<2"]


def test_the_same_requirements_are_the_same_whatever_is_said_beside_them() -> None:
    one = of("einops==0.8\nsix\n")
    assert one.digest("image") == of("# ours\nsix # needed\n\neinops==0.8\n").digest("image")
    different = [of("einops==0.9\nsix\n"), of("einops==0.8\n"), of("--pre\neinops==0.8\nsix\n")]
    assert len({each.digest("image") for each in [one, *different]} | {one.digest("another")}) == 5


@pytest.mark.parametrize("line", ["--extra-index-url https://example.org/cu126", "-i https://example.org/simple",
                                  "--find-links ./wheels", "--trusted-host example.org"])  # fmt: skip
def test_where_packages_come_from_is_the_site_s(line: str) -> None:
    found = of(f"{line}\nsix\n")
    assert found.ignored == [("requirements.txt:1", line)]
    assert found.text() == "six\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("-e .", "would install a source folder"),
        ("./lib", "is not a package from an index"),
        ("lib/own-1.0-py3-none-any.whl", "is not a package from an index"),
        ("git+https://example.org/own.git", "is not a package from an index"),
        ("own @ https://example.org/own.whl", "is not a package from an index"),
        ("-r ../other.txt", "is not a file of the folder"),
        ("-r absent.txt", "no file absent.txt"),
        ("-r requirements.txt", "includes itself through other files"),
        ("--no-binary :all:", "is an option that runs don't support"),
    ],
)
def test_what_no_pod_can_install_is_refused_with_its_line(line: str, says: str) -> None:
    with pytest.raises(RequirementError) as refused:
        of(f"six\n{line}\n")
    assert refused.value.where == "requirements.txt:2"
    assert says in refused.value.what and refused.value.hint
