module trainyard.io/tools/kueue

go 1.26.0

require sigs.k8s.io/kueue v0.18.4
