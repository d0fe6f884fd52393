package main

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// holder is the owner of a directory: a PersistentVolume, and the claim (namespace/name) that it was made for. One
// without a volume was left in place when its volume ended (retain).
type holder struct {
	volume, claim string
}

// holder returns the owner of a directory; its volume is "" when there is none.
func (t *tree) holder(directory string) (holder, error) {
	content, err := t.root.ReadFile(path.Join(claimsDir, directory, claimFile))
	volume, claim, _ := strings.Cut(strings.TrimRight(string(content), "\n"), "\n")
	return holder{volume, claim}, unlessMissing(err)
}

// checkFree refuses a directory that lies within another volume's, or contains one.
func (t *tree) checkFree(directory string) error {
	for above := path.Dir(directory); above != "."; above = path.Dir(above) {
		found, err := t.holder(above)
		if err != nil {
			return err
		}
		if found.volume != "" {
			return fmt.Errorf("directory %s lies within that of volume %s", directory, found.volume)
		}
	}
	inner, err := fs.ReadDir(t.root.FS(), path.Join(claimsDir, directory))
	if unlessMissing(err) != nil {
		return err
	}
	for _, entry := range inner {
		if entry.IsDir() {
			return fmt.Errorf("directory %s contains the volume directory %s", directory, path.Join(directory, entry.Name()))
		}
	}
	return nil
}

// checkAdoption refuses to hand a directory to another claim than the one it was made for, or to another group: a
// namespace of the same name may belong to other people by now.
func (t *tree) checkAdoption(directory string, old, new holder, gid int) error {
	if old.claim != new.claim {
		made := "an unknown claim"
		if old.claim != "" {
			made = "the claim " + old.claim
		}
		return fmt.Errorf("directory %s was made for %s (volume %s), not for %s: it is not taken over", directory, made, old.volume, new.claim)
	}
	info, err := t.root.Lstat(directory)
	if err != nil {
		return unlessMissing(err)
	}
	return checkGroup(directory, info, gid)
}

// note records the owner of a directory, atomically.
func (t *tree) note(directory string, who holder) error {
	place := path.Join(claimsDir, directory)
	if err := t.makePrivate(place); err != nil {
		return err
	}
	file, fresh := path.Join(place, claimFile), path.Join(place, claimFile+".new")
	err := t.root.WriteFile(fresh, []byte(who.volume+"\n"+who.claim+"\n"), 0o600)
	if err == nil {
		err = t.root.Rename(fresh, file)
	}
	if err != nil {
		return fmt.Errorf("cannot note that volume %s has %s: %w", who.volume, directory, err)
	}
	return nil
}

func (t *tree) release(directory string) error {
	place := path.Join(claimsDir, directory)
	for _, file := range []string{usedFile, overFile, claimFile} {
		if err := unlessMissing(t.root.Remove(path.Join(place, file))); err != nil {
			return fmt.Errorf("cannot release %s: %w", directory, err)
		}
	}
	t.removeEmpty(place)
	return nil
}
