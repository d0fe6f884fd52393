package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// take moves a file or folder of the command's into an artifact. What lies on another file system is copied.
func take(from, to string) error {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if held, err := filepath.EvalSymlinks(to); err == nil && held == real {
		return nil
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Rename(real, to); !errors.Is(err, syscall.EXDEV) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return duplicate(real, to)
}

// duplicate copies a file, or a folder with all in it. Links become what they point to.
func duplicate(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return copyFile(from, to, info.Mode().Perm())
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		inner := filepath.Join(from, entry.Name())
		if err := noLoop(inner); err != nil {
			return err
		}
		if err := duplicate(inner, filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// withoutLinks replaces every link below a folder by what it points to: a store keeps no links.
func withoutLinks(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if err := noLoop(path); err != nil {
			return err
		}
		aside := path + ".trainyard-copy"
		if err := duplicate(path, aside); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.Rename(aside, path)
	})
}

// noLoop refuses a link that points nowhere or to a folder that it is in.
func noLoop(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return err
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return errorf(codeData, "the link %s points nowhere", path)
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	if above == target || strings.HasPrefix(above, target+"/") {
		return errorf(codeData, "the link %s points to a folder that it is in", path)
	}
	return nil
}
