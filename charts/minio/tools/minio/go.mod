module trainyard.io/tools/minio

go 1.25

require github.com/minio/minio v0.0.0-20260212201848-7aac2a2c5b7c
