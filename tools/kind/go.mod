module trainyard.io/tools/kind

go 1.25

require sigs.k8s.io/kind v0.33.0
