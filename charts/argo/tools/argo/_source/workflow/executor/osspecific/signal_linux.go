package osspecific

import (
	"os"
	"syscall"

	"github.com/argoproj/argo-workflows/v3/util/errors"
)

// Term is the signal by which Kubernetes asks a container to end.
var Term = syscall.SIGTERM

// CanIgnoreSignal tells signals that the kernel and Go's runtime send to this process alone.
func CanIgnoreSignal(s os.Signal) bool {
	return s == syscall.SIGCHLD || s == syscall.SIGURG
}

// Kill signals the process's whole group, or only the process if its group is unknown.
func Kill(pid int, s syscall.Signal) error {
	if group, err := syscall.Getpgid(pid); err == nil {
		return syscall.Kill(-group, s)
	}
	return syscall.Kill(pid, s)
}

// Setpgid gives a process that is about to start its own group.
func Setpgid(a *syscall.SysProcAttr) {
	a.Setpgid = true
}

// Wait returns when the process has ended, with its code as an error, and reaps every other child meanwhile. It blocks
// in the kernel: upstream looks once a second, by which each step would end up to a second late.
func Wait(process *os.Process) error {
	pid := process.Pid
	if err := process.Release(); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case ended == pid && status.Exited():
			return errors.NewExitErr(status.ExitStatus())
		case ended == pid && status.Signaled():
			return errors.NewExitErr(128 + int(status.Signal()))
		}
	}
}
