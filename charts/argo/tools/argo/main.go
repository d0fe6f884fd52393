// argoexec is Argo's executor with one addition: the container "init" of a step also brings trainyard-step and kfp's
// runtime, which are next to this program in the image, to where the step's own container finds them. See tools/step.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/argoproj/argo-workflows/v3/cmd/argoexec/commands"
	"github.com/argoproj/argo-workflows/v3/util"
	argoerrors "github.com/argoproj/argo-workflows/v3/util/errors"
	"github.com/argoproj/argo-workflows/v3/workflow/common"
)

// A wheel is a zip file, from which every Python imports.
var brought = []string{"trainyard-step", "kfp.whl"}

// What Argo's controller understands as "the executor failed", and as "killed".
const (
	failed = 64
	killed = 137
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if slices.Contains(os.Args[1:], "init") {
		for _, name := range brought {
			if err := bring(name, common.VarRunArgoPath); err != nil {
				end(err)
			}
		}
	}
	if err := commands.NewRootCommand().ExecuteContext(ctx); err != nil {
		end(err)
	}
}

// bring copies a file next to this program into a folder, where every user may run it.
func bring(name, folder string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(filepath.Join(filepath.Dir(self), name))
	if err != nil {
		return fmt.Errorf("the executor's image lacks %s: %w", name, err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return err
	}
	if err := to.Chmod(0o755); err != nil { // whatever the umask took away
		to.Close()
		return err
	}
	return to.Close()
}

// end exits with the code of the step's own program, or with the executor's own error as the pod's message.
func end(err error) {
	var exited argoerrors.Exited
	if errors.As(err, &exited) {
		if code := exited.ExitCode(); code >= 0 {
			os.Exit(code)
		}
		os.Exit(killed)
	}
	util.WriteTerminateMessage(err.Error())
	fmt.Fprintln(os.Stderr, err)
	os.Exit(failed)
}
