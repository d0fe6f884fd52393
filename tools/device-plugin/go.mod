module trainyard.io/tools/device-plugin

go 1.25

require github.com/NVIDIA/k8s-device-plugin v0.17.4
