"""Series about jobs, gangs, queues, quotas, runs and nodes, for Prometheus: `python3 -m trainyard_agent exporter`.

`keeping` lists and watches, `read_*` keep of each object what is counted, `series_*` and `runs` make series of it,
`serve` looks every few seconds and answers at /metrics. Names and labels of all series are in `series`.
"""
