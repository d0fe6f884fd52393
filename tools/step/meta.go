package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// meta is meta.json: what is known of one artifact beside its bytes.
type meta struct {
	Name     string         `json:"name"`
	Type     string         `json:"type"`
	URI      string         `json:"uri"`
	Metadata map[string]any `json:"metadata"`
	SHA256   string         `json:"sha256"`
	Bytes    int64          `json:"bytes"`
	Folder   bool           `json:"folder"` // an empty folder is not kept by a store
	Run      string         `json:"run"`    // who made it
	Task     string         `json:"task"`
}

func readMeta(folder string) (meta, error) {
	var m meta
	text, err := os.ReadFile(filepath.Join(folder, metaName))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

func (m meta) write(folder string) error {
	return os.WriteFile(filepath.Join(folder, metaName), []byte(toJSON(m)), 0o644)
}

// runtime is the artifact as kfp's executor input has it.
func (m meta) runtime() map[string]any {
	metadata := m.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return map[string]any{
		"name": m.Name, "uri": m.URI, "metadata": metadata, "type": map[string]any{"schemaTitle": m.Type},
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
