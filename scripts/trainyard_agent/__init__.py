"""The in-cluster agent, part of the platform image: standard library only, plus the MinIO client for buckets."""
