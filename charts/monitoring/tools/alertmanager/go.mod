module trainyard.io/tools/alertmanager

go 1.26.8

require github.com/prometheus/alertmanager v0.31.0
