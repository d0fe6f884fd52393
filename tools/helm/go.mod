module trainyard.io/tools/helm

go 1.26.0

require helm.sh/helm/v3 v3.19.2

// The libraries that Kubernetes is built with (tools/kubernetes): a package that both have is compiled once. Where Helm asks
// for a later release of one, that release is left out; pflag stays, whose later functions it calls.
require (
	github.com/containerd/errdefs v1.0.0
	k8s.io/api v0.36.4
	k8s.io/apiextensions-apiserver v0.36.4
	k8s.io/apimachinery v0.36.4
	k8s.io/apiserver v0.36.4
	k8s.io/cli-runtime v0.36.4
	k8s.io/client-go v0.36.4
	k8s.io/component-base v0.36.4
	k8s.io/kubectl v0.36.4
)

exclude github.com/moby/term v0.5.2
