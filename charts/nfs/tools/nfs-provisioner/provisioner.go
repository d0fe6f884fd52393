package main

import (
	"context"
	"fmt"
	"path"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Annotations of the PersistentVolumes made here. What to do on deletion is kept with the volume, because its class
// may be gone or changed by then.
const (
	subDirAnnotation   = "trainyard.io/nfs-subdir"
	onDeleteAnnotation = "trainyard.io/nfs-on-delete"
	podGIDAnnotation   = "pv.beta.kubernetes.io/gid" // kubelet gives pods this supplementary group
)

// The parameters that a class may have; a misspelt one is refused, else "ondelete: retain" would archive.
var knownParameters = map[string]bool{"subDir": true, "onDelete": true, "gid": true, "existing": true}

// parseExisting reads the class's parameter existing: may a new claim have the directory of an earlier claim of the
// same name whose volume is released?
func parseExisting(text string) (adopt bool, err error) {
	switch text {
	case "", "refuse":
		return false, nil
	case "adopt":
		return true, nil
	}
	return false, fmt.Errorf("existing: %q is none of adopt, refuse", text)
}

// provisioner makes `nfs:` PersistentVolumes as directories of one export.
type provisioner struct {
	tree   *tree
	core   corev1.CoreV1Interface // queried anew for each volume
	name   string                 // as storage classes give it
	server string                 // as written into the volumes: kubelet mounts it, without the cluster's DNS
	export string
}

// Provision makes the volume of one claim. Its errors become events of the claim.
func (p *provisioner) Provision(ctx context.Context, options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	volume, err := p.provision(ctx, options)
	return volume, controller.ProvisioningFinished, err
}

func (p *provisioner) provision(ctx context.Context, options controller.ProvisionOptions) (*v1.PersistentVolume, error) {
	claim, class := options.PVC, options.StorageClass
	for name := range class.Parameters {
		if !knownParameters[name] {
			return nil, fmt.Errorf("storage class %s: parameter %s is not known (subDir, onDelete, gid, existing)", class.Name, name)
		}
	}
	if claim.Spec.Selector != nil {
		return nil, fmt.Errorf("claim %s: a selector can't be used with volumes made on demand", claim.Name)
	}
	policy, err := parseOnDelete(class.Parameters["onDelete"])
	if err != nil {
		return nil, fmt.Errorf("storage class %s: parameter %w", class.Name, err)
	}
	adopts, err := parseExisting(class.Parameters["existing"])
	if err != nil {
		return nil, fmt.Errorf("storage class %s: parameter %w", class.Name, err)
	}
	directory, err := expandSubDir(class.Parameters["subDir"], volumeNames{claim.Namespace, claim.Name, options.PVName})
	if err != nil {
		return nil, err
	}
	namespace, err := p.core.Namespaces().Get(ctx, claim.Namespace, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read namespace %s: %w", claim.Namespace, err)
	}
	gid, err := chooseGID(claim.Namespace, namespace.Annotations, class.Parameters["gid"])
	if err != nil {
		return nil, err
	}
	if err := p.checkRoom(ctx, claim, directory, namespace.Annotations[storageAnnotation]); err != nil {
		return nil, err
	}
	source := v1.NFSVolumeSource{Server: p.server, Path: path.Join(p.export, directory)}
	var adopt func(holder) error
	if adopts {
		adopt = func(old holder) error { return p.retire(ctx, source, old) }
	}
	who := holder{volume: options.PVName, claim: claim.Namespace + "/" + claim.Name}
	if err := p.tree.Create(directory, who, gid, adopt); err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("volume made", "volume", options.PVName, "directory", directory, "gid", gid, "onDelete", policy)

	reclaim := v1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: options.PVName,
			Annotations: map[string]string{
				subDirAnnotation:   directory,
				onDeleteAnnotation: string(policy),
				podGIDAnnotation:   strconv.Itoa(gid),
			},
		},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: reclaim,
			AccessModes:                   claim.Spec.AccessModes,
			MountOptions:                  class.MountOptions,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: claim.Spec.Resources.Requests[v1.ResourceStorage]},
			PersistentVolumeSource:        v1.PersistentVolumeSource{NFS: &source},
		},
	}, nil
}

// Delete ends a volume. Its errors become events of the PersistentVolume. A volume that was not made here, or whose
// annotations and source disagree, is left alone.
func (p *provisioner) Delete(ctx context.Context, volume *v1.PersistentVolume) error {
	directory := volume.Annotations[subDirAnnotation]
	source := volume.Spec.NFS
	if checkSubDir(directory) != nil || source == nil || source.Server != p.server || source.Path != path.Join(p.export, directory) {
		return &controller.IgnoredError{Reason: fmt.Sprintf("volume %s is not a directory of %s:%s made by this provisioner", volume.Name, p.server, p.export)}
	}
	policy, err := parseOnDelete(volume.Annotations[onDeleteAnnotation])
	if err != nil {
		return fmt.Errorf("annotation %s: %w", onDeleteAnnotation, err)
	}
	if err := p.tree.Remove(directory, volume.Name, policy, volume.Spec.Capacity.Storage().Value()); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("volume ended", "volume", volume.Name, "directory", directory, "onDelete", policy)
	return nil
}
