package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// From one sync of all policies to the next: pods come and go by the second.
const apart = 3 * time.Second

// enforcePolicies starts kube-router's controller of network policies, and returns when it and every informer of the
// factory are at work.
func enforcePolicies(ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory,
	s settings) error {
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	config := options.NewKubeRouterConfig()
	config.EnableIPv4 = true
	config.HostnameOverride = s.node
	config.ClusterIPCIDRs = []string{s.services}
	tables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	for family, table := range tables {
		tables[family] = &chains{IPTablesHandler: table}
	}
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &sync.Mutex{}, tables, sets)
	if err != nil {
		return fmt.Errorf("network policies: %w", err)
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, namespaces: controller.NamespaceEventHandler,
		policies: controller.NetworkPolicyEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	beats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range beats { // the controller begins no sync before this one is taken
			time.Sleep(apart)
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	go controller.Run(beats, ctx.Done(), &running)
	return nil
}
