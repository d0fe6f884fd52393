"""`trainyard verify`: a check of `sync` that changes nothing, the classes of files, and the tree's budget."""
