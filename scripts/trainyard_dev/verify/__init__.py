"""`trainyard verify`: a dry run of `sync`, the classes of files, and the tree's budget."""
