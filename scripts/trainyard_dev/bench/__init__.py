"""Measures scheduling: real schedulers on a real API server, nodes as objects, pods and gangs from published traces.

What is measured (`registry` has the list), and what only one bench needs:

- packing: `packed` counts, `bounds` says what is possible
- gangs: `offline` schedules in a simulation, `published` has what others found for whole traces
- order: `overtaking` says who passed whom
- fairness: `shares` says what is fair; `victims` measures reclaim requests on full clusters, `layouts` makes these
- throughput: `loads`, `costs`, `binder` (the limit)
- beside them: `serving` of models

With what: `configurations` are what is compared; `schedulers`, `scheduler_processes`, `scheduler_kueue` and
`kueue_setup` run them; `harness` is the API server, `objects` what it gets, `simulator` virtual time; `traces` reads
what `sources` finds.

What becomes of it: `runner` measures, `results` are files, `summary` the figures of all; `page`, `tables` and `plots`
publish them; `environment` says on what; `cli` has the commands.
"""
