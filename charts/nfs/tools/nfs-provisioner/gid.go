package main

import (
	"fmt"
	"strconv"
)

// gidAnnotation on a Namespace gives the team's group. It is read from the Namespace and nowhere else: a tenant may
// write PersistentVolumeClaims, but not the Namespace, so nobody can pick another team's group.
const gidAnnotation = "trainyard.io/gid"

const maxGID = 1<<31 - 1 // the largest group a pod can be given

// chooseGID returns the group of a new volume: the namespace's, or else the class's.
func chooseGID(namespace string, annotations map[string]string, classGID string) (int, error) {
	source, text := fmt.Sprintf("annotation %s of namespace %s", gidAnnotation, namespace), annotations[gidAnnotation]
	if text == "" {
		source, text = "storage class parameter gid", classGID
	}
	if text == "" {
		return 0, fmt.Errorf("no group for the volume: annotate namespace %s with %s, or set the parameter gid of the storage class", namespace, gidAnnotation)
	}
	gid, err := strconv.Atoi(text)
	if err != nil || gid < 1 || gid > maxGID {
		return 0, fmt.Errorf("%s: %q is not a group id from 1 to %d", source, text, maxGID)
	}
	return gid, nil
}
