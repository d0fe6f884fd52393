package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// owner names the PersistentVolume that has a directory, or "" when none has.
func (t *tree) owner(directory string) (string, error) {
	content, err := t.root.ReadFile(path.Join(claimsDir, directory, claimFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(content)), err
}

// checkFree refuses a directory that is another volume's, lies within one, or contains one. It returns true when the
// directory is this volume's already.
func (t *tree) checkFree(directory, volume string) (mine bool, err error) {
	owner, err := t.owner(directory)
	if err != nil || owner == volume {
		return err == nil, err
	}
	if owner != "" {
		return false, fmt.Errorf("directory %s is in use by volume %s: the class's subDir must give each claim its own", directory, owner)
	}
	for above := path.Dir(directory); above != "."; above = path.Dir(above) {
		owner, err := t.owner(above)
		if err != nil {
			return false, err
		}
		if owner != "" {
			return false, fmt.Errorf("directory %s lies within that of volume %s", directory, owner)
		}
	}
	inner, err := fs.ReadDir(t.root.FS(), path.Join(claimsDir, directory))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if len(inner) > 0 {
		return false, fmt.Errorf("directory %s contains the volume directory %s", directory, path.Join(directory, inner[0].Name()))
	}
	return false, nil
}

func (t *tree) claim(directory, volume string) error {
	place := path.Join(claimsDir, directory)
	if err := t.makePrivate(place); err != nil {
		return err
	}
	if err := t.root.WriteFile(path.Join(place, claimFile), []byte(volume+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot note that volume %s has %s: %w", volume, directory, err)
	}
	return nil
}

func (t *tree) release(directory string) error {
	place := path.Join(claimsDir, directory)
	if err := t.root.Remove(path.Join(place, claimFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot release %s: %w", directory, err)
	}
	t.removeEmpty(place)
	return nil
}
