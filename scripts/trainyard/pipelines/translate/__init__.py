"""kfp pipelines as Argo Workflows: translated faithfully, or refused with the reason.

    from trainyard import translate
    from trainyard.pipelines.ir import compile

    pipeline = compile.pipeline(Path("train.py"))
    settings = translate.Settings.of(contract, "vision", queue="vision", experiment="lr", cache=True)
    workflow = translate.workflow(pipeline, {"lr": 0.1}, settings)     # dict; write it as JSON, never as YAML 1.1

`Unsupported` (a UsageError) has the task or component, the unsupported feature, and the fix. How a template's
main container works is in tools/step/README.md.
"""

from trainyard.pipelines.translate.errors import Unsupported
from trainyard.pipelines.translate.settings import Settings
from trainyard.pipelines.translate.workflow import translate as workflow

__all__ = ["Settings", "Unsupported", "workflow"]
