module trainyard.io/tools/node-exporter

go 1.26.8

require github.com/prometheus/node_exporter v1.12.1
