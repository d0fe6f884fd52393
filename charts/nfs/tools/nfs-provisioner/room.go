package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// storageAnnotation on a Namespace is the most that the team's claims may request together, including what is kept of
// deleted ones. Like the group it is read from the Namespace alone.
const storageAnnotation = "trainyard.io/storage"

// checkRoom refuses a volume for a team whose claims and kept files are more than its total together: a deleted claim gives
// its part of Kubernetes' quota back, and its files stay. The files of the directory itself come back with the claim.
func (p *provisioner) checkRoom(ctx context.Context, claim *v1.PersistentVolumeClaim, directory, most string) error {
	if most == "" {
		return nil
	}
	total, err := resource.ParseQuantity(most)
	if err != nil {
		return fmt.Errorf("annotation %s of namespace %s: %q is no amount", storageAnnotation, claim.Namespace, most)
	}
	claims, err := p.core.PersistentVolumeClaims(claim.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot see the claims of namespace %s: %w", claim.Namespace, err)
	}
	left, err := p.tree.left(claim.Namespace, claims.Items, directory)
	if err != nil {
		return fmt.Errorf("cannot see what is kept for namespace %s: %w", claim.Namespace, err)
	}
	var asked int64
	for _, one := range claims.Items {
		asked += one.Spec.Resources.Requests.Storage().Value()
	}
	if left > 0 && asked+left > total.Value() {
		return fmt.Errorf("claims of %s ask for %s and %s of deleted claims are kept, more than its %s together: delete claims, or have an administrator remove what is kept",
			claim.Namespace, human(asked), human(left), total.String())
	}
	return nil
}

// left returns the bytes that the export keeps of a namespace's deleted claims, except for one directory.
func (t *tree) left(namespace string, claims []v1.PersistentVolumeClaim, but string) (int64, error) {
	directories, err := t.directories()
	if err != nil {
		return 0, err
	}
	archives, err := t.archives()
	if err != nil {
		return 0, err
	}
	live := byName(claims)
	var bytes int64
	for _, one := range directories {
		if one.namespace() == namespace && one.directory != but && live.of(one.holder) == nil {
			bytes += one.bytes
		}
	}
	for _, one := range archives {
		if one.namespace() == namespace {
			bytes += one.bytes
		}
	}
	return bytes, nil
}

// claimsByName maps namespace/name to claims.
type claimsByName map[string]*v1.PersistentVolumeClaim

func byName(claims []v1.PersistentVolumeClaim) claimsByName {
	found := claimsByName{}
	for i := range claims {
		found[claims[i].Namespace+"/"+claims[i].Name] = &claims[i]
	}
	return found
}

// of returns the claim that uses a directory: the one that it was made for, if it has the same volume, or is about to.
func (c claimsByName) of(who holder) *v1.PersistentVolumeClaim {
	claim := c[who.claim]
	if claim == nil || who.volume == "" || (claim.Spec.VolumeName != who.volume && volumeOf(claim.UID) != who.volume) {
		return nil
	}
	return claim
}

// volumeOf is the name that the controller library gives to a claim's volume.
func volumeOf(claim types.UID) string { return "pvc-" + string(claim) }

// human formats bytes for people.
func human(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
