module trainyard.io/tools/prometheus

go 1.26.8

require github.com/prometheus/prometheus v0.314.0

replace cloud.google.com/go => cloud.google.com/go v0.123.0
