"""The object store and its contents: users and keys, buckets, data sets and their copies, backups."""
