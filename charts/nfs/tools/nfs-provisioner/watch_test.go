package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
)

const mebi = 1 << 20

var wide = bounds{files: 10_000, depth: maxDepth}

// fill writes a file of this many MiB on disk.
func fill(t *testing.T, size int, parts ...string) string {
	t.Helper()
	name := filepath.Join(parts...)
	if err := os.WriteFile(name, []byte(strings.Repeat("x", size*mebi)), 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

func measured(t *testing.T, tree *tree, directory string) int64 {
	t.Helper()
	bytes, err := tree.measure(context.Background(), directory, wide)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func within(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got < want || got > want+mebi/4 {
		t.Errorf("%s: %d bytes, want about %d", what, got, want)
	}
}

func TestMeasureCountsWhatTakesRoom(t *testing.T) {
	tree, top := export(t)
	mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
	data := filepath.Join(top, "team-a/data")
	within(t, "nothing", measured(t, tree, "team-a/data"), 0)
	within(t, "no directory", measured(t, tree, "team-a/none"), 0)

	file := fill(t, 2, data, "file")
	os.Link(file, filepath.Join(data, "again"))
	within(t, "two names of one file", measured(t, tree, "team-a/data"), 2*mebi)

	sparse, _ := os.Create(filepath.Join(data, "sparse"))
	sparse.Truncate(15 << 40)
	sparse.Close()
	within(t, "15 TiB of holes", measured(t, tree, "team-a/data"), 2*mebi)

	outside := t.TempDir()
	fill(t, 3, outside, "file")
	os.Symlink(outside, filepath.Join(data, "link"))
	os.Symlink(".", filepath.Join(data, "circle"))
	within(t, "links", measured(t, tree, "team-a/data"), 2*mebi)

	os.MkdirAll(filepath.Join(data, "a/b/c"), 0)
	os.Chmod(filepath.Join(data, "a/b"), 0)
	fill(t, 1, data, "a/b/c/file")
	within(t, "directories that nobody may enter", measured(t, tree, "team-a/data"), 3*mebi)
}

func TestMeasureEndsAtItsBounds(t *testing.T) {
	tree, top := export(t)
	mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
	deep := filepath.Join(top, "team-a/data", strings.Repeat("d/", 9))
	os.MkdirAll(deep, 0o755)
	for i := range 20 {
		write(t, deep, fmt.Sprint(i))
	}
	for want, most := range map[string]bounds{"more than 8 deep": {100, 8}, "more than 28 files": {28, 9}} {
		_, err := tree.measure(context.Background(), "team-a/data", most)
		wantError(t, err, want)
	}
	if _, err := tree.measure(context.Background(), "team-a/data", bounds{29, 9}); err != nil {
		t.Error(err)
	}
}

// TestMeasureIsNotLedAway replaces directories by links while they are measured.
func TestMeasureIsNotLedAway(t *testing.T) {
	tree, top := export(t)
	mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
	mustCreate(t, tree, "team-b/data", "pvc-2", teamB)
	fill(t, 8, top, "team-b/data/file")
	data := filepath.Join(top, "team-a/data")
	var done atomic.Bool
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for !done.Load() {
			os.Mkdir(filepath.Join(data, "x"), 0o755)
			os.Remove(filepath.Join(data, "x"))
			os.Symlink("../../team-b/data", filepath.Join(data, "x"))
			os.Remove(filepath.Join(data, "x"))
		}
	}()
	for range 3000 {
		if got := measured(t, tree, "team-a/data"); got > mebi {
			t.Errorf("%d bytes of another team's were counted", got)
			break
		}
	}
	done.Store(true)
	<-finished
}

type cluster struct {
	*watch
	t      *testing.T
	top    string
	client *fake.Clientset
	events *record.FakeRecorder
}

// claimed returns a cluster with team-a's claim data of this many MiB, its directory, and a pod that has it.
func claimed(t *testing.T, size int) *cluster {
	t.Helper()
	tree, top := export(t)
	mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
	return watching(t, tree, top,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{teamLabel: "team-a"}}},
		asking("data", "pvc-1", size), pod("writer", "data"), pod("other", "else"))
}

