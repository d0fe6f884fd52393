"""Metrics about jobs, gangs, queues, quotas, runs and nodes, for Prometheus: `python3 -m trainyard_agent exporter`.

`keeping` lists and watches objects, `read_*` extract what is counted, `series_*` and `runs` turn it into series,
`serve` builds a page every few seconds and answers at /metrics. Names and labels of all series are in `series`.
"""
