package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
)

// What happens to a volume's files when its PersistentVolume is deleted.
type onDelete string

const (
	onDeleteArchive onDelete = "archive" // moved to archived/, out of every tenant's reach
	onDeleteDelete  onDelete = "delete"  // removed
	onDeleteRetain  onDelete = "retain"  // left in place, for a later claim of the same name and group
)

func parseOnDelete(text string) (onDelete, error) {
	switch policy := onDelete(text); policy {
	case "":
		return onDeleteArchive, nil
	case onDeleteArchive, onDeleteDelete, onDeleteRetain:
		return policy, nil
	}
	return "", fmt.Errorf("onDelete: %q is none of archive, delete, retain", text)
}

// The provisioner's own directories at the top of the export. Only root can enter them.
const (
	archiveDir = "archived"
	claimsDir  = ".trainyard/claims"
	trashDir   = ".trainyard/trash"
	claimFile  = "@volume" // no volume's directory can have this name: see component
)

const (
	volumeMode  = 0o770 | fs.ModeSetgid // new files get the team's group
	parentMode  = 0o755
	privateMode = 0o700
	maxName     = 255
)

// tree is the mounted export. Each volume is one directory in it. A mirror of the directories in use, below
// claimsDir, records which PersistentVolume has which, so that two volumes never share or contain one another: deleting
// one would take the other's files away. All access goes through os.Root, which can't leave the export.
type tree struct {
	mu   sync.Mutex
	root *os.Root
}

func openTree(directory string) (*tree, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("the export is not mounted at %s: %w", directory, err)
	}
	return &tree{root: root}, nil
}

// Create makes the volume's directory with mode 2770 and the given group, for the named PersistentVolume. It may be
// repeated. A directory without a holder (retain) is used again if it has the same group. One that another
// volume has is refused, unless adopt is given: then the directory is taken over for the same claim and group, once
// adopt has found that the other volume is no longer used.
func (t *tree) Create(directory string, who holder, gid int, adopt func(old holder) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := checkSubDir(directory); err != nil {
		return err
	}
	before, err := t.holder(directory)
	if err != nil {
		return err
	}
	if err := t.checkFree(directory); err != nil {
		return err
	}
	if err := t.makeParents(path.Dir(directory)); err != nil {
		return err
	}
	mine := before.volume == who.volume
	if before.volume != "" && !mine {
		if adopt == nil {
			return fmt.Errorf("directory %s is in use by volume %s: the class's subDir must give each claim its own", directory, before.volume)
		}
		if err := t.checkAdoption(directory, before, who, gid); err != nil {
			return err
		}
		if err := adopt(before); err != nil {
			return err
		}
	}
	if !mine {
		if err := t.note(directory, who); err != nil {
			return err
		}
	}
	created, err := t.makeVolume(directory, gid, mine)
	if err == nil || mine {
		return err
	}
	if created {
		t.root.Remove(directory) // empty, or it stays
	}
	if before != (holder{}) {
		t.note(directory, before)
	} else {
		t.release(directory)
	}
	return err
}

func checkGroup(directory string, info fs.FileInfo, gid int) error {
	if groupOf(info) != gid {
		return fmt.Errorf("directory %s exists and belongs to group %d, not %d: an administrator must move it away or hand it over", directory, groupOf(info), gid)
	}
	return nil
}

func (t *tree) makeVolume(directory string, gid int, mine bool) (created bool, err error) {
	info, err := t.root.Lstat(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := t.root.Mkdir(directory, privateMode); err != nil {
			return false, fmt.Errorf("cannot make directory %s: %w", directory, err)
		}
		created = true
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%s exists and is no directory", directory)
	case !mine:
		if err := checkGroup(directory, info, gid); err != nil {
			return false, err
		}
	}
	// The group first: a change of group clears the set-group-id bit.
	if err := t.root.Chown(directory, -1, gid); err != nil {
		return created, fmt.Errorf("the server does not let the provisioner give %s to group %d (does the export have no_root_squash for the nodes?): %w", directory, gid, err)
	}
	if err := t.root.Chmod(directory, volumeMode); err != nil {
		return created, fmt.Errorf("cannot set mode 2770 on %s: %w", directory, err)
	}
	return created, nil
}

