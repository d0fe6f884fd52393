"""The object store and what lies there: users and keys, buckets, data sets and their copies, backups."""
