package main

import (
	"fmt"
	"regexp"
	"strings"
)

// defaultSubDir is the place of a volume within the export when the class names none.
const defaultSubDir = "${pvc.metadata.namespace}/${pvc.metadata.name}"

// A component may not start with a dot: that excludes "..", and keeps the provisioner's own directory out of reach.
var (
	component   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)
	placeholder = regexp.MustCompile(`\$\{[^}]*\}`)
)

// volumeNames are the names that a pattern may use.
type volumeNames struct {
	namespace, claim, volume string
}

// expandSubDir fills a class's subDir pattern and returns the directory relative to the export: clean, never
// absolute, never leading outside.
func expandSubDir(pattern string, names volumeNames) (string, error) {
	if pattern == "" {
		pattern = defaultSubDir
	}
	values := map[string]string{
		"${pvc.metadata.namespace}": names.namespace,
		"${pvc.metadata.name}":      names.claim,
		"${pv.metadata.name}":       names.volume,
	}
	var unknown string
	directory := placeholder.ReplaceAllStringFunc(pattern, func(found string) string {
		value, ok := values[found]
		if !ok {
			unknown = found
		}
		return value
	})
	if unknown != "" {
		return "", fmt.Errorf("storage class parameter subDir: %s is not known; use ${pvc.metadata.namespace}, ${pvc.metadata.name} or ${pv.metadata.name}", unknown)
	}
	if err := checkSubDir(directory); err != nil {
		return "", fmt.Errorf("storage class parameter subDir %q: %w", pattern, err)
	}
	return directory, nil
}

// checkSubDir accepts a relative path of plain names only.
func checkSubDir(directory string) error {
	parts := strings.Split(directory, "/")
	for _, part := range parts {
		if !component.MatchString(part) {
			return fmt.Errorf("%q is not a directory name that may be used (letters, digits, '.', '_', '-', not starting with a dot)", part)
		}
	}
	if parts[0] == archiveDir {
		return fmt.Errorf("%q at the top is reserved for archived volumes", archiveDir)
	}
	return nil
}
