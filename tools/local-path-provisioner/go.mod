module trainyard.io/tools/local-path-provisioner

go 1.25

require github.com/rancher/local-path-provisioner v0.0.30
