package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

const (
	maxWord  = 128 * 1024 // Linux' MAX_ARG_STRLEN
	drainFor = 2 * time.Second
	graceFor = 20 * time.Second // for the command's children to clean up after a stop, below Kubernetes' 30
)

var forwarded = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}

// execute runs the command in a process group of its own, passes its output through, and gives its failure as an error
// with its exit code. Nothing of the group runs afterwards.
func execute(words []string) error {
	for _, word := range words {
		if len(word) >= maxWord {
			return errorf(codeData, "an argument of the command has %d bytes with the inputs filled in, Linux takes %d: pass large "+
				"values as artifacts", len(word), maxWord-1)
		}
	}
	name, err := exec.LookPath(words[0])
	if err != nil {
		return notStarted(words[0], err)
	}
	end := newEnding()
	command := exec.Command(name, words[1:]...)
	command.Args[0] = words[0]
	command.Stdin = nil
	command.Stdout, command.Stderr = io.MultiWriter(os.Stdout, end.all), io.MultiWriter(os.Stderr, end.all, end.errors)
	command.Env = os.Environ()
	if os.Getenv("PYTHONUNBUFFERED") == "" {
		command.Env = append(command.Env, "PYTHONUNBUFFERED=1") // or a step's log would come when it has ended
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = drainFor // processes left behind may hold the output open

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	if err := command.Start(); err != nil {
		return notStarted(words[0], err)
	}
	group := -command.Process.Pid
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }()

	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	var stopped os.Signal
	for {
		select {
		case got := <-signals:
			if got == syscall.SIGTERM || got == syscall.SIGINT {
				stopped = got
			}
			_ = syscall.Kill(group, got.(syscall.Signal))
		case err := <-done:
			if stopped != nil { // a shell dies at once, what it started may still be at work
				awaitGroup(command.Process.Pid, graceFor)
			}
			return verdict(err, end, stopped)
		}
	}
}

func notStarted(name string, err error) error {
	switch {
	case errors.Is(err, syscall.E2BIG):
		return errorf(codeData, "the command and its environment are larger than Linux takes: pass large values as artifacts")
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return errorf(127, "the image has no program %s", name)
	}
	return errorf(126, "%s can't be started: %v", name, err)
}

// verdict turns the end of the command into an error, nil when it ended well.
func verdict(err error, end *ending, stopped os.Signal) error {
	var exit *exec.ExitError
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if !errors.As(err, &exit) {
		return errorf(codeData, "the command's output could not be read: %v", err)
	}
	code, how := exit.ExitCode(), ""
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code, how = 128+int(status.Signal()), signalText(status.Signal())
	}
	if stopped != nil {
		how = "stopped by " + name(stopped.(syscall.Signal))
	}
	said := end.failure()
	switch {
	case how != "" && said != "":
		return errorf(code, "%s: %s", how, said)
	case how+said == "":
		return errorf(code, "the command ended with code %d and said nothing", code)
	}
	return errorf(code, "%s", how+said)
}

func signalText(got syscall.Signal) string {
	if got == syscall.SIGKILL {
		return "killed (SIGKILL), as when a process uses more memory than its limit"
	}
	return "killed by " + name(got)
}

func name(got syscall.Signal) string {
	known := map[syscall.Signal]string{
		syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGABRT: "SIGABRT",
		syscall.SIGBUS: "SIGBUS", syscall.SIGILL: "SIGILL", syscall.SIGFPE: "SIGFPE", syscall.SIGPIPE: "SIGPIPE",
	}
	if text, ok := known[got]; ok {
		return text
	}
	return fmt.Sprintf("signal %d", int(got))
}