// makeParents makes the directories above a volume. One that a team can write to is refused: it could hold a link to
// another team's files.
func (t *tree) makeParents(directory string) error {
	if directory == "." {
		return nil
	}
	if err := t.makeParents(path.Dir(directory)); err != nil {
		return err
	}
	info, err := t.root.Lstat(directory)
	if errors.Is(err, fs.ErrNotExist) {
		if err := t.root.Mkdir(directory, privateMode); err != nil {
			return fmt.Errorf("cannot make directory %s: %w", directory, err)
		}
		return t.root.Chmod(directory, parentMode) // whatever the umask
	}
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can't hold volumes: it must be a directory that only root can write to", directory)
	}
	return nil
}

// Remove ends a volume of so many bytes as the policy says. It may be repeated. Files are moved first and removed
// afterwards, so that a long removal blocks nothing and the next call finishes an interrupted one.
func (t *tree) Remove(directory, volume string, policy onDelete, size int64) error {
	if err := checkSubDir(directory); err != nil {
		return err
	}
	trash := path.Join(trashDir, volume)
	if err := t.moveAway(directory, volume, policy, trash, size); err != nil {
		return err
	}
	if policy != onDeleteDelete {
		return nil
	}
	if err := t.root.RemoveAll(trash); err != nil {
		return fmt.Errorf("cannot remove the files of %s: %w", directory, err)
	}
	return nil
}

func (t *tree) moveAway(directory, volume string, policy onDelete, trash string, size int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	has, err := t.holder(directory)
	if err != nil {
		return err
	}
	if has.volume != volume { // done by an earlier call, or never made
		return nil
	}
	var target string
	switch policy {
	case onDeleteRetain:
		return t.note(directory, holder{claim: has.claim})
	case onDeleteDelete:
		target, err = trash, t.makePrivate(trashDir)
	case onDeleteArchive:
		if err = t.makePrivate(archiveDir); err == nil {
			target, err = t.archiveName(directory, volume)
		}
	default:
		return fmt.Errorf("onDelete: %q is none of archive, delete, retain", policy)
	}
	if err != nil {
		return err
	}
	if policy == onDeleteArchive {
		bytes, _, err := t.number(directory, usedFile)
		if err == nil {
			err = t.noteArchive(kept{directory: target, holder: has, bytes: max(bytes, size)})
		}
		if err != nil {
			return fmt.Errorf("cannot note whose %s is: %w", target, err)
		}
	}
	if err := unlessMissing(t.root.Rename(directory, target)); err != nil {
		return fmt.Errorf("cannot move %s to %s: %w", directory, target, err)
	}
	t.removeEmpty(path.Dir(directory))
	return t.release(directory)
}

// archiveName is a free name in the archive: the directory with '-' for '/', and the volume, which is unique.
func (t *tree) archiveName(directory, volume string) (string, error) {
	flat := strings.ReplaceAll(directory, "/", "-")
	if room := maxName - len(volume) - len("--99"); len(flat) > room {
		flat = flat[:max(room, 0)]
	}
	for i := 1; i < 100; i++ {
		name := path.Join(archiveDir, flat+"-"+volume)
		if i > 1 {
			name = fmt.Sprintf("%s-%d", name, i)
		}
		_, err := t.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s holds 99 archives of %s already", archiveDir, directory)
}

// Ping checks whether the server answers, by reading the top directory.
func (t *tree) Ping() error {
	_, err := t.root.Stat(".")
	return err
}

func (t *tree) makePrivate(directory string) error {
	if err := t.root.MkdirAll(directory, privateMode); err != nil {
		return fmt.Errorf("cannot make directory %s: %w", directory, err)
	}
	return nil
}

// removeEmpty removes a directory and those above it while they are empty.
func (t *tree) removeEmpty(directory string) {
	for directory != "." && directory != claimsDir {
		if t.root.Remove(directory) != nil {
			return
		}
		directory = path.Dir(directory)
	}
}

// unlessMissing ignores errors of missing files.
func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func groupOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Gid)
	}
	return -1
}
