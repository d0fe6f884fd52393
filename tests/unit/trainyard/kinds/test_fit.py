"""A job's image compared with its code's imports: another image is chosen, or the import is refused with a hint."""

from dataclasses import replace

import pytest
import yaml

from trainyard import __version__, contract
from trainyard.contract import Pool
from trainyard.kinds import TeamConfig, images, registry
from trainyard.kinds.fit import Fit, Missing, fit, refusal
from trainyard.kinds.imports import Import
from trainyard.paths import CHART, ROOT


@pytest.fixture
def team_config() -> TeamConfig:
    return TeamConfig.of(contract.load(ROOT / "tests" / "policies" / "teams.yaml"), "vision")


REAL = Pool("real", "gpu", resource="nvidia.com/gpu", cuda=True)


def with_images(team_config: TeamConfig, images: dict[str, str]) -> TeamConfig:
    return replace(team_config, contract=replace(team_config.contract, images=images))


def judged(
    team_config: TeamConfig,
    framework: str,
    *modules: str,
    image: str = "",
    pool: Pool | None = None,
    **more: object,
) -> Fit:
    found = [Import(module, "train.py", at, True) for at, module in enumerate(modules, 1)]
    reference = team_config.image(image, framework, pool)
    return fit(found, framework, reference, team_config, asked=bool(image), **more)  # type: ignore[arg-type]


def test_every_kind_has_an_image_that_imports_what_shows_the_kind() -> None:
    """But for what is detected as a hint at the kind, and no image has; each is named here."""
    nowhere = {"deepspeed", "flax", "optax"}
    for kind in registry.KINDS:
        fitting = [one for one in images.trainers() if kind.framework in one.runs]
        assert any(one.key == kind.image for one in fitting), kind.framework
        for module in set(kind.modules) - nowhere:
            assert any(not one.missing(module) for one in fitting), module


def test_the_contract_names_every_image() -> None:
    named = yaml.safe_load((CHART / "values.yaml").read_text())["global"]["contract"]
    for cuda, table in ((False, "images"), (True, "cudaImages")):
        for one in images.trainers(cuda=cuda):
            assert images.of_reference(f"docker.io/{named[table][one.key]}") == one
            assert set(one.runs) <= set(registry.FRAMEWORKS)
    assert {one.key for one in images.trainers(cuda=True)} == named["cudaImages"].keys()


@pytest.mark.parametrize(
    ("framework", "modules", "image"),
    [
        ("tensorflow", ("keras", "h5py", "tensorflow.keras.layers", "numpy"), ""),
        ("pytorch", ("torch.nn", "numpy"), ""),
        ("pytorch", ("transformers.Trainer", "torch"), "trainer-transformers"),
        ("pytorch", ("accelerate",), "trainer-transformers"),
        ("volcano", ("pytorch_lightning",), "trainer-transformers"),
        ("mpi", ("horovod.torch", "torch"), ""),
        ("mpi", ("horovod.tensorflow.keras", "tensorflow"), "trainer-horovod-tensorflow"),
        ("job", ("keras",), "trainer-tensorflow"),
        ("jax", ("jax.numpy",), ""),
    ],
)
def test_the_image_that_has_it_is_taken(
    framework: str, modules: tuple[str, ...], image: str, team_config: TeamConfig
) -> None:
    seen = judged(team_config, framework, *modules)
    assert (seen.refused, seen.doubtful) == ([], [])
    assert seen.image == (f"site.invalid/trainyard/{image}:{__version__}" if image else "")
    assert (image in seen.why and seen.why.startswith("image ")) if image else not seen.why


@pytest.mark.parametrize(
    ("framework", "modules", "image", "what", "hint"),
    [
        ("pytorch", ("keras",), "", "imports keras, which the image trainer-torch lacks",
         "use --framework tensorflow, whose image trainer-tensorflow has it, or write keras=="),
        ("pytorch", ("transformers",), f"trainyard/trainer-torch:{__version__}", "imports transformers",
         f"use --image site.invalid/trainyard/trainer-transformers:{__version__}, which has it, "
         "or write transformers=="),
        ("pytorch", ("sklearn.svm",), "", "imports sklearn", "write scikit-learn into requirements.txt"),
        ("pytorch", ("deepspeed",), "", "imports deepspeed", "the package compiles its operators at run time"),
        ("mpi", ("horovod.tensorflow",), f"trainyard/trainer-horovod:{__version__}", "imports horovod.tensorflow",
         "use --image site.invalid/trainyard/trainer-horovod-tensorflow"),
        ("mpi", ("horovod.tensorflow", "torch"), "", "imports horovod.tensorflow",
         "no image of the platform has it beside torch: use one of yours"),
        ("mpi", ("horovod.keras",), "", "imports horovod.keras", "import horovod.tensorflow.keras"),
        ("jax", ("flax",), "", "imports flax", "write flax into requirements.txt"),
        ("job", ("imp",), "", "imports imp", "no longer has the module"),
    ],
)  # fmt: skip
def test_what_no_image_of_the_framework_has_is_refused(
    framework: str, modules: tuple[str, ...], image: str, what: str, hint: str, team_config: TeamConfig
) -> None:
    seen = judged(team_config, framework, *modules, image=image)
    assert len(seen.refused) == 1 and seen.image == ""
    assert what in seen.refused[0].what and hint in seen.refused[0].hint
    assert seen.refused[0].where.startswith("train.py:")


