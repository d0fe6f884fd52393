module trainyard.io/tools/helm

go 1.25

require helm.sh/helm/v3 v3.19.2

// The libraries that Kubernetes is built with (tools/kubernetes): a package that both have is compiled once. Where Helm asks
// for a later release of one, that release is left out; cobra and pflag stay, whose later functions it calls.
require (
	github.com/containerd/errdefs v1.0.0
	k8s.io/api v0.34.2
	k8s.io/apiextensions-apiserver v0.34.2
	k8s.io/apimachinery v0.34.2
	k8s.io/apiserver v0.34.2
	k8s.io/cli-runtime v0.34.2
	k8s.io/client-go v0.34.2
	k8s.io/component-base v0.34.2
	k8s.io/kubectl v0.34.2
)

exclude (
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc
	github.com/moby/term v0.5.2
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2
	golang.org/x/crypto v0.43.0
	golang.org/x/net v0.45.0
	golang.org/x/oauth2 v0.30.0
	golang.org/x/sync v0.17.0
	golang.org/x/sys v0.37.0
	golang.org/x/term v0.36.0
	golang.org/x/text v0.30.0
	golang.org/x/time v0.12.0
)
