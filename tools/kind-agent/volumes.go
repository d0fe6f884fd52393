package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
)

const (
	provisioner   = "trainyard.io/local-folder"
	askedOf       = "volume.kubernetes.io/storage-provisioner"
	selectedNode  = "volume.kubernetes.io/selected-node"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	heldBy        = "trainyard.io/node"
)

// volumes answers the claims whose pods the scheduler placed on this node. Each node does so for itself: no leader, and
// no helper pods.
type volumes struct {
	node, folder string
	api          corev1.PersistentVolumeInterface
	claims       listers.PersistentVolumeClaimLister
	made         listers.PersistentVolumeLister
}

func (v *volumes) sync(ctx context.Context) error {
	claims, err := v.claims.List(labels.Everything())
	if err != nil {
		return err
	}
	var failed []error
	for _, claim := range claims {
		if v.isAsked(claim) {
			failed = append(failed, v.provide(ctx, claim))
		}
	}
	made, err := v.made.List(labels.Everything())
	for _, volume := range made {
		if v.isDone(volume) {
			failed = append(failed, v.remove(ctx, volume))
		}
	}
	return errors.Join(append(failed, err)...)
}

func (v *volumes) isAsked(claim *v1.PersistentVolumeClaim) bool {
	return claim.Annotations[askedOf] == provisioner && claim.Annotations[selectedNode] == v.node &&
		claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil
}

func (v *volumes) isDone(volume *v1.PersistentVolume) bool {
	return volume.Annotations[provisionedBy] == provisioner && volume.Annotations[heldBy] == v.node &&
		volume.Status.Phase == v1.VolumeReleased && volume.DeletionTimestamp == nil &&
		volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete
}

func (v *volumes) provide(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	volume := v.volume(claim)
	path := volume.Spec.HostPath.Path
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	// Kubernetes sets no group on such a folder, and whoever the pod runs as has to write into it.
	if err := os.Chmod(path, 0o777); err != nil {
		return err
	}
	_, err := v.api.Create(ctx, volume, metav1.CreateOptions{})
	return utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
}

func (v *volumes) remove(ctx context.Context, volume *v1.PersistentVolume) error {
	if err := os.RemoveAll(filepath.Join(v.folder, volume.Name)); err != nil {
		return err
	}
	return utilerrors.FilterOut(v.api.Delete(ctx, volume.Name, metav1.DeleteOptions{}), apierrors.IsNotFound)
}

// volume is what a claim is answered with: bound to it from the start, and to this node.
func (v *volumes) volume(claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	name, kind := "pvc-"+string(claim.UID), v1.HostPathDirectory
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisioner, heldBy: v.node}},
		Spec: v1.PersistentVolumeSpec{
			Capacity:                      v1.ResourceList{v1.ResourceStorage: claim.Spec.Resources.Requests[v1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class,
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: v1.PersistentVolumeSource{
				HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(v.folder, name), Type: &kind},
			},
			ClaimRef: &v1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{
					{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{v.node}},
				},
			}}}},
		},
	}
}
