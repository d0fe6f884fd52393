package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// executorOutput is the file that kfp's executor leaves.
type executorOutput struct {
	ParameterValues map[string]json.RawMessage `json:"parameterValues"`
	Artifacts       map[string]struct {
		Artifacts []struct {
			Name       string         `json:"name"`
			URI        string         `json:"uri"`
			Metadata   map[string]any `json:"metadata"`
			CustomPath string         `json:"custom_path"`
		} `json:"artifacts"`
	} `json:"artifacts"`
}

// results are what the step made, as it is written into the lineage.
type results struct {
	parameters map[string]any
	artifacts  []meta
}

// collectOutputs reads all that the command left and writes what Argo collects.
func collectOutputs(input *executorInput) (results, error) {
	made := results{parameters: map[string]any{}}
	var left executorOutput
	text, err := os.ReadFile(input.where.outputFile())
	if err == nil {
		err = json.Unmarshal(text, &left)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return made, errorf(codeData, "the executor's output file can't be read: %v", err)
	}
	for _, name := range sortedNames(input.declared.Outputs.Parameters) {
		value, err := outputParameter(input, left, name)
		if err != nil {
			return made, err
		}
		made.parameters[name] = value
	}
	for _, name := range sortedNames(input.outputs) {
		m, err := outputArtifact(input, left, name)
		if err != nil {
			return made, err
		}
		made.artifacts = append(made.artifacts, m)
	}
	return made, nil
}

func outputParameter(input *executorInput, left executorOutput, name string) (any, error) {
	kind, file := input.declared.Outputs.Parameters[name], input.where.kfp("outp", name)
	var value any
	var err error
	if raw, ok := left.ParameterValues[name]; ok {
		if value, err = fromJSON(string(raw)); err == nil {
			value, err = checkedOutput(kind, value)
		}
	} else {
		text, failure := os.ReadFile(file)
		if failure != nil {
			return nil, errorf(codeData, "output parameter %s was not written", name)
		}
		value, err = outputValue(kind, string(text))
	}
	if err != nil {
		return nil, errorf(codeData, "output parameter %s is not a %s: %v", name, kind.Type, err)
	}
	exact, text := toJSON(value), asText(value)
	if len(exact) > maxOutput {
		return nil, errorf(codeData, "output parameter %s has %d bytes, a parameter may have %d: write it as an artifact", name, len(exact), maxOutput)
	}
	if strings.HasSuffix(text, "\n") {
		text += "\n" // Argo takes one away
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return value, os.WriteFile(input.where.kfp("outp", ".json-"+name), []byte(exact), 0o644)
}

func outputArtifact(input *executorInput, left executorOutput, name string) (meta, error) {
	m, folder := input.outputs[name], input.where.kfp("out", name)
	data, reference := input.where.kfp("out", name, dataName), false
	if said := left.Artifacts[name].Artifacts; len(said) > 0 {
		m.Metadata = said[0].Metadata
		moved, uri := said[0].CustomPath, said[0].URI
		if moved == "" && uri != "" && uri != m.URI {
			moved = input.where.local(uri)
			if reference = moved == "" || !exists(moved); reference {
				m.URI, moved = uri, ""
			}
		}
		if moved != "" {
			if err := take(moved, data); err != nil {
				return m, errorf(codeData, "output artifact %s: %v", name, err)
			}
		}
	}
	return m, finishArtifact(input.where, folder, &m, reference)
}

// finishArtifact completes an artifact's folder, and leaves its digest and its place as parameters.
func finishArtifact(where place, folder string, m *meta, reference bool) error {
	if err := withoutLinks(folder); err != nil {
		return errorf(codeData, "output artifact %s: %v", m.Name, err)
	}
	if info, err := os.Stat(where.kfp("out", m.Name, dataName)); err == nil {
		m.Folder = info.IsDir()
	}
	var err error
	if m.SHA256, m.Bytes, err = digest(folder, *m, reference); err != nil {
		return errorf(codeData, "output artifact %s can't be read: %v", m.Name, err)
	}
	return errors.Join(
		m.write(folder),
		os.WriteFile(where.kfp("outp", ".sha-"+m.Name), []byte(m.SHA256), 0o644),
		os.WriteFile(where.kfp("outp", ".at-"+m.Name), []byte(where.at(m.Name)), 0o644),
	)
}
