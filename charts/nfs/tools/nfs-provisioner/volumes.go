package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
)

const (
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by" // set by the controller library
	staticLabel             = "trainyard.io/static-volume"      // volumes that the chart makes for one claim each
	tendPeriod              = 5 * time.Second
)

// retire deletes the released PersistentVolumes of a directory that its claim requests again. It refuses as long as
// one is in use. Their files stay: the reclaim policy of a volume that can be Released and kept is Retain. Static volumes
// on the same directory are readers by design and don't count.
func (p *provisioner) retire(ctx context.Context, source v1.NFSVolumeSource, old holder) error {
	volumes := p.core.PersistentVolumes()
	list, err := volumes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot see whether volume %s is still used: %w", old.volume, err)
	}
	var released []v1.PersistentVolume
	for _, volume := range list.Items {
		nfs := volume.Spec.NFS
		same := nfs != nil && nfs.Server == source.Server && nfs.Path == source.Path && volume.Annotations[provisionedByAnnotation] == p.name
		if !same && volume.Name != old.volume {
			continue
		}
		claim := volume.Spec.ClaimRef
		if volume.Status.Phase != v1.VolumeReleased || claim == nil || claim.Namespace+"/"+claim.Name != old.claim {
			return fmt.Errorf("the directory of claim %s is in use by volume %s, which is %s", old.claim, volume.Name, volume.Status.Phase)
		}
		if volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimRetain {
			return fmt.Errorf("the directory of claim %s belongs to volume %s, which is about to be reclaimed (%s)", old.claim, volume.Name, volume.Spec.PersistentVolumeReclaimPolicy)
		}
		released = append(released, volume)
	}
	for _, volume := range released {
		if err := removeReleased(ctx, volumes, volume); err != nil {
			return err
		}
	}
	return nil
}

// removeReleased deletes a volume that keeps its files, only if unchanged: it may have been made available again.
func removeReleased(ctx context.Context, volumes corev1.PersistentVolumeInterface, volume v1.PersistentVolume) error {
	guard := metav1.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion}
	if err := volumes.Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: &guard}); err != nil && !errors.IsNotFound(err) {
		return fmt.Errorf("cannot remove the released volume %s: %w", volume.Name, err)
	}
	klog.FromContext(ctx).Info("released volume removed, its files stay", "volume", volume.Name, "claim", volume.Spec.ClaimRef.Namespace+"/"+volume.Spec.ClaimRef.Name)
	return nil
}

// tend looks after static volumes whose claim is gone. Where the claim's namespace is gone too, the team is, and the
// volume is deleted; its files stay. Else the volume is made usable again: it remembers the identity of its claim, which
// a new claim of the same name doesn't have. Namespace and name of the claim stay, so nobody else gets the volume.
func tend(ctx context.Context, core corev1.CoreV1Interface) error {
	volumes := core.PersistentVolumes()
	list, err := volumes.List(ctx, metav1.ListOptions{LabelSelector: staticLabel})
	if err != nil {
		return err
	}
	for _, volume := range list.Items {
		claim := volume.Spec.ClaimRef
		if volume.Status.Phase != v1.VolumeReleased || claim == nil || volume.DeletionTimestamp != nil {
			continue
		}
		namespace, err := core.Namespaces().Get(ctx, claim.Namespace, metav1.GetOptions{})
		if err != nil && !errors.IsNotFound(err) {
			return err
		}
		if err != nil || namespace.DeletionTimestamp != nil {
			if err := removeReleased(ctx, volumes, volume); err != nil {
				return err
			}
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`, volume.ResourceVersion)
		if _, err := volumes.Patch(ctx, volume.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("volume %s: %w", volume.Name, err)
		}
		klog.InfoS("static volume can be bound again", "volume", volume.Name, "claim", claim.Namespace+"/"+claim.Name)
	}
	return nil
}

// tendStatic looks after static volumes until the context ends.
func tendStatic(ctx context.Context, core corev1.CoreV1Interface) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := tend(ctx, core); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "static volumes")
		}
	}, tendPeriod)
}
