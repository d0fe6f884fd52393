"""kfp pipelines as typed Python: compiled, checked against kfp's proto, each part with its source line.

    from trainyard.pipelines.ir import compile, load

    pipeline = compile.pipeline(Path("train.py"))             # a kfp file, a package with one, or compiled YAML/JSON
    pipeline = compile.pipeline(Path("many.py"), name="mine")  # one of several pipelines in a file
    pipeline = load.text(yaml_text, file="train.yaml")         # compiled YAML or JSON as text

    pipeline.name, pipeline.file, pipeline.config              # config: kfp's PipelineConfig (workspace, deadline, …)
    pipeline.inputs, pipeline.outputs                          # {name: Parameter | Artifact} through .root
    for component in pipeline.components.values(): ...         # .dag or .executor; .inputs, .outputs, .line
    for place in pipeline.tasks(): ...                         # place.task, .owner (the component around it), .path

A `Task` names its component (`pipeline.component(task)`; None when the name is dangling), its argument sources
(`Constant | FromInput | FromTask | FinalStatus`), `depends`, `condition`, `strategy`, `retry`, `loop` (a ParallelFor),
`cache`.
An `Executor` has `kind` (container, importer, resolver, custom job), image, command, args, env, resources and
`kubernetes`: kfp-kubernetes' settings, as a plain dict in the proto's JSON names.

The loader checks the form only (kfp's protos, strictly: an unknown field is an error). References may dangle: the
linter reports that. Errors are `UsageError`s whose `where` is `file:line`.
"""
