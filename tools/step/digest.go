package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// digest is over all files of an artifact's folder and over what else consumers see of it, but not over where it lies:
// equal content has an equal digest in every run. It also gives the size of the files.
func digest(folder string, m meta, reference bool) (string, int64, error) {
	sum := sha256.New()
	seen := map[string]any{"type": m.Type, "metadata": m.Metadata, "folder": m.Folder}
	if reference {
		seen["uri"] = m.URI
	}
	fmt.Fprintln(sum, toJSON(seen))
	var bytes int64
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		inside, _ := filepath.Rel(folder, path)
		if err != nil || entry.IsDir() || inside == metaName {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %d\n", inside, info.Size())
		size, err := io.Copy(sum, file)
		bytes += size
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), bytes, err
}

func textDigest(text string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}
