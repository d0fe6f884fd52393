package main

import "os"

// executorInput is what a command may ask about its task, in kfp's form.
type executorInput struct {
	where      place
	parameters map[string]any
	artifacts  map[string][]meta
	outputs    map[string]meta
	declared   step
	constants  map[string]string
}

func newExecutorInput(s step, where place, info runInfo) (*executorInput, error) {
	input := &executorInput{where: where, declared: s, outputs: map[string]meta{}, constants: info.constants}
	var err error
	if input.parameters, err = readParameters(s, info); err != nil {
		return nil, err
	}
	if input.artifacts, err = readArtifacts(s, where); err != nil {
		return nil, err
	}
	for name, kind := range s.Outputs.Artifacts {
		folder := where.kfp("out", name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		m := meta{Name: name, Type: kind.Type, URI: where.outputURI(name), Run: info.run, Task: s.Task}
		if m.URI != where.kfp("out", name, dataName) && !where.link(m.URI, folder) {
			return nil, errorf(codeData, "output artifact %s: %s is taken already", name, where.local(m.URI))
		}
		input.outputs[name] = m
	}
	return input, os.MkdirAll(where.kfp("outp"), 0o755)
}

// document is the executor input as kfp's executor reads it.
func (e *executorInput) document() map[string]any {
	artifacts, outputs, results := map[string]any{}, map[string]any{}, map[string]any{}
	for name, list := range e.artifacts {
		artifacts[name] = map[string]any{"artifacts": runtimes(list)}
	}
	for name, one := range e.outputs {
		outputs[name] = map[string]any{"artifacts": runtimes([]meta{one})}
	}
	for name := range e.declared.Outputs.Parameters {
		results[name] = map[string]any{"outputFile": e.where.kfp("outp", name)}
	}
	return map[string]any{
		"inputs": map[string]any{"parameterValues": e.parameters, "artifacts": artifacts},
		"outputs": map[string]any{
			"parameters": results, "artifacts": outputs, "outputFile": e.where.outputFile(),
		},
	}
}

func runtimes(list []meta) []any {
	all := []any{}
	for _, one := range list {
		all = append(all, one.runtime())
	}
	return all
}

// given says whether an input has a value; kfp's IfPresent asks.
func (e *executorInput) given(name string) bool {
	_, parameter := e.parameters[name]
	_, artifact := e.artifacts[name]
	return parameter || artifact
}
