package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const teamA, teamB = 20001, 20002

// export is an empty directory in place of the mounted export. Groups can be given away by root only.
func export(t *testing.T) (*tree, string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: only root gives files to any group")
	}
	directory := t.TempDir()
	tree, err := openTree(directory)
	if err != nil {
		t.Fatal(err)
	}
	return tree, directory
}

func mustCreate(t *testing.T, tree *tree, directory, volume string, gid int) {
	t.Helper()
	if err := create(tree, directory, volume, gid); err != nil {
		t.Fatal(err)
	}
}

// create is for a class that takes nothing over; the claim has the directory's name, as by default.
func create(tree *tree, directory, volume string, gid int) error {
	return tree.Create(directory, holder{volume, directory}, gid, nil)
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Fatalf("error %v, want one with %q", err, part)
	}
}

func write(t *testing.T, parts ...string) string {
	t.Helper()
	name := filepath.Join(parts...)
	if err := os.WriteFile(name, []byte("data"), 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

func exists(parts ...string) bool {
	_, err := os.Lstat(filepath.Join(parts...))
	return err == nil
}

func TestCreateGivesDirectoryToTeam(t *testing.T) {
	tree, top := export(t)
	mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
	mustCreate(t, tree, "team-a/data", "pvc-1", teamA) // again, as after a lost answer
	info, _ := os.Stat(filepath.Join(top, "team-a/data"))
	if got := info.Mode(); got.Perm() != 0o770 || got&fs.ModeSetgid == 0 || groupOf(info) != teamA {
		t.Errorf("mode %v group %d, want drwxrws--- %d", got, groupOf(info), teamA)
	}
	parent, _ := os.Stat(filepath.Join(top, "team-a"))
	if parent.Mode().Perm() != 0o755 || groupOf(parent) == teamA {
		t.Errorf("parent: mode %v group %d, want 0755 and not the team's", parent.Mode(), groupOf(parent))
	}
}

func TestRemovePolicies(t *testing.T) {
	for policy, left := range map[onDelete]string{
		onDeleteArchive: ".trainyard/archives/team-a-data-pvc-1 archived/team-a-data-pvc-1/file",
		onDeleteRetain:  ".trainyard/claims/team-a/data/@volume team-a/data/file",
		onDeleteDelete:  "",
	} {
		t.Run(string(policy), func(t *testing.T) {
			tree, top := export(t)
			mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
			write(t, top, "team-a/data/file")
			for range 2 { // a repeated call changes nothing
				if err := tree.Remove("team-a/data", "pvc-1", policy, 0); err != nil {
					t.Fatal(err)
				}
			}
			var files []string
			filepath.WalkDir(top, func(name string, entry fs.DirEntry, _ error) error {
				if !entry.IsDir() {
					relative, _ := filepath.Rel(top, name)
					files = append(files, relative)
				}
				return nil
			})
			if got := strings.Join(files, " "); got != left {
				t.Errorf("files left: %q, want %q", got, left)
			}
			if policy != onDeleteRetain && exists(top, "team-a") {
				t.Error("the namespace's empty directory stayed")
			}
		})
	}
}

func TestArchiveIsClosedAndNamesNeverCollide(t *testing.T) {
	tree, top := export(t)
	for range 3 {
		mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
		write(t, top, "team-a/data/file")
		if err := tree.Remove("team-a/data", "pvc-1", onDeleteArchive, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "-2", "-3"} {
		if !exists(top, "archived/team-a-data-pvc-1"+name, "file") {
			t.Errorf("archive %q is missing", name)
		}
	}
	if info, _ := os.Stat(filepath.Join(top, "archived")); info.Mode().Perm() != 0o700 {
		t.Errorf("archive mode %v, want 0700", info.Mode())
	}
}

func TestArchiveOfLongName(t *testing.T) {
	tree, top := export(t)
	directory := strings.Repeat("n", 63) + "/" + strings.Repeat("c", 253)
	mustCreate(t, tree, directory, "pvc-0123", teamA)
	if err := tree.Remove(directory, "pvc-0123", onDeleteArchive, 0); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Join(top, "archived")); len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), "-pvc-0123") {
		t.Errorf("archive holds %v", entries)
	}
}

