module trainyard.io/tools/helm

go 1.26.0

require helm.sh/helm/v3 v3.22.0

// The libraries of the newest Kubernetes (tools/kubernetes-1.37), whose minor Helm asks for: a package that both have is
// compiled once. Where Helm asks for a later release of one, that release is left out.
require (
	k8s.io/api v0.37.2
	k8s.io/apiextensions-apiserver v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/apiserver v0.37.2
	k8s.io/cli-runtime v0.37.2
	k8s.io/client-go v0.37.2
	k8s.io/component-base v0.37.2
	k8s.io/kubectl v0.37.2
)

exclude (
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/crypto v0.55.0
	golang.org/x/text v0.41.0
)
