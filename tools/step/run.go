package main

import (
	"errors"
	"os"
	"path/filepath"
)

// runStep is the life of a step: inputs, command, outputs, lineage.
func runStep(where place, words []string) error {
	s, err := readStep()
	if err != nil {
		return err
	}
	return s.told(where, func(input *executorInput) (results, error) { return work(input, words) })
}

// told does a step's work and writes its lineage, whatever came of it.
func (s step) told(where place, work func(*executorInput) (results, error)) error {
	info := readRunInfo(s, where)
	input, err := newExecutorInput(s, where, info)
	var made results
	if err == nil {
		made, err = work(input)
	}
	return errors.Join(err, writeLineage(where, lineage(s, info, input, made, err)))
}

func work(input *executorInput, words []string) (results, error) {
	command, err := input.command(words)
	if err != nil {
		return results{}, err
	}
	if len(command) == 0 {
		return results{}, errorf(codeData, "nothing is left of the command once its placeholders are filled in")
	}
	if err := os.MkdirAll(filepath.Dir(input.where.outputFile()), 0o755); err != nil {
		return results{}, err
	}
	if err := execute(command); err != nil {
		return results{}, err
	}
	return collectOutputs(input)
}