// watching returns a watch of a tree in a cluster with these objects.
func watching(t *testing.T, tree *tree, top string, objects ...runtime.Object) *cluster {
	client, events := fake.NewClientset(objects...), record.NewFakeRecorder(100)
	w := &watch{tree: tree, core: client.CoreV1(), events: events, tolerance: 10, most: wide, figures: &figures{}}
	return &cluster{w, t, top, client, events}
}

func asking(name, volume string, size int) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name},
		Spec: v1.PersistentVolumeClaimSpec{VolumeName: volume, Resources: v1.VolumeResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(int64(size*mebi), resource.BinarySI)}}}}
}

func pod(name, claim string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: v1.PodSpec{Volumes: []v1.Volume{
		{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}}}
}

func (c *cluster) look() {
	c.t.Helper()
	if err := c.round(context.Background()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) start(name string) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Pods("team-a").Create(context.Background(), pod(name, "data"), metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// pods returns the names of the remaining pods.
func (c *cluster) pods() string {
	list, _ := c.client.CoreV1().Pods("team-a").List(context.Background(), metav1.ListOptions{})
	var names []string
	for _, one := range list.Items {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

func (c *cluster) mode() os.FileMode {
	c.t.Helper()
	info, err := os.Stat(filepath.Join(c.top, "team-a/data"))
	if err != nil {
		c.t.Fatal(err)
	}
	return info.Mode().Perm()
}

// said expects exactly one event of the claim, with these words.
func (c *cluster) said(words ...string) {
	c.t.Helper()
	var got []string
	for len(c.events.Events) > 0 {
		if event := <-c.events.Events; !strings.Contains(event, "ClaimOverSize") {
			got = append(got, event)
		}
	}
	if len(words) == 0 && len(got) == 0 {
		return
	}
	if len(got) != 1 {
		c.t.Fatalf("events %q, want one with %q", got, words)
	}
	for _, word := range words {
		if !strings.Contains(got[0], word) {
			c.t.Errorf("event %q lacks %q", got[0], word)
		}
	}
}

func TestClaimWithinItsSizeIsLeftAlone(t *testing.T) {
	c := claimed(t, 20)
	fill(t, 30, c.top, "team-a/data/file") // the tolerance is 16 MiB at least
	c.look()
	c.said()
	if c.pods() != "other writer" || c.mode() != 0o770 {
		t.Errorf("pods %q, mode %v", c.pods(), c.mode())
	}
}

func TestWriterBeyondTheSizeIsStopped(t *testing.T) {
	c := claimed(t, 20)
	file := fill(t, 40, c.top, "team-a/data/file")
	c.look()
	c.said("Warning OverSize", "holds 40 MiB, and asks for 20 MiB: 1 pods", "raise spec.resources.requests.storage")
	if c.pods() != "other" || c.mode() != 0o770 {
		t.Errorf("pods %q, mode %v: want the writer ended, and a way in to delete files", c.pods(), c.mode())
	}
	// Deleting is not disturbed, even while above the size; below it all is as before.
	c.start("cleaner")
	c.look()
	fill(t, 25, c.top, "team-a/data/file")
	c.look()
	c.said()
	os.Remove(file)
	c.look()
	c.said("Normal WithinSize")
	if c.pods() != "cleaner other" {
		t.Errorf("pods %q", c.pods())
	}
	fill(t, 40, c.top, "team-a/data/file")
	c.look()
	c.said("Warning OverSize")
}

func TestWhoGrowsOnIsClosedOut(t *testing.T) {
	c := claimed(t, 20)
	fill(t, 40, c.top, "team-a/data/file")
	c.look()
	c.said("OverSize")
	c.start("again")
	fill(t, 20, c.top, "team-a/data/more")
	c.look()
	c.said("Warning Closed", "holds 60 MiB", "1 pods that have it were ended", "administrator")
	if c.pods() != "other" || c.mode() != 0o700 {
		t.Errorf("pods %q, mode %v: want all ended and nobody let in", c.pods(), c.mode())
	}
	// A new pod is ended, a round without one reports nothing, and a new claim of the name opens nothing for long.
	c.start("third")
	c.look()
	c.said("Closed", "1 pods")
	c.look()
	c.said()
	mustCreate(t, c.tree, "team-a/data", "pvc-1", teamA)
	if c.mode() != 0o770 {
		t.Fatal(c.mode())
	}
	c.look()
	c.said("Closed")
	// Raised, it opens.
	raised := asking("data", "pvc-1", 100)
	if _, err := c.client.CoreV1().PersistentVolumeClaims("team-a").Update(context.Background(), raised, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.look()
	c.said("WithinSize")
	if info, _ := os.Stat(filepath.Join(c.top, "team-a/data")); c.mode() != 0o770 || info.Mode()&os.ModeSetgid == 0 || groupOf(info) != teamA {
		t.Errorf("mode %v, group %d", info.Mode(), groupOf(info))
	}
}

func TestFiguresNameClaimsAndWhatIsKept(t *testing.T) {
	c := claimed(t, 20)
	mustCreate(t, c.tree, "team-a/gone", "pvc-9", teamA)
	fill(t, 2, c.top, "team-a/gone/file")
	c.look()
	answer := httptest.NewRecorder()
	c.figures.ServeHTTP(answer, nil)
	for _, line := range []string{
		`trainyard_nfs_bytes{namespace="team-a",claim="data",directory="team-a/data",state="live"} 0`,
		`trainyard_nfs_bytes{namespace="team-a",claim="gone",directory="team-a/gone",state="kept"} 2097152`,
	} {
		if !strings.Contains(answer.Body.String(), line+"\n") {
			t.Errorf("%q lacks %q", answer.Body.String(), line)
		}
	}
}

func TestWhatCanNotBeMeasuredIsClosed(t *testing.T) {
	c := claimed(t, 20)
	c.most.depth = 3
	os.MkdirAll(filepath.Join(c.top, "team-a/data/a/b/c/d/e"), 0o755)
	c.look()
	c.said("Warning Closed", "directories lie more than 3 deep", "1 pods")
	if c.mode() != 0o700 {
		t.Errorf("mode %v", c.mode())
	}
	os.RemoveAll(filepath.Join(c.top, "team-a/data/a"))
	c.look()
	c.said("WithinSize")
}

func TestOthersThanTeamsAreTold(t *testing.T) {
	c := claimed(t, 1)
	c.client.CoreV1().Namespaces().Update(context.Background(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, metav1.UpdateOptions{})
	fill(t, 40, c.top, "team-a/data/file")
	for range 2 {
		c.look()
		c.said("Warning OverSize", "holds 40 MiB, and asks for 1 MiB")
	}
	if c.pods() != "other writer" || c.mode() != 0o770 {
		t.Errorf("pods %q, mode %v", c.pods(), c.mode())
	}
}

func TestPodsOverAndEphemeralVolumes(t *testing.T) {
	done, own := pod("done", "data"), pod("own", "else")
	done.Status.Phase = v1.PodSucceeded
	own.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
	if !has(own, "own-scratch") || has(own, "scratch") || !has(done, "data") {
		t.Error("which pods have a claim")
	}
	c := claimed(t, 1)
	c.client.Tracker().Add(done)
	fill(t, 40, c.top, "team-a/data/file")
	c.look()
	if c.pods() != "done other" {
		t.Errorf("pods %q: one that is over holds nothing", c.pods())
	}
}

func TestFilesOfDeletedClaimsCount(t *testing.T) {
	for _, policy := range []onDelete{onDeleteArchive, onDeleteRetain, onDeleteDelete} {
		t.Run(string(policy), func(t *testing.T) {
			p, top := testProvisioner(t, "20001", "2Gi", asking("data", "", 1024), asking("next", "", 1024))
			parameters := map[string]string{"onDelete": string(policy)}
			volume, _, err := p.Provision(context.Background(), request(parameters))
			if err != nil {
				t.Fatal(err)
			}
			fill(t, 4, top, "team-a/data/file")
			claims := p.core.PersistentVolumeClaims("team-a")
			claims.Delete(context.Background(), "data", metav1.DeleteOptions{})
			claims.Update(context.Background(), asking("next", "", 2048), metav1.UpdateOptions{})
			c := watching(t, p.tree, top)
			if policy == onDeleteRetain {
				c.look() // what stays in place counts by its measure, not by its request
			}
			if err := p.Delete(context.Background(), volume); err != nil {
				t.Fatal(err)
			}
			next := request(parameters)
			next.PVC.Name, next.PVName = "next", "pvc-2"
			_, _, err = p.Provision(context.Background(), next)
			switch policy {
			case onDeleteDelete:
				if err != nil {
					t.Error(err)
				}
				return
			case onDeleteArchive:
				wantError(t, err, "claims of team-a ask for 2.0 GiB and 1.0 GiB of deleted claims are kept, more than its 2Gi together")
				c.look()
				_, _, err = p.Provision(context.Background(), next)
			}
			wantError(t, err, "and 4 MiB of deleted claims are kept")
			// Another team's total is separate, and what an administrator removes no longer counts.
			if left, err := p.tree.left("team-b", nil, ""); left != 0 || err != nil {
				t.Error(left, err)
			}
			os.RemoveAll(filepath.Join(top, "archived"))
			os.RemoveAll(filepath.Join(top, "team-a/data"))
			c.look()
			if _, _, err := p.Provision(context.Background(), next); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFilesThatComeBackWithTheirClaimDoNotCount(t *testing.T) {
	p, top := testProvisioner(t, "20001", "1Gi", asking("data", "", 1024))
	mustCreate(t, p.tree, "team-a/data", "pvc-0", teamA)
	fill(t, 4, top, "team-a/data/file")
	p.tree.setNumber("team-a/data", usedFile, 4*mebi)
	if _, _, err := p.Provision(context.Background(), request(adopting)); err != nil {
		t.Error(err)
	}
	other := request(nil)
	other.PVC.Name, other.PVName = "other", "pvc-2"
	claims := p.core.PersistentVolumeClaims("team-a")
	claims.Delete(context.Background(), "data", metav1.DeleteOptions{})
	claims.Create(context.Background(), asking("other", "", 1024), metav1.CreateOptions{})
	_, _, err := p.Provision(context.Background(), other)
	wantError(t, err, "4 MiB of deleted claims are kept")
}

func TestArchivesGoAfterTheirTime(t *testing.T) {
	tree, top := export(t)
	for _, name := range []string{"old", "new"} {
		mustCreate(t, tree, "team-a/"+name, "pvc-"+name, teamA)
		write(t, top, "team-a", name, "file")
		if err := tree.Remove("team-a/"+name, "pvc-"+name, onDeleteArchive, 0); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-31 * day)
	os.Chtimes(filepath.Join(top, archivesDir, "team-a-old-pvc-old"), before, before)
	c := watching(t, tree, top)
	for _, keep := range []time.Duration{0, 30 * day} { // measuring doesn't make an archive younger
		c.keepFor = keep
		c.look()
		if exists(top, "archived/team-a-old-pvc-old") != (keep == 0) || !exists(top, "archived/team-a-new-pvc-new/file") {
			t.Errorf("kept for %v: the wrong archive went or stayed", keep)
		}
	}
}
