"""Lines of the charts' values that follow the registry of kinds and the list of images."""

from pathlib import Path

import pytest

from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard_dev.images import packages
from trainyard_dev.sync import kinds
from trainyard_dev.sync.tree import Tree


@pytest.mark.parametrize("kind", registry.of_part(registry.OPERATOR)[-3:], ids=lambda kind: kind.framework)
def test_every_line_that_names_a_kind_goes_and_comes_with_it(
    kind: registry.Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (*kinds.WRITTEN, packages.LIST):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text((ROOT / file).read_text())
    tree, listed = Tree(tmp_path), (ROOT / packages.LIST).read_text()
    with monkeypatch.context() as patched:
        patched.setattr(registry, "KINDS", tuple(one for one in registry.KINDS if one != kind))
        (tmp_path / packages.LIST).write_text(listed.replace(f"runs: [{kind.framework}, job]", "runs: []"))
        kinds.values(tree, "0.4.0")
        assert not [file for file in kinds.WRITTEN if kind.framework in tree.read(file).lower()]
    (tmp_path / packages.LIST).write_text(listed)
    kinds.values(tree, "0.4.0")
    assert tree.read(kinds.VALUES) == (ROOT / kinds.VALUES).read_text()
    assert all(kind.plural.removesuffix("s") in tree.read(file) for file in kinds.OPERATOR)
