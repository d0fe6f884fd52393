package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/utils"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

func node(name, pods string, addresses ...string) *v1.Node {
	made := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeSpec{PodCIDR: pods}}
	made.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}}
	for _, address := range addresses {
		made.Status.Addresses = append(made.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: address})
	}
	return made
}

func TestRoutesLeadOverEachOtherNode(t *testing.T) {
	own, others := routes([]*v1.Node{
		node("a", "10.244.0.0/24", "10.89.0.2"), node("b", "10.244.1.0/24", "10.89.0.3", "fc00::3"),
		node("without-range", "", "10.89.0.4"), node("without-address", "10.244.3.0/24"),
	}, "a")
	if own != "10.244.0.0/24" || !maps.Equal(others, map[string]string{"10.244.1.0/24": "10.89.0.3"}) {
		t.Fatal(own, others)
	}
}

func TestPluginListHoldsTheNodesRange(t *testing.T) {
	var list struct {
		Plugins []struct {
			Type string
			MTU  int
			IPAM struct{ Ranges [][]struct{ Subnet string } }
		}
	}
	path := filepath.Join(t.TempDir(), "list")
	if err := replaceFile(path, pluginList("10.244.1.0/24", 1450)); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	first := list.Plugins[0]
	if first.Type != "ptp" || first.MTU != 1450 || first.IPAM.Ranges[0][0].Subnet != "10.244.1.0/24" {
		t.Fatal(string(text))
	}
}

func claim(node string) *v1.PersistentVolumeClaim {
	class := "standard"
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1",
			Annotations: map[string]string{askedOf: provisioner, selectedNode: node}},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class},
	}
}

func TestOnlyOpenClaimsOfThisNodeAreAnswered(t *testing.T) {
	here := &volumes{node: "a"}
	bound, others := claim("a"), claim("a")
	bound.Spec.VolumeName = "pvc-1"
	others.Annotations[askedOf] = "trainyard.io/nfs"
	if !here.isAsked(claim("a")) || here.isAsked(claim("b")) || here.isAsked(bound) || here.isAsked(others) {
		t.Fatal("another's claim is answered, or this node's is not")
	}
}

// api keeps what is asked of it; it has no other method.
type api struct {
	corev1.PersistentVolumeInterface
	created *v1.PersistentVolume
	deleted string
}

func (a *api) Create(_ context.Context, volume *v1.PersistentVolume, _ metav1.CreateOptions) (*v1.PersistentVolume, error) {
	a.created = volume
	return volume, nil
}

func (a *api) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	a.deleted = name
	return nil
}

func TestAVolumeIsAFolderFromClaimToRelease(t *testing.T) {
	asked := &api{}
	here := &volumes{node: "a", folder: filepath.Join(t.TempDir(), "volumes"), api: asked}
	if err := here.provide(context.Background(), claim("a")); err != nil {
		t.Fatal(err)
	}
	volume := asked.created
	path := volume.Spec.HostPath.Path
	if found, err := os.Stat(path); err != nil || found.Mode().Perm() != 0o777 {
		t.Fatal(found, err)
	}
	if volume.Name != "pvc-1" || volume.Spec.ClaimRef.UID != "1" || volume.Spec.StorageClassName != "standard" {
		t.Fatal(volume)
	}
	if here.isDone(volume) {
		t.Fatal("a volume that is in use counts as done")
	}
	volume.Status.Phase = v1.VolumeReleased
	if !here.isDone(volume) || (&volumes{node: "b"}).isDone(volume) {
		t.Fatal("a released volume is its node's to remove")
	}
	if err := here.remove(context.Background(), volume); err != nil || asked.deleted != "pvc-1" {
		t.Fatal(err, asked.deleted)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("the folder is still there")
	}
}

// asked counts what iptables itself is asked.
type asked struct {
	utils.IPTablesHandler
	rules, lists, appended int
	there                  bool
}

func (a *asked) Exists(string, string, ...string) (bool, error) { a.rules++; return a.there, nil }
func (a *asked) List(string, string) ([]string, error)          { a.lists++; return []string{"-N A"}, nil }
func (a *asked) AppendUnique(string, string, ...string) error   { a.appended++; return nil }
func (a *asked) Insert(string, string, int, ...string) error    { a.there = true; return nil }

func TestOnlyWhatIsThereIsRemembered(t *testing.T) {
	table := &asked{}
	c := &chains{IPTablesHandler: table}
	for range 2 {
		if there, _ := c.Exists("filter", "A", "-j", "B"); there {
			t.Fatal("a rule that is not there was found")
		}
	}
	if err := c.Insert("filter", "A", 1, "-j", "B"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		there, _ := c.Exists("filter", "A", "-j", "B")
		list, _ := c.List("filter", "A")
		if !there || len(list) != 1 || c.AppendUnique("filter", "A", "-j", "C") != nil {
			t.Fatal(there, list)
		}
	}
	if table.rules != 3 || table.lists != 1 || table.appended != 1 {
		t.Fatal(table)
	}
	c.until = time.Now().Add(-time.Second)
	if _, err := c.List("filter", "A"); err != nil || table.lists != 2 {
		t.Fatal("it was not looked at anew", err, table)
	}
}
