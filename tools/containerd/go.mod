module trainyard.io/tools/containerd

go 1.25

require github.com/containerd/containerd/v2 v2.1.5

// The libraries that Kubernetes is built with (tools/kubernetes): a package that both have is compiled once. Where containerd
// asks for a later release of one, that release is left out; cri-api and kubelet stay, whose later releases it does not fit.
require (
	github.com/emicklei/go-restful/v3 v3.12.2
	github.com/fxamacker/cbor/v2 v2.9.0
	github.com/gorilla/websocket v1.5.4-0.20250319132907-e064f32e3674
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.26.3
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee
	github.com/vishvananda/netlink v1.3.1
	golang.org/x/time v0.9.0
	google.golang.org/genproto/googleapis/api v0.0.0-20250303144028-a0af3efb3deb
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250303144028-a0af3efb3deb
	google.golang.org/grpc v1.72.1
	k8s.io/api v0.34.2
	k8s.io/apimachinery v0.34.2
	k8s.io/apiserver v0.34.2
	k8s.io/client-go v0.34.2
	k8s.io/utils v0.0.0-20250604170112-4c0f3b243397
	sigs.k8s.io/json v0.0.0-20241014173422-cfa47c3a1cc8
	sigs.k8s.io/yaml v1.6.0
)

exclude (
	golang.org/x/sync v0.14.0
	golang.org/x/sys v0.33.0
	google.golang.org/grpc v1.72.2
	google.golang.org/protobuf v1.36.6
)
