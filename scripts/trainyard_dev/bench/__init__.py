"""Measures scheduling: real schedulers on a real API server, nodes as objects, pods and gangs from published traces.

What is measured (`registry` has the list), and what only one bench needs:

- packing: `packed` counts, `bounds` says what is possible
- gangs: `offline` schedules on paper, `published` has what others found for whole traces, `gangs_page`
- order: `passing` says who passed whom
- fairness: `shares` says what is fair; `victims` measures claims on full clusters, `layouts` makes these
- throughput: `loads`, `controllers`, `costs`, `profiles`, `binder` (the limit), `throughput_page`
- sharing: `cards` speaks as device plugins do, `bestfit` places on paper, `card_rounds` says what rounds cost,
  `sharing_page`

With what: `columns` and `knobs` are the configurations; `schedulers`, `scheduler_kueue`, `kueue_setup` and `extender`
run them; `world` is the API server, `objects` what it gets, `lockstep` virtual time; `traces` reads what `sources`
finds.

What becomes of it: `runner` measures, `results` are files, `summary` the figures of all; `page`, `tables` and `plots`
publish them; `environment` says on what; `cli` has the commands.
"""