@pytest.mark.parametrize(
    ("framework", "modules"),
    [
        ("tensorflow", ("keras", "h5py", "tensorflow.keras.layers", "numpy")),
        ("pytorch", ("torch.nn", "numpy")),
        ("volcano", ("torch.distributed",)),
        ("job", ("torch",)),
        ("job", ("keras",)),
        ("pytorch", ("torch.utils.tensorboard", "tensorboard", "PIL", "yaml")),
        ("pytorch", ("transformers.Trainer", "torch", "psutil")),
        ("volcano", ("lightning", "PIL")),
        ("job", ("accelerate",)),
    ],
)
def test_on_gpus_that_compute_it_is_one_with_cuda(
    framework: str, modules: tuple[str, ...], team_config: TeamConfig
) -> None:
    seen = judged(team_config, framework, *modules, pool=REAL)
    assert (seen.refused, seen.doubtful) == ([], [])
    assert (seen.image or team_config.image("", framework, REAL)) in team_config.contract.cuda_images.values()


@pytest.mark.parametrize(
    ("framework", "module", "line"),
    [
        ("pytorch", "sklearn.svm", "write scikit-learn into"),
        ("pytorch", "pandas", "write pandas into"),
        ("pytorch", "keras", "--framework tensorflow, whose image trainer-tensorflow-cuda has it, or write keras=="),
        ("pytorch", "deepspeed", "the package compiles its operators at run time"),
        ("tensorflow", "torch", "--framework pytorch or volcano, whose image trainer-torch-cuda has it, or write"),
        ("job", "jax", "write jax=="),
    ],
)  # fmt: skip
def test_what_no_image_with_cuda_has_is_refused_on_gpus_that_compute(
    framework: str, module: str, line: str, team_config: TeamConfig
) -> None:
    """And no image for CPUs is named as one to take, nor a package that is one for CPUs."""
    seen = judged(team_config, framework, module, pool=REAL)
    (one,) = seen.refused
    assert "-cuda lacks" in one.what and line in one.hint
    assert not any(reference in one.hint for reference in team_config.contract.images.values())
    for module in ("tensorflow", "xgboost"):
        hint = judged(team_config, "pytorch", module, pool=REAL).refused[0].hint
        assert f"write {module}==" in hint and "-cpu" not in hint


def test_a_part_that_is_compiled_out_is_no_line_of_requirements(team_config: TeamConfig) -> None:
    seen = judged(team_config, "mpi", "horovod.tensorflow", "torch")
    assert "requirements.txt" not in seen.refused[0].hint


def test_of_other_images_and_other_versions_nothing_is_said(team_config: TeamConfig) -> None:
    assert judged(team_config, "pytorch", "anything", image="team/image:1") == Fit()
    older = {key: ref.replace(__version__, "0.0.1") for key, ref in team_config.contract.images.items()}
    assert judged(with_images(team_config, older), "pytorch", "keras") == Fit()


def test_an_image_that_the_platform_does_not_name_is_not_taken(team_config: TeamConfig) -> None:
    fewer = {key: ref for key, ref in team_config.contract.images.items() if key != "trainerTransformers"}
    seen = judged(with_images(team_config, fewer), "pytorch", "transformers")
    assert seen.image == "" and len(seen.refused) == 1


def test_what_requirements_list_is_there_and_may_bring_the_rest(team_config: TeamConfig) -> None:
    seen = judged(team_config, "pytorch", "sklearn", "joblib", listed={"scikit-learn"})
    assert seen.refused == [] and [one.one.module for one in seen.doubtful] == ["joblib"]


@pytest.mark.parametrize(
    ("framework", "modules", "lines"),
    [
        ("pytorch", ("keras", "torch"), {"keras": "write keras=="}),
        ("mpi", ("horovod.torch", "transformers"), {"transformers": "write transformers=="}),
        ("mpi", ("mpi4py", "lightning"), {"lightning": "write lightning=="}),
        ("mpi", ("horovod.torch", "tensorflow"), {"tensorflow": "write tensorflow-cpu=="}),
        ("pytorch", ("keras", "sklearn"), {"keras": "use --framework tensorflow", "sklearn": "write scikit-learn"}),
    ],
)
def test_an_image_that_lacks_another_import_is_no_answer_and_all_is_said(
    framework: str, modules: tuple[str, ...], lines: dict[str, str], team_config: TeamConfig
) -> None:
    refused = judged(team_config, framework, *modules).refused
    assert [one.part for one in refused] == list(lines)
    for one in refused:
        assert one.hint.startswith(lines[one.part]), one.hint


def test_what_is_lacking_is_one_error() -> None:
    missing = [
        Missing(Import(part, "train.py", at, True), part, f"imports {part}", f"write {part}")
        for at, part in enumerate(("a", "b"), 1)
    ]
    assert str(refusal(missing[:1])) == "train.py:1: imports a. write a."
    assert str(refusal(missing)) == "train.py:1: imports a; train.py:2 imports b. for a write a; for b write b."


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("cv2", "opencv-python"),
        ("tensorflow", "tensorflow"),
        ("tensorflow", "tensorflow-cpu"),
        ("xgboost", "xgboost"),
        ("PIL", "pillow"),
    ],
)
def test_each_package_of_a_module_is_enough(module: str, package: str, team_config: TeamConfig) -> None:
    assert judged(team_config, "jax", module, listed={package}) == Fit()


def test_what_requirements_list_needs_no_other_image_and_what_they_do_not_may(team_config: TeamConfig) -> None:
    seen = judged(team_config, "pytorch", "transformers", "wandb", listed={"transformers", "wandb"})
    assert seen == Fit()
    seen = judged(team_config, "pytorch", "transformers", "wandb", listed={"wandb"})
    assert "trainer-transformers" in seen.image and seen.doubtful == []


def test_what_may_never_be_run_is_only_doubtful(team_config: TeamConfig) -> None:
    reference = team_config.image("", "pytorch")
    seen = fit([Import("apex", "train.py", 3, False)], "pytorch", reference, team_config)
    assert seen.refused == [] and seen.doubtful[0].where == "train.py:3"