func TestVolumesNeverShareOrContainOneAnother(t *testing.T) {
	tree, _ := export(t)
	mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
	wantError(t, create(tree, "team-a/data", "pvc-2", teamA), "in use by volume pvc-1")
	wantError(t, create(tree, "team-a/data/inner", "pvc-2", teamA), "lies within")
	wantError(t, create(tree, "team-a", "pvc-2", teamA), "contains the volume directory team-a/data")
	mustCreate(t, tree, "team-a/data2", "pvc-2", teamA)
}

func TestRemoveLeavesAnotherVolumesDirectory(t *testing.T) {
	tree, top := export(t)
	mustCreate(t, tree, "team-a/data", "pvc-2", teamA)
	write(t, top, "team-a/data/file")
	for _, policy := range []onDelete{onDeleteArchive, onDeleteDelete, onDeleteRetain} {
		if err := tree.Remove("team-a/data", "pvc-1", policy, 0); err != nil {
			t.Fatal(err)
		}
	}
	if !exists(top, "team-a/data/file") {
		t.Error("the files of pvc-2 went with pvc-1")
	}
	wantError(t, create(tree, "team-a/data", "pvc-3", teamA), "in use by volume pvc-2")
}

func TestRetainedDirectoryGoesToTheSameGroupOnly(t *testing.T) {
	tree, top := export(t)
	mustCreate(t, tree, "team-a/data", "pvc-1", teamA)
	write(t, top, "team-a/data/file")
	tree.Remove("team-a/data", "pvc-1", onDeleteRetain, 0)
	wantError(t, create(tree, "team-a/data", "pvc-2", teamB), "belongs to group 20001, not 20002")
	mustCreate(t, tree, "team-a/data", "pvc-3", teamA)
	if !exists(top, "team-a/data/file") {
		t.Error("the retained file is gone")
	}
}

func TestLinksLeadNowhere(t *testing.T) {
	tree, top := export(t)
	outside := t.TempDir()
	mustCreate(t, tree, "team-b/data", "pvc-b", teamB)
	os.Symlink(outside, filepath.Join(top, "out"))
	os.Symlink("team-b", filepath.Join(top, "alias"))
	os.Mkdir(filepath.Join(top, "open"), 0o777)
	os.Chmod(filepath.Join(top, "open"), 0o777)
	for _, directory := range []string{"out/x", "alias/x", "open/x"} {
		wantError(t, create(tree, directory, "pvc-1", teamA), "can't hold volumes")
	}
	wantError(t, create(tree, "out", "pvc-1", teamA), "no directory")
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Error("something was made outside of the export")
	}

	// A link that a tenant left in a volume is removed, not followed.
	keep := write(t, outside, "keep")
	mustCreate(t, tree, "team-a/data", "pvc-2", teamA)
	os.Symlink(outside, filepath.Join(top, "team-a/data/link"))
	if err := tree.Remove("team-a/data", "pvc-2", onDeleteDelete, 0); err != nil || !exists(keep) {
		t.Errorf("error %v, file outside kept: %v", err, exists(keep))
	}
}

func TestFailedCreateLeavesNoClaim(t *testing.T) {
	tree, top := export(t)
	mustCreate(t, tree, "team-a/other", "pvc-0", teamA)
	file := write(t, top, "team-a/data")
	wantError(t, create(tree, "team-a/data", "pvc-1", teamA), "is no directory")
	if exists(top, claimsDir, "team-a/data") {
		t.Error("the failed volume holds its directory")
	}
	os.Remove(file)
	mustCreate(t, tree, "team-a/data", "pvc-2", teamA)
}
