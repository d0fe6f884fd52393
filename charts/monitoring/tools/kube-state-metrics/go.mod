module trainyard.io/tools/kube-state-metrics

go 1.26.8

require k8s.io/kube-state-metrics/v2 v2.20.0
