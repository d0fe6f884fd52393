"""What a job or run is doing, why it waits, what failed first, and the end of its error: read here, shown by others.

`pods`, `words`, `refusals`, `events` and `blame` need the standard library only: they run inside the steps of
pipelines, too. `jobs` asks a cluster.
"""
