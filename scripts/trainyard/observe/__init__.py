"""State of a job or run: what it does, why it waits, what failed first, and the end of its error.

`pods`, `words`, `refusals`, `events` and `blame` only need the standard library: they also run inside the steps of
pipelines. `jobs` queries a cluster.
"""
