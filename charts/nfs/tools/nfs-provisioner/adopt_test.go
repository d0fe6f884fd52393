package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
)

const ours = "trainyard.io/nfs"

var adopting = map[string]string{"existing": "adopt", "onDelete": "retain"}

// volume returns one that this provisioner made for team-a/data, changed by the given functions.
func volume(name string, phase v1.PersistentVolumePhase, changes ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	made := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedByAnnotation: ours}},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &v1.ObjectReference{Namespace: "team-a", Name: "data", UID: types.UID("of-" + name), ResourceVersion: "7"},
			PersistentVolumeSource:        v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "10.96.0.49", Path: "/shared/team-a/data"}},
		},
		Status: v1.PersistentVolumeStatus{Phase: phase},
	}
	for _, change := range changes {
		change(made)
	}
	return made
}

// provision makes the volume of that name for the claim team-a/data.
func provision(p *provisioner, name string, parameters map[string]string) error {
	options := request(parameters)
	options.PVName = name
	_, _, err := p.Provision(context.Background(), options)
	return err
}

func there(t *testing.T, core corev1.CoreV1Interface, name string) bool {
	t.Helper()
	_, err := core.PersistentVolumes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil && !errors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestClaimThatComesBackFindsItsData(t *testing.T) {
	reader := volume("reader", v1.VolumeBound, func(v *v1.PersistentVolume) { v.Annotations = nil })
	p, top := testProvisioner(t, "20001", "", volume("pvc-1", v1.VolumeReleased), reader)
	for _, name := range []string{"pvc-1", "pvc-2", "pvc-2"} { // the last as after a lost answer
		if err := provision(p, name, adopting); err != nil {
			t.Fatal(name, err)
		}
		if name == "pvc-1" {
			write(t, top, "team-a/data/file")
			os.Chmod(filepath.Join(top, "team-a/data"), 0o700)
		}
	}
	if !exists(top, "team-a/data/file") {
		t.Error("the file is gone")
	}
	info, _ := os.Stat(filepath.Join(top, "team-a/data"))
	if info.Mode().Perm() != 0o770 || groupOf(info) != teamA {
		t.Errorf("mode %v group %d: not given to the team again", info.Mode(), groupOf(info))
	}
	if there(t, p.core, "pvc-1") || !there(t, p.core, "reader") {
		t.Error("the released volume must go, the static one must stay")
	}
	if has, _ := p.tree.holder("team-a/data"); has != (holder{"pvc-2", "team-a/data"}) {
		t.Errorf("the directory is noted as %v", has)
	}
	// A volume whose object was deleted by hand is no obstacle either.
	if err := provision(p, "pvc-3", adopting); err != nil {
		t.Error(err)
	}
}

func TestAdoptionIsRefused(t *testing.T) {
	foreign := func(v *v1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "team-b" }
	moved := func(v *v1.PersistentVolume) { v.Spec.NFS.Server = "elsewhere" }
	for name, c := range map[string]struct {
		gid, want  string
		parameters map[string]string
		volume     *v1.PersistentVolume
	}{
		"bound":         {"20001", "in use by volume pvc-1, which is Bound", adopting, volume("pvc-1", v1.VolumeBound)},
		"bound, moved":  {"20001", "in use by volume pvc-1, which is Bound", adopting, volume("pvc-1", v1.VolumeBound, moved)},
		"second volume": {"20001", "in use by volume pvc-0, which is Available", adopting, volume("pvc-0", v1.VolumeAvailable)},
		"other claim":   {"20001", "in use by volume pvc-1, which is Released", adopting, volume("pvc-1", v1.VolumeReleased, foreign)},
		"reclaimed": {"20001", "about to be reclaimed (Delete)", adopting, volume("pvc-1", v1.VolumeReleased, func(v *v1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
		})},
		"other group":   {"20002", "belongs to group 20001, not 20002", adopting, volume("pvc-1", v1.VolumeReleased)},
		"class refuses": {"20001", "in use by volume pvc-1", map[string]string{"existing": "refuse"}, volume("pvc-1", v1.VolumeReleased)},
		"by default":    {"20001", "in use by volume pvc-1", nil, volume("pvc-1", v1.VolumeReleased)},
	} {
		t.Run(name, func(t *testing.T) {
			p, top := testProvisioner(t, c.gid, "", c.volume)
			mustCreate(t, p.tree, "team-a/data", "pvc-1", teamA)
			write(t, top, "team-a/data/file")
			wantError(t, provision(p, "pvc-2", c.parameters), c.want)
			if has, _ := p.tree.holder("team-a/data"); has.volume != "pvc-1" || !exists(top, "team-a/data/file") || !there(t, p.core, c.volume.Name) {
				t.Errorf("a refusal changed something: the directory is noted as %v", has)
			}
		})
	}
}

func TestDirectoryOfAnotherClaimIsNotTakenOver(t *testing.T) {
	p, _ := testProvisioner(t, "20001", "")
	for made, want := range map[string]string{"team-b/data": "was made for the claim team-b/data", "": "was made for an unknown claim"} {
		if err := p.tree.note("team-a/data", holder{"pvc-1", made}); err != nil {
			t.Fatal(err)
		}
		wantError(t, provision(p, "pvc-2", adopting), want)
	}
}

func TestFailedAdoptionLeavesTheNote(t *testing.T) {
	p, top := testProvisioner(t, "20001", "")
	mustCreate(t, p.tree, "team-a/data", "pvc-1", teamA)
	os.Remove(filepath.Join(top, "team-a/data"))
	write(t, top, "team-a/data") // a file of the same group in its place
	os.Chown(filepath.Join(top, "team-a/data"), -1, teamA)
	wantError(t, provision(p, "pvc-2", adopting), "is no directory")
	if has, _ := p.tree.holder("team-a/data"); has != (holder{"pvc-1", "team-a/data"}) {
		t.Errorf("the directory is noted as %v", has)
	}
}

// refuseStale does what the API server does with a precondition that no longer holds, and demands the precondition.
func refuseStale(action clienttesting.Action) (bool, runtime.Object, error) {
	guard := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
	if guard == nil || guard.UID == nil || guard.ResourceVersion == nil {
		return false, nil, nil
	}
	return true, nil, errors.NewConflict(v1.Resource("persistentvolumes"), "pvc-1", nil)
}

func TestReleasedVolumeThatChangesIsNotDeleted(t *testing.T) {
	client := fake.NewClientset(volume("pvc-1", v1.VolumeReleased))
	client.PrependReactor("delete", "persistentvolumes", refuseStale)
	source := v1.NFSVolumeSource{Server: "10.96.0.49", Path: "/shared/team-a/data"}
	p := &provisioner{core: client.CoreV1(), name: ours}
	err := p.retire(context.Background(), source, holder{"pvc-1", "team-a/data"})
	wantError(t, err, "cannot remove the released volume pvc-1")
}

// static is the volume of the chart for the claim data of a namespace.
func static(name string, phase v1.PersistentVolumePhase, namespace string) *v1.PersistentVolume {
	return volume(name, phase, func(v *v1.PersistentVolume) {
		v.Labels = map[string]string{staticLabel: "shared"}
		v.Spec.ClaimRef.Namespace = namespace
	})
}

func TestStaticVolumesFollowTheirTeam(t *testing.T) {
	ending := metav1.Now()
	core := fake.NewClientset(
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}},
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ending", DeletionTimestamp: &ending, Finalizers: []string{"kubernetes"}}},
		static("claim-gone", v1.VolumeReleased, "team-a"),
		static("bound", v1.VolumeBound, "team-a"),
		static("new", v1.VolumeAvailable, "removed"),
		static("team-gone", v1.VolumeReleased, "removed"),
		static("team-going", v1.VolumeReleased, "ending"),
		volume("pvc-1", v1.VolumeReleased),
		volume("pvc-2", v1.VolumeReleased, func(v *v1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "removed" }),
	).CoreV1()
	for range 2 {
		if err := tend(context.Background(), core); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := core.PersistentVolumes().List(context.Background(), metav1.ListOptions{})
	uids := map[string]types.UID{}
	for _, found := range list.Items {
		claim := found.Spec.ClaimRef
		uids[found.Name] = claim.UID
		if (claim.ResourceVersion == "") != (claim.UID == "") || claim.Name != "data" {
			t.Errorf("volume %s is meant for %+v", found.Name, claim)
		}
	}
	want := map[string]types.UID{"claim-gone": "", "bound": "of-bound", "new": "of-new", "pvc-1": "of-pvc-1", "pvc-2": "of-pvc-2"}
	if !maps.Equal(uids, want) {
		t.Errorf("volumes and their claims: %v, want %v", uids, want)
	}
}

func TestStaticVolumesStayWhileNobodyKnowsTheirNamespace(t *testing.T) {
	client := fake.NewClientset(static("released", v1.VolumeReleased, "team-a"))
	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.NewServiceUnavailable("the API server rests")
	})
	wantError(t, tend(context.Background(), client.CoreV1()), "the API server rests")
	if !there(t, client.CoreV1(), "released") {
		t.Error("the volume was deleted on no evidence")
	}
}
