"""Paths in a script's text at which its output would be lost."""

from pathlib import Path

import pytest

from trainyard.kinds import saved


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("model.save('my_model.h5')", "my_model.h5"),
        ("model.save(filepath='./deep/my_model.keras', overwrite=True)", "./deep/my_model.keras"),
        ("model.save_weights('/tmp/w.h5')", "/tmp/w.h5"),
        ("trainer.save_pretrained('model')", "model"),
        ("torch.save(model.state_dict(), 'model.pt')", "model.pt"),
        ("torch.save('model', f='model.pt')", "model.pt"),
        ("model.save('results2/my_model.h5')", "results2/my_model.h5"),
        ("model.save('results/../my_model.h5')", "results/../my_model.h5"),
        ("model.save('results/my_model.h5')", ""),
        ("model.save('./ckpt/1.h5')", ""),
        ("model.save('/shared/vision/my_model.h5')", ""),
        ("model.save('s3://runs/vision/my_model.h5')", ""),
        ("model.save(place)", ""),
        ("model.save(f'{results}/my_model.h5')", ""),
        ("torch.save('model', buffer)", ""),
        ("form.save()", ""),
        ("save('my_model.h5')", ""),
        ("import os; os.chdir('results'); model.save('my_model.h5')", ""),
    ],
)
def test_a_place_that_goes_with_the_pod(line: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"import torch\n{line}\n")
    found = saved.lost(tmp_path, ("python", "train.py"), ["results", "ckpt"], ["/shared"])
    assert found == ([saved.Saved(place, "train.py", 2)] if place else [])


def test_files_that_the_script_imports_are_read_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("def end(model):\n    model.save('m.h5')\n")
    (tmp_path / "other.py").write_text("model.save('m.h5')\n")
    (one,) = saved.lost(tmp_path, ("torchrun", "train.py"), ["results"], [])
    assert (one.file, one.line) == ("helper.py", 2)
    assert saved.lost(tmp_path, ("sh", "-c", "cd x && python train.py"), ["results"], []) == []
    assert one.advice("") == ("helper.py:2 saves m.h5, which is lost with the pod", "set a folder with --results")
