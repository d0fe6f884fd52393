package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

const (
	teamLabel = "trainyard.io/team"
	// The least that a claim may be over its size: directories take room too, and a log is written to the end.
	minTolerance = 16 << 20
	day          = 24 * time.Hour
)

// watch measures the files of claims, one after the other, and stops pods that write more than a claim requests. Only
// teams' pods are ended; other claims are only measured and reported.
//
// A claim found over its size is marked, and the pods that have it are ended. A new pod can delete files; should the
// claim keep growing instead, it is closed: its directory, which belongs to root, can't be entered. Pods could still
// write to open files, so they are ended then, too. Once within its size, raised or emptied, the claim is as before.
type watch struct {
	tree      *tree
	core      corev1.CoreV1Interface
	events    record.EventRecorder
	period    time.Duration
	tolerance int64 // percent of a claim's size
	most      bounds
	keepFor   time.Duration // how long archives stay; 0: for ever
	figures   *figures
}

// run measures until the context ends, and pauses at least as long as a round took.
func (w *watch) run(ctx context.Context) {
	for {
		began := time.Now()
		if err := w.round(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "measuring claims")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(w.period, time.Since(began))):
		}
	}
}

// round measures each directory and each new archive once. A failure doesn't stop the others.
func (w *watch) round(ctx context.Context) error {
	list, err := w.core.PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	claims := byName(list.Items)
	directories, err := w.tree.directories()
	if err != nil {
		return err
	}
	teams := map[string]bool{}
	var faults []error
	var lines []string
	for _, one := range directories {
		used, fault := w.tree.measure(ctx, one.directory, w.most)
		if full := (beyond{}); fault != nil && !errors.As(fault, &full) {
			faults = append(faults, fmt.Errorf("%s: %w", one.directory, fault))
			continue
		}
		if err := w.tree.setNumber(one.directory, usedFile, used); err != nil {
			faults = append(faults, err)
		}
		claim := claims.of(one.holder)
		if claim == nil {
			lines = append(lines, figure(one, "kept", used))
			continue
		}
		lines = append(lines, figure(one, "live", used))
		if _, known := teams[claim.Namespace]; !known {
			namespace, err := w.core.Namespaces().Get(ctx, claim.Namespace, metav1.GetOptions{})
			if err != nil {
				faults = append(faults, err)
				continue
			}
			teams[claim.Namespace] = namespace.Labels[teamLabel] != ""
		}
		if err := w.judge(ctx, claim, one.directory, used, fault, teams[claim.Namespace]); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", one.directory, err))
		}
	}
	archived, err := w.tendArchives(ctx)
	w.figures.set(append(lines, archived...))
	return errors.Join(append(faults, err)...)
}

// judge compares a claim's files with its size. full is set when it couldn't be measured to its end.
func (w *watch) judge(ctx context.Context, claim *v1.PersistentVolumeClaim, directory string, used int64, full error, team bool) error {
	size := claim.Spec.Resources.Requests.Storage().Value()
	tolerance := max(size/100*w.tolerance, minTolerance)
	if !team {
		if full != nil || used > size+tolerance {
			w.events.Eventf(claim, v1.EventTypeWarning, "OverSize", "holds %s, and asks for %s", human(used), human(size))
		}
		return nil
	}
	mark, marked, err := w.tree.number(directory, overFile)
	if err != nil {
		return err
	}
	closed, err := w.tree.closed(directory)
	if err != nil {
		return err
	}
	switch {
	case full == nil && used <= size:
		if !marked {
			return nil
		}
		if err := w.tree.setClosed(directory, false); err != nil {
			return err
		}
		w.events.Eventf(claim, v1.EventTypeNormal, "WithinSize", "holds %s, which is within its %s again", human(used), human(size))
		return w.tree.dropNumber(directory, overFile)
	case full == nil && !marked && used <= size+tolerance:
		return nil
	case full == nil && !marked:
		if err := w.tree.setNumber(directory, overFile, used); err != nil {
			return err
		}
		ended, err := w.end(ctx, claim)
		w.events.Eventf(claim, v1.EventTypeWarning, "OverSize",
			"holds %s, and asks for %s: %d pods that have it were ended; delete files in a new one, or raise spec.resources.requests.storage. If it grows on, it is closed",
			human(used), human(size), ended)
		return err
	case full == nil && !closed && used <= mark+tolerance:
		return nil
	}
	if !marked {
		if err := w.tree.setNumber(directory, overFile, used); err != nil {
			return err
		}
	}
	if err := w.tree.setClosed(directory, true); err != nil {
		return err
	}
	ended, err := w.end(ctx, claim)
	if ended > 0 || !closed {
		why := fmt.Sprintf("holds %s, and asks for %s", human(used), human(size))
		if full != nil {
			why = full.Error()
		}
		w.events.Eventf(claim, v1.EventTypeWarning, "Closed",
			"%s: it is closed, and %d pods that have it were ended; raise spec.resources.requests.storage above what it holds, or have an administrator remove files",
			why, ended)
	}
	return err
}

// end deletes the pods that have a claim, and returns how many, without finished or ending ones.
func (w *watch) end(ctx context.Context, claim *v1.PersistentVolumeClaim) (int, error) {
	pods := w.core.Pods(claim.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	ended := 0
	for _, pod := range list.Items {
		over := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed || pod.DeletionTimestamp != nil
		if over || !has(&pod, claim.Name) {
			continue
		}
		guard := metav1.Preconditions{UID: &pod.UID}
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &guard}); err != nil {
			return ended, fmt.Errorf("cannot end pod %s: %w", pod.Name, err)
		}
		ended++
		w.events.Eventf(&pod, v1.EventTypeWarning, "ClaimOverSize", "ended: its claim %s holds more than it asks for, see the events of the claim", claim.Name)
	}
	return ended, nil
}

// has reports whether a pod mounts the claim, by its name or as a volume that lives with the pod.
func has(pod *v1.Pod, claim string) bool {
	for _, volume := range pod.Spec.Volumes {
		if source := volume.PersistentVolumeClaim; source != nil && source.ClaimName == claim {
			return true
		}
		if volume.Ephemeral != nil && pod.Name+"-"+volume.Name == claim {
			return true
		}
	}
	return false
}

// tendArchives measures new archives, and removes expired ones. It returns the figures of the rest.
func (w *watch) tendArchives(ctx context.Context) ([]string, error) {
	archives, err := w.tree.archives()
	if err != nil {
		return nil, err
	}
	var faults []error
	var lines []string
	for _, one := range archives {
		if w.keepFor > 0 && time.Since(one.since) > w.keepFor {
			klog.InfoS("archive removed, its time is over", "directory", one.directory, "claim", one.claim)
			faults = append(faults, w.tree.expire(one))
			continue
		}
		if !one.measured {
			used, err := w.tree.measure(ctx, one.directory, w.most)
			if full := (beyond{}); err == nil {
				one.bytes, one.measured = used, true
				faults = append(faults, w.tree.noteArchive(one))
			} else if !errors.As(err, &full) { // beyond its bounds, the number recorded at its end stays
				faults = append(faults, err)
			}
		}
		lines = append(lines, figure(one, "kept", one.bytes))
	}
	return lines, errors.Join(faults...)
}
