package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/coreos/go-iptables/iptables"
	"github.com/vishvananda/netlink"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	listers "k8s.io/client-go/listers/core/v1"
)

const (
	// Marks our routes, so that those to nodes which are gone are told from all others.
	protocol = 117
	// The interface by which kind's nodes reach each other.
	uplink = "eth0"
)

// network lets this node's pods reach all others: kind's nodes share a network, so a route to each node's pods leads
// over the node itself. Pods hang on routed veth pairs, since a bridge needs br_netfilter, which not every kernel has.
type network struct {
	node, pods, services, list string
	nodes                      listers.NodeLister
}

// sync sets routes, then the rules for what leaves the network of pods and for services, then the list that makes the node
// ready.
func (n *network) sync(context.Context) error {
	nodes, err := n.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	own, others := routes(nodes, n.node)
	if own == "" {
		return nil // the controller manager gives it a range soon
	}
	if err := setRoutes(others); err != nil {
		return err
	}
	table, err := iptables.New()
	if err != nil {
		return err
	}
	if err := table.AppendUnique("nat", "POSTROUTING", "-s", n.pods, "!", "-d", n.pods, "-j", "MASQUERADE"); err != nil {
		return err
	}
	// What still goes to a service's own address here was sent before kube-proxy knew the service. Let out, it would reach
	// whatever answers in the world, and the API server keeps such a connection for good: metrics-server's was one.
	for _, chain := range []string{"OUTPUT", "FORWARD"} {
		rule := []string{"-d", n.services, "-m", "conntrack", "--ctstate", "NEW", "-j", "REJECT"}
		if err := table.AppendUnique("filter", chain, rule...); err != nil {
			return err
		}
	}
	link, err := net.InterfaceByName(uplink)
	if err != nil {
		return fmt.Errorf("%s: %w", uplink, err)
	}
	return replaceFile(n.list, pluginList(own, link.MTU))
}

// routes returns this node's range of pod addresses, and by which address each other node's range is reached.
func routes(nodes []*v1.Node, self string) (own string, others map[string]string) {
	others = map[string]string{}
	for _, node := range nodes {
		if node.Name == self {
			own = node.Spec.PodCIDR
			continue
		}
		for _, address := range node.Status.Addresses {
			if address.Type == v1.NodeInternalIP && node.Spec.PodCIDR != "" {
				others[node.Spec.PodCIDR] = address.Address
				break
			}
		}
	}
	return own, others
}

func setRoutes(wanted map[string]string) error {
	mine, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: protocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	for _, route := range mine {
		if _, found := wanted[route.Dst.String()]; !found {
			if err := netlink.RouteDel(&route); err != nil {
				return fmt.Errorf("the route to %s: %w", route.Dst, err)
			}
		}
	}
	for pods, node := range wanted {
		_, to, err := net.ParseCIDR(pods)
		if err != nil {
			return err
		}
		if err := netlink.RouteReplace(&netlink.Route{Dst: to, Gw: net.ParseIP(node), Protocol: protocol}); err != nil {
			return fmt.Errorf("the route to %s by %s: %w", pods, node, err)
		}
	}
	return nil
}

// pluginList is the node's list of CNI plugins: a veth pair with an address of the node's range, and host ports.
func pluginList(pods string, mtu int) []byte {
	type object = map[string]any
	text, err := json.Marshal(object{"cniVersion": "1.0.0", "name": "trainyard", "plugins": []object{
		{"type": "ptp", "mtu": mtu, "ipMasq": false, "ipam": object{
			"type": "host-local", "ranges": [][]object{{{"subnet": pods}}},
			"routes": []object{{"dst": "0.0.0.0/0"}}, "dataDir": "/run/cni-ipam-state",
		}},
		{"type": "portmap", "capabilities": object{"portMappings": true}},
	}})
	if err != nil {
		panic(err) // it holds nothing that JSON has no form for
	}
	return text
}

// replaceFile writes the file whole or not at all, and leaves one that is so already.
func replaceFile(path string, content []byte) error {
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, content) {
		return nil
	}
	unfinished := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(unfinished, content, 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
