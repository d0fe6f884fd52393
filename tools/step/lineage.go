package main

import (
	"os"
	"time"
)

const shortValue = 200 // bytes of JSON up to which a value is written out

// lineage says what this step made of what; README.md has an example.
func lineage(s step, info runInfo, input *executorInput, made results, failure error) map[string]any {
	state, message, code := "succeeded", "", 0
	if failure != nil {
		state, message, code = "failed", failure.Error(), exitCode(failure)
	}
	document := map[string]any{
		"version": 1, "run": info.run, "runUid": info.runUID, "namespace": info.namespace, "team": info.team,
		"experiment": info.experiment, "pipeline": s.Pipeline, "task": s.Task, "component": s.Component,
		"image": info.image, "pod": info.pod, "node": info.node,
		"started": stamp(info.started), "finished": stamp(time.Now()), "state": state, "exitCode": code, "error": message,
		"parameters": map[string]any{}, "inputs": []any{}, "outputs": []any{}, "results": valuesOf(made.parameters),
	}
	if input != nil {
		document["parameters"] = valuesOf(input.parameters)
		inputs := []any{}
		for _, name := range sortedNames(input.artifacts) {
			for _, one := range input.artifacts[name] {
				from := artifactLine(one)
				from["run"], from["task"] = one.Run, one.Task
				inputs = append(inputs, from)
			}
		}
		document["inputs"] = inputs
	}
	outputs := []any{}
	for _, one := range made.artifacts {
		outputs = append(outputs, artifactLine(one))
	}
	document["outputs"] = outputs
	return document
}

func artifactLine(m meta) map[string]any {
	return map[string]any{"name": m.Name, "type": m.Type, "uri": m.URI, "sha256": m.SHA256, "bytes": m.Bytes}
}

func valuesOf(parameters map[string]any) map[string]any {
	all := map[string]any{}
	for name, value := range parameters {
		text := toJSON(value)
		one := map[string]any{"sha256": textDigest(text)}
		if len(text) <= shortValue {
			one["value"] = value
		}
		all[name] = one
	}
	return all
}

func writeLineage(where place, document map[string]any) error {
	if err := os.MkdirAll(where.kfp(), 0o755); err != nil {
		return err
	}
	return os.WriteFile(where.kfp("lineage.json"), []byte(toJSON(document)), 0o644)
}
