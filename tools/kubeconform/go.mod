module trainyard.io/tools/kubeconform

go 1.25

require github.com/yannh/kubeconform v0.7.0
