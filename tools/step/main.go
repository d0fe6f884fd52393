// trainyard-step runs one step of a pipeline inside the pod that Argo made for it. README.md is its contract.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

const usage = "usage: trainyard-step run -- COMMAND [ARG…] | run --json '[\"COMMAND\",…]' | collect | import"

func main() {
	err := dispatch(os.Args[1:], newPlace(os.Getenv("TRAINYARD_ROOT")))
	code := 0
	if err != nil {
		fmt.Fprintln(os.Stderr, "trainyard-step:", err)
		code = exitCode(err)
	}
	os.Exit(code)
}

// dispatch runs one subcommand and leaves its error where the node's message is taken from.
func dispatch(arguments []string, where place) error {
	work, err := subcommand(arguments)
	if err == nil {
		err = work(where)
	}
	if err != nil {
		where.sayEnd(err.Error())
	}
	return err
}

func subcommand(arguments []string) (func(place) error, error) {
	if len(arguments) == 0 {
		return nil, errorf(codeUsage, usage)
	}
	switch rest := arguments[1:]; arguments[0] {
	case "run":
		command, err := commandLine(rest)
		return func(where place) error { return runStep(where, command) }, err
	case "collect":
		return collect, noMore(rest)
	case "import":
		return importArtifact, noMore(rest)
	}
	return nil, errorf(codeUsage, "unknown subcommand %q; %s", arguments[0], usage)
}

func noMore(rest []string) error {
	if len(rest) > 0 {
		return errorf(codeUsage, "unexpected argument %q; %s", rest[0], usage)
	}
	return nil
}

// commandLine reads the component's command: as arguments after --, or as one JSON list after --json.
func commandLine(rest []string) ([]string, error) {
	if len(rest) >= 2 && rest[0] == "--" {
		return rest[1:], nil
	}
	if len(rest) == 2 && rest[0] == "--json" {
		var command []string
		if err := json.Unmarshal([]byte(rest[1]), &command); err != nil || len(command) == 0 {
			return nil, errorf(codeUsage, "--json wants a list of strings that is not empty; %s", usage)
		}
		return command, nil
	}
	return nil, errorf(codeUsage, "run needs a command; %s", usage)
}
