"""Resources that jobs request and use: free and held GPUs, and the usage that Prometheus measured."""
