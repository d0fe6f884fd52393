module trainyard.io/tools/containerd

go 1.25

require github.com/containerd/containerd/v2 v2.1.5
