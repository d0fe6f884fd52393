module trainyard.io/tools/training-operator

go 1.25

require github.com/kubeflow/training-operator v1.9.3
