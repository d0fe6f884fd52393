module trainyard.io/tools/kube-router

go 1.25

require github.com/cloudnativelabs/kube-router/v2 v2.2.1

// The fork that k3s enforces network policies with; it keeps the module path of its origin.
replace github.com/cloudnativelabs/kube-router/v2 => github.com/k3s-io/kube-router/v2 v2.2.1
