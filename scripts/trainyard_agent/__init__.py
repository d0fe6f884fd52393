"""What runs inside the cluster, in the platform image: standard library only, plus the MinIO client for buckets."""
