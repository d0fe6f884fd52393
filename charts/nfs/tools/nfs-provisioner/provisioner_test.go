package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func TestExpandSubDir(t *testing.T) {
	names := volumeNames{namespace: "team-a", claim: "data.v1", volume: "pvc-1"}
	for pattern, want := range map[string]string{
		"":                        "team-a/data.v1",
		"${pvc.metadata.name}":    "data.v1",
		"vol-${pv.metadata.name}": "vol-pvc-1",
		"teams/${pvc.metadata.namespace}/${pvc.metadata.name}-${pv.metadata.name}": "teams/team-a/data.v1-pvc-1",
	} {
		if got, err := expandSubDir(pattern, names); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"..", "../x", "/x", "x/", "x//y", "x/../../y", "./x", ".trainyard/claims", ".hidden", "archived/x",
		"${pvc.annotations.path}", "${pvc.metadata.name", "a b", "x\x00y", "x/@volume", strings.Repeat("n", 256)} {
		if got, err := expandSubDir(pattern, names); err == nil {
			t.Errorf("%q was accepted: %q", pattern, got)
		}
	}
	// Names come from the API server, which checks them; they are not trusted all the same.
	for _, name := range []string{"..", "../../etc", "a/b/../../..", ""} {
		if got, err := expandSubDir("", volumeNames{namespace: "team-a", claim: name}); err == nil && strings.Contains(got, "..") {
			t.Errorf("claim %q was accepted: %q", name, got)
		}
	}
}

func TestChooseGID(t *testing.T) {
	for _, c := range []struct {
		annotation, class string
		want              int
	}{{"20001", "30000", 20001}, {"", "30000", 30000}, {"", "", 0}, {"0", "30000", 0}, {"-1", "", 0}, {"root", "", 0}, {"", "2147483648", 0}} {
		got, err := chooseGID("team-a", map[string]string{gidAnnotation: c.annotation}, c.class)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%+v: %d, %v", c, got, err)
		}
	}
}

func TestParseOnDelete(t *testing.T) {
	if policy, err := parseOnDelete(""); err != nil || policy != onDeleteArchive {
		t.Errorf("default: %v, %v", policy, err)
	}
	if _, err := parseOnDelete("Archive"); err == nil {
		t.Error("a misspelt policy was accepted")
	}
}

func request(parameters map[string]string) controller.ProvisionOptions {
	return controller.ProvisionOptions{
		PVName:       "pvc-1",
		StorageClass: &storage.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Parameters: parameters, MountOptions: []string{"nfsvers=3"}},
		PVC: &v1.PersistentVolumeClaim{
			// The annotation is a tenant's attempt to get another team's group.
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "data", Annotations: map[string]string{gidAnnotation: "20002"}},
			Spec: v1.PersistentVolumeClaimSpec{
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteMany},
				Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		},
	}
}

// testProvisioner is for a cluster with team-a's namespace, of this group and total, and these objects.
func testProvisioner(t *testing.T, namespaceGID, total string, objects ...runtime.Object) (*provisioner, string) {
	tree, top := export(t)
	notes := map[string]string{gidAnnotation: namespaceGID, storageAnnotation: total}
	objects = append(objects, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Annotations: notes}})
	core := fake.NewClientset(objects...).CoreV1()
	return &provisioner{tree: tree, core: core, name: ours, server: "10.96.0.49", export: "/shared"}, top
}

func TestProvisionAndDelete(t *testing.T) {
	p, top := testProvisioner(t, "20001", "")
	volume, state, err := p.Provision(context.Background(), request(map[string]string{"gid": "30000", "onDelete": "retain"}))
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatal(state, err)
	}
	if got := volume.Annotations[podGIDAnnotation]; got != "20001" {
		t.Errorf("group %s, want the namespace's 20001", got)
	}
	source, size := volume.Spec.NFS, volume.Spec.Capacity[v1.ResourceStorage]
	if source.Server != "10.96.0.49" || source.Path != "/shared/team-a/data" || size.String() != "1Gi" ||
		volume.Spec.MountOptions[0] != "nfsvers=3" || volume.Spec.AccessModes[0] != v1.ReadWriteMany {
		t.Errorf("volume %+v", volume.Spec)
	}

	// Volumes that are not from here, or were tampered with, are left alone.
	for _, change := range []func(*v1.PersistentVolume){
		func(v *v1.PersistentVolume) { v.Annotations = nil },
		func(v *v1.PersistentVolume) { v.Annotations[subDirAnnotation] = "../etc" },
		func(v *v1.PersistentVolume) { v.Annotations[subDirAnnotation] = "team-b/data" },
		func(v *v1.PersistentVolume) { v.Spec.NFS.Server = "other" },
		func(v *v1.PersistentVolume) { v.Spec.NFS = nil },
	} {
		bad := volume.DeepCopy()
		change(bad)
		var ignored *controller.IgnoredError
		if err := p.Delete(context.Background(), bad); !errors.As(err, &ignored) {
			t.Errorf("deleted all the same: %v", err)
		}
	}
	if err := p.Delete(context.Background(), volume); err != nil || !exists(top, "team-a/data") {
		t.Errorf("retain: %v, directory there: %v", err, exists(top, "team-a/data"))
	}
}

func TestProvisionRefuses(t *testing.T) {
	p, top := testProvisioner(t, "", "")
	for part, parameters := range map[string]map[string]string{
		"no group for the volume":           {},
		"onDelete: \"keep\" is none of":     {"gid": "1", "onDelete": "keep"},
		"parameter ondelete is not known":   {"gid": "1", "ondelete": "retain"},
		"is not a directory name":           {"gid": "1", "subDir": "../${pvc.metadata.name}"},
		"is not a group id from 1 to":       {"gid": "0"},
		"${pvc.annotations.x} is not known": {"gid": "1", "subDir": "${pvc.annotations.x}"},
	} {
		_, _, err := p.Provision(context.Background(), request(parameters))
		wantError(t, err, part)
	}
	withSelector := request(map[string]string{"gid": "1"})
	withSelector.PVC.Spec.Selector = &metav1.LabelSelector{}
	_, _, err := p.Provision(context.Background(), withSelector)
	wantError(t, err, "selector")
	if exists(top, "team-a") {
		t.Error("a refused claim left a directory")
	}
}

func TestParseFlags(t *testing.T) {
	if _, err := parseFlags([]string{"-server", "nas", "-export", "/shared"}); err != nil {
		t.Error(err)
	}
	for _, arguments := range [][]string{{}, {"-server", "nas"}, {"-server", "nas", "-export", "shared"}, {"-server", "nas", "-export", "/s", "x"}} {
		if _, err := parseFlags(arguments); err == nil {
			t.Errorf("%v was accepted", arguments)
		}
	}
}

func TestHealth(t *testing.T) {
	var fault error
	handler := healthHandler(func() error { return fault })
	code := func(path string) int {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest("GET", path, nil))
		time.Sleep(10 * time.Millisecond)
		return recorder.Code
	}
	if code("/healthz") != 200 || code("/readyz") != 200 {
		t.Error("not healthy")
	}
	fault = errors.New("stale")
	if code("/healthz") != 200 || code("/readyz") != 503 {
		t.Error("a fault of the server must make the pod unready, not dead")
	}
}
