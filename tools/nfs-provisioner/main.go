// nfs-provisioner answers PersistentVolumeClaims with directories of one NFS export that is mounted in its pod: an
// `nfs:` PersistentVolume each, mode 2770, with the group of the claim's team.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

type settings struct {
	name, directory, server, export, leaseNamespace, healthAddress string
	leaderElection                                                 bool
}

func parseFlags(arguments []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("nfs-provisioner", flag.ContinueOnError)
	flags.StringVar(&s.name, "name", "trainyard.io/nfs", "provisioner name, as storage classes give it")
	flags.StringVar(&s.directory, "directory", "/export", "where the export is mounted in this container")
	flags.StringVar(&s.server, "server", "", "NFS server as the nodes reach it: an address, or a name that the nodes resolve")
	flags.StringVar(&s.export, "export", "", "path of the export on the server")
	flags.BoolVar(&s.leaderElection, "leader-election", true, "only one replica works at a time")
	flags.StringVar(&s.leaseNamespace, "lease-namespace", os.Getenv("POD_NAMESPACE"), "namespace of the leader's Lease")
	flags.StringVar(&s.healthAddress, "health-address", ":8080", "address of /healthz and /readyz")
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if s.server == "" || len(s.export) == 0 || s.export[0] != '/' {
		return s, fmt.Errorf("-server and -export (an absolute path) are needed")
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return s, nil
}

func run(ctx context.Context, s settings) error {
	tree, err := openTree(s.directory)
	if err != nil {
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("no access to the cluster: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	volumes := client.CoreV1().PersistentVolumes()
	p := &provisioner{tree: tree, server: s.server, export: s.export,
		retire: func(ctx context.Context, source v1.NFSVolumeSource, old holder) error {
			return retire(ctx, volumes, s.name, source, old)
		},
		namespaceAnnotations: func(ctx context.Context, name string) (map[string]string, error) {
			namespace, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return namespace.Annotations, nil
		}}
	go tendStatic(ctx, client.CoreV1())
	go serveHealth(ctx, s.healthAddress, tree.Ping)
	klog.InfoS("nfs-provisioner started", "name", s.name, "export", s.server+":"+s.export, "directory", s.directory)
	controller.NewProvisionController(ctx, client, s.name, p,
		controller.LeaderElection(s.leaderElection),
		controller.LeaderElectionNamespace(s.leaseNamespace),
		controller.Threadiness(4), controller.MetricsPort(0),
	).Run(ctx)
	return nil
}

func main() {
	s, err := parseFlags(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		err = run(ctx, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nfs-provisioner:", err)
		os.Exit(1)
	}
}
