// nfs-provisioner provides PersistentVolumeClaims with directories of one NFS export that is mounted in its pod: an
// `nfs:` PersistentVolume each, mode 2770, with the group of the claim's team.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

type settings struct {
	name, directory, server, export, leaseNamespace, healthAddress, kubeconfig string
	leaderElection                                                             bool
	period                                                                     time.Duration
	tolerance, maxFiles, keepDays                                              int
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
	flags.StringVar(&s.healthAddress, "health-address", ":8080", "address of /healthz, /readyz and /metrics")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "how to reach the cluster from outside; empty: by the pod's own account")
	flags.DurationVar(&s.period, "measure-every", 0, "rest between two measurements of what claims hold; 0: they are not measured")
	flags.IntVar(&s.tolerance, "tolerance", 10, "percent that a claim may hold beyond its size")
	flags.IntVar(&s.maxFiles, "max-files", 10_000_000, "the most files that a claim may hold")
	flags.IntVar(&s.keepDays, "keep-archived-days", 0, "days after which archived volumes are removed; 0: never")
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if s.server == "" || len(s.export) == 0 || s.export[0] != '/' {
		return s, fmt.Errorf("-server and -export (an absolute path) are needed")
	}
	if s.period < 0 || s.tolerance < 0 || s.maxFiles < 1 || s.keepDays < 0 {
		return s, fmt.Errorf("-measure-every, -tolerance and -keep-archived-days can't be negative, -max-files must be positive")
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
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return fmt.Errorf("no access to the cluster: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	p := &provisioner{tree: tree, core: client.CoreV1(), name: s.name, server: s.server, export: s.export}
	measured := &figures{}
	if s.period > 0 {
		events := record.NewBroadcaster(record.WithContext(ctx))
		events.StartRecordingToSink(&corev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
		w := &watch{tree: tree, core: client.CoreV1(), period: s.period, tolerance: int64(s.tolerance),
			most: bounds{files: s.maxFiles, depth: maxDepth}, keepFor: time.Duration(s.keepDays) * day, figures: measured,
			events: events.NewRecorder(scheme.Scheme, v1.EventSource{Component: s.name})}
		go w.run(ctx)
	}
	go tendStatic(ctx, client.CoreV1())
	go serveHealth(ctx, s.healthAddress, tree.Ping, measured)
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
