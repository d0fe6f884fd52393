"""Inputs of the checks of model servers: rules of prometheus-adapter, and the results of a load."""

import yaml

from trainyard.paths import ROOT
from trainyard_dev.e2e import asking
from trainyard_dev.e2e.catalog import all_ids
from trainyard_dev.e2e.checks import serving, serving_scale
from trainyard_dev.e2e.sites import adapter


def test_the_adapter_gets_the_rules_of_the_documentation_which_name_what_the_chart_scales_by() -> None:
    names = [rule["name"]["as"] for rule in yaml.safe_load(adapter.rules())["rules"]]
    asked = (ROOT / "charts" / "model-server" / "templates" / "autoscaling.yaml").read_text()
    assert serving_scale.METRIC in names and len(names) == 2
    assert all(f'"{name}"' in asked for name in names)


def test_what_was_not_answered_by_200_has_failed() -> None:
    seen = {"seen": [["200", "a", 7], ["200", "b", 2], ["503", "b", 1], ["ConnectionRefusedError", "?", 3]]}
    assert asking.failed(seen) == 4
    assert asking.versions(seen) == {"a": 7, "b": 2}


def test_every_check_has_a_title_and_the_load_is_a_program() -> None:
    compile(asking.LOAD.replace("THREADS", "1"), "load", "exec")
    assert [i for i in all_ids() if i.startswith("serving.")] == list(serving.TITLES)
