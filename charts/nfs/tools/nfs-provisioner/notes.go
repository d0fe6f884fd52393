package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Files next to the note of a directory's holder: see claimsDir. Tenants can't reach them.
const (
	usedFile = "@used" // bytes measured last
	overFile = "@over" // bytes held when the directory was found to be over its size
	// Each archive's owner: a file of its name with volume, claim and bytes, and a fourth line once they are measured.
	archivesDir = ".trainyard/archives"
)

// kept is a directory that outlives its claim, or may: its path, its owner, and its size.
type kept struct {
	directory string
	holder
	bytes    int64
	measured bool
	since    time.Time
}

func (k kept) namespace() string {
	namespace, _, _ := strings.Cut(k.claim, "/")
	return namespace
}

// directories returns those that have a holder, or had one and were left in place.
func (t *tree) directories() ([]kept, error) {
	var found []kept
	err := fs.WalkDir(t.root.FS(), claimsDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != claimFile {
			return unlessMissing(err) // none yet, or released meanwhile
		}
		directory := strings.TrimPrefix(path.Dir(name), claimsDir+"/")
		has, err := t.holder(directory)
		if err != nil || has == (holder{}) {
			return err
		}
		bytes, measured, err := t.number(directory, usedFile)
		found = append(found, kept{directory: directory, holder: has, bytes: bytes, measured: measured})
		return err
	})
	return found, err
}

// archives returns the directories of ended volumes in archiveDir. Those whose files are gone are forgotten.
func (t *tree) archives() ([]kept, error) {
	entries, err := fs.ReadDir(t.root.FS(), archivesDir)
	if err != nil {
		return nil, unlessMissing(err)
	}
	var found []kept
	for _, entry := range entries {
		directory, note := path.Join(archiveDir, entry.Name()), path.Join(archivesDir, entry.Name())
		if _, err := t.root.Lstat(directory); errors.Is(err, fs.ErrNotExist) {
			t.forget(directory, note)
			continue
		}
		content, err := t.root.ReadFile(note)
		if err != nil {
			return nil, err
		}
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		lines := append(strings.Split(strings.TrimSpace(string(content)), "\n"), "", "", "")
		bytes, _ := strconv.ParseInt(lines[2], 10, 64)
		found = append(found, kept{directory, holder{lines[0], lines[1]}, bytes, lines[3] != "", info.ModTime()})
	}
	return found, nil
}

// forget removes the note of a missing archive, unless it is being made.
func (t *tree) forget(directory, note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.root.Lstat(directory); errors.Is(err, fs.ErrNotExist) {
		t.root.Remove(note)
	}
}

// noteArchive records the owner of an archive; its time, from which it is kept, stays when it is written again.
func (t *tree) noteArchive(archive kept) error {
	if err := t.makePrivate(archivesDir); err != nil {
		return err
	}
	text := fmt.Sprintf("%s\n%s\n%d\n", archive.volume, archive.claim, archive.bytes)
	if archive.measured {
		text += "measured\n"
	}
	name := path.Join(archivesDir, path.Base(archive.directory))
	if err := t.root.WriteFile(name, []byte(text), 0o600); err != nil || archive.since.IsZero() {
		return err
	}
	return t.root.Chtimes(name, archive.since, archive.since)
}

// expire removes an archive for good.
func (t *tree) expire(archive kept) error {
	trash := path.Join(trashDir, path.Base(archive.directory))
	if err := t.makePrivate(trashDir); err != nil {
		return err
	}
	if err := unlessMissing(t.root.Rename(archive.directory, trash)); err != nil {
		return fmt.Errorf("cannot remove %s: %w", archive.directory, err)
	}
	return t.root.RemoveAll(trash)
}

// number reads a recorded number of a directory; false when there is none.
func (t *tree) number(directory, file string) (int64, bool, error) {
	content, err := t.root.ReadFile(path.Join(claimsDir, directory, file))
	number, half := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	return number, half == nil, unlessMissing(err) // half a number is none
}

// setNumber records a number of a directory, only if that has a holder.
func (t *tree) setNumber(directory, file string, number int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if has, err := t.holder(directory); err != nil || has == (holder{}) {
		return err
	}
	return t.root.WriteFile(path.Join(claimsDir, directory, file), []byte(strconv.FormatInt(number, 10)+"\n"), 0o600)
}

func (t *tree) dropNumber(directory, file string) error {
	return unlessMissing(t.root.Remove(path.Join(claimsDir, directory, file)))
}

// closed reports whether only root can enter a directory.
func (t *tree) closed(directory string) (bool, error) {
	info, err := t.root.Lstat(directory)
	return err == nil && info.Mode().Perm()&0o077 == 0, unlessMissing(err)
}

func (t *tree) setClosed(directory string, closed bool) error {
	mode := os.FileMode(volumeMode)
	if closed {
		mode = privateMode
	}
	return t.root.Chmod(directory, mode)
}
