module trainyard.io/tools/containerd

go 1.26.8

require github.com/containerd/containerd/v2 v2.3.7

// The libraries that Kubernetes is built with (tools/kubernetes): a package that both have is compiled once. Where containerd
// asks for a later release of one, that release is left out; OpenTelemetry stays, whose later packages it imports.
require (
	github.com/cyphar/filepath-securejoin v0.6.1
	github.com/godbus/dbus/v5 v5.2.2
	github.com/grpc-ecosystem/go-grpc-middleware/v2 v2.3.3
	golang.org/x/crypto v0.53.0
	golang.org/x/mod v0.37.0
	golang.org/x/net v0.56.0
	golang.org/x/sync v0.21.0
	k8s.io/api v0.36.4
	k8s.io/apimachinery v0.36.4
	k8s.io/client-go v0.36.4
	k8s.io/component-base v0.36.4
	k8s.io/cri-api v0.36.4
	k8s.io/cri-client v0.36.4
	k8s.io/cri-streaming v0.36.4
	k8s.io/streaming v0.36.4
)

exclude (
	golang.org/x/crypto v0.55.0
	golang.org/x/mod v0.38.0
	golang.org/x/net v0.58.0
	golang.org/x/oauth2 v0.36.0
	golang.org/x/sync v0.22.0
	golang.org/x/sys v0.47.0
	golang.org/x/term v0.45.0
	golang.org/x/text v0.41.0
	golang.org/x/time v0.15.0
	google.golang.org/genproto/googleapis/api v0.0.0-20260526163538-3dc84a4a5aaa
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa
	google.golang.org/grpc v1.83.2
	k8s.io/kube-openapi v0.0.0-20260319004828-5883c5ee87b9
	k8s.io/utils v0.0.0-20260319190234-28399d86e0b5
)
