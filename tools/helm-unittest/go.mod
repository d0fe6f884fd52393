module trainyard.io/tools/helm-unittest

go 1.25

require github.com/helm-unittest/helm-unittest v1.0.3

replace github.com/vmware-labs/yaml-jsonpath v0.3.2 => github.com/helm-unittest/yaml-jsonpath v0.4.0
