// kind-agent does on each node of a test cluster what kind leaves to others: it routes to the pods of the other nodes,
// enforces network policies, and answers claims with folders of the node's own disk.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// What failed is tried again after this time, without waiting for a change.
const again = 5 * time.Second

type settings struct {
	node, pods, services, list, folder string
}

func parseFlags(arguments []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("kind-agent", flag.ContinueOnError)
	flags.StringVar(&s.node, "node", os.Getenv("NODE_NAME"), "name of the node that this runs on")
	flags.StringVar(&s.pods, "pods", "10.244.0.0/16", "network of all pods")
	flags.StringVar(&s.services, "services", "10.96.0.0/16", "network of all services")
	flags.StringVar(&s.list, "cni-list", "/etc/cni/net.d/10-trainyard.conflist", "where the node's list of CNI plugins goes")
	flags.StringVar(&s.folder, "folder", "/var/local-volumes", "folder on the node for volumes")
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if s.node == "" {
		return s, fmt.Errorf("-node or NODE_NAME is needed")
	}
	return s, nil
}

func run(ctx context.Context, s settings) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("no access to the cluster: %w", err)
	}
	config.ContentType = "application/vnd.kubernetes.protobuf" // all pods of the cluster are read on each node
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	net := &network{node: s.node, pods: s.pods, services: s.services, list: s.list, nodes: core.Nodes().Lister()}
	vols := &volumes{node: s.node, folder: s.folder, api: client.CoreV1().PersistentVolumes(),
		claims: core.PersistentVolumeClaims().Lister(), made: core.PersistentVolumes().Lister()}
	changed := make(chan struct{}, 1)
	for _, informer := range []cache.SharedIndexInformer{
		core.Nodes().Informer(), core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(notify(changed)); err != nil {
			return err
		}
	}
	// Policies first: a node whose plugin list is there gets pods.
	if err := enforcePolicies(ctx, client, factory, s); err != nil {
		return err
	}
	klog.InfoS("kind-agent started", "node", s.node)
	for {
		var timer <-chan time.Time
		for what, sync := range map[string]func(context.Context) error{"network": net.sync, "volumes": vols.sync} {
			if err := sync(ctx); err != nil {
				klog.ErrorS(err, "will be tried again", "what", what)
				timer = time.After(again)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer:
		}
	}
}

// notify puts one token into the channel for any number of changes.
func notify(changed chan<- struct{}) cache.ResourceEventHandler {
	put := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { put() }, UpdateFunc: func(any, any) { put() }, DeleteFunc: func(any) { put() },
	}
}

func main() {
	s, err := parseFlags(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		err = run(ctx, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kind-agent:", err)
		os.Exit(1)
	}
}
