package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// readArtifacts gives the artifacts of every input; an optional one that was not given is not in it.
func readArtifacts(s step, where place) (map[string][]meta, error) {
	found := map[string][]meta{}
	for _, name := range sortedNames(s.Inputs.Artifacts) {
		kind, folder := s.Inputs.Artifacts[name], where.kfp("in", name)
		if !exists(folder) {
			// Argo lets an artifact that is gone pass like one that was never given.
			if at := where.source(name); at != "" {
				return nil, errorf(codeData, "input artifact %s is not in the store any more: %s; run once without cache", name, at)
			}
			if kind.Optional {
				continue
			}
			return nil, errorf(codeData, "input artifact %s was not given", name)
		}
		folders := []string{folder}
		if kind.List {
			folders = elementFolders(folder)
		}
		found[name] = []meta{}
		for _, one := range folders {
			m, err := inputArtifact(name, kind, one, where)
			if err != nil {
				return nil, err
			}
			found[name] = append(found[name], m)
		}
	}
	return found, nil
}

// elementFolders are 0, 1, 2, … in this order.
func elementFolders(folder string) []string {
	entries, _ := os.ReadDir(folder)
	var indexes []int
	for _, entry := range entries {
		if index, err := strconv.Atoi(entry.Name()); err == nil {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	var folders []string
	for _, index := range indexes {
		folders = append(folders, filepath.Join(folder, strconv.Itoa(index)))
	}
	return folders
}

func inputArtifact(name string, kind artifact, folder string, where place) (meta, error) {
	m, err := readMeta(folder)
	if err != nil {
		return m, errorf(codeData, "input artifact %s has no readable %s: %v", name, metaName, err)
	}
	m.Name = name
	if m.Type == "" {
		m.Type = kind.Type
	}
	data := filepath.Join(folder, dataName)
	if m.Folder && !exists(data) {
		if err := os.MkdirAll(data, 0o755); err != nil {
			return m, err
		}
	}
	if !exists(data) && where.local(m.URI) == "" {
		return m, nil // a reference to something elsewhere
	}
	if !where.link(m.URI, folder) {
		m.URI = data
	}
	return m, nil
}
