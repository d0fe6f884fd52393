package main

import (
	"slices"
	"testing"
)

const wide = `{"task": "train", "pipeline": "mnist", "inputs": {"parameters": {"lr": "NUMBER_DOUBLE", "n": "NUMBER_INTEGER",
	"tags": "LIST", "text": "STRING", "left-out": "STRING"}, "artifacts": {"data": {"type": "system.Dataset"},
	"hint": {"type": "system.Artifact", "optional": true}, "many": {"type": "system.Model", "list": true}}},
	"outputs": {"parameters": {"acc": "NUMBER_DOUBLE"}, "artifacts": {"model": {"type": "system.Model"}}}}`

func wideInput(t *testing.T) (*executorInput, pod) {
	p := newPod(t, wide, map[string]string{"lr": "0.1", "n": "3.0", "tags": `["a", 2.0]`, "left-out": absent,
		"text": "{{$.inputs.parameters['lr']}} {{$.pipeline_job_name}}"})
	p.artifact("data", meta{URI: "s3://runs/a/data", Metadata: map[string]any{"rows": 5, "by": "me"}}, "x")
	for _, index := range []string{"0", "1", "10", "2"} {
		p.artifact("many/"+index, meta{URI: "s3://runs/" + index, Type: "system.Model"}, index)
	}
	s, err := readStep()
	if err != nil {
		t.Fatal(err)
	}
	input, err := newExecutorInput(s, p.place, readRunInfo(s, p.place))
	if err != nil {
		t.Fatal(err)
	}
	return input, p
}

func TestPlaceholders(t *testing.T) {
	input, p := wideInput(t)
	for word, want := range map[string]string{
		"--lr={{$.inputs.parameters['lr']}}":               "--lr=0.1",
		`{{$.inputs.parameters["n"]}}`:                     "3",
		"{{$.inputs.parameters['tags']}}":                  `["a",2]`,
		"{{$.inputs.parameters['text']}}":                  "{{$.inputs.parameters['lr']}} run-1",
		"{{$.inputs.parameters['left-out']}}":              "null",
		"{{$.inputs.artifacts['data'].path}}":              p.kfp("in/data/data"),
		"{{$.inputs.artifacts['data'].metadata['rows']}}":  "5",
		"{{$.inputs.artifacts['data'].metadata['by']}}":    "me",
		"{{$.inputs.artifacts['data'].metadata}}":          `{"by":"me","rows":5}`,
		"{{$.inputs.artifacts['hint'].uri}}":               "null",
		"{{$.outputs.artifacts['model'].path}}":            p.kfp("out/model/data"),
		"{{$.outputs.artifacts['model'].uri}}/x":           p.kfp("out/model/data") + "/x",
		"{{$.outputs.parameters['acc'].output_file}}":      p.kfp("outp/acc"),
		"{{$.outputs.output_file}}":                        p.kfp("executor_output.json"),
		"{{$.pipeline_job_uuid}}/{{$.pipeline_task_uuid}}": "uid-1/run-1-7",
		"{{$.pipeline_task_name}}":                         "train",
		"{{$.pipeline_root}}":                              "s3://runs/vision/pipelines/run-1",
		"{{item}} {{$foo}} {{$.price}}":                    "{{item}} {{$foo}} {{$.price}}",
	} {
		if got, err := input.resolve(word); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", word, got, err, want)
		}
	}
	for _, word := range []string{"{{$.inputs.parameters['typo']}}", "{{$.outputs.artifacts['typo'].uri}}", "{{$.json_escape[1]}}",
		"{{$.inputs.artifacts['many'].uri}}", "{{$.outputs.parameters['acc'].value}}", "{{$.pipeline_moon}}"} {
		_, err := input.resolve(word)
		fails(t, err, codeData, word, "not known")
	}
}

func TestListOfArtifactsKeepsItsOrder(t *testing.T) {
	input, _ := wideInput(t)
	var order []string
	for _, one := range input.artifacts["many"] {
		order = append(order, one.URI[len(one.URI)-len("data")-3:])
	}
	if len(order) != 4 || order[2] != "/2/data"[0:7] || order[3] != "10/data" {
		t.Error(order)
	}
}

func TestStructures(t *testing.T) {
	input, _ := wideInput(t)
	command := []string{
		"echo", `{"Concat": ["a-", "{{$.inputs.parameters['n']}}", {"IfPresent": {"InputName": "left-out", "Then": "-no"}}]}`,
		`{"IfPresent": {"InputName": "hint", "Then": ["--hint", "x"], "Else": ["--none", {"Concat": ["y", "z"]}]}}`,
		`{"IfPresent": {"InputName": "data", "Then": "--data"}}`, `{"IfPresent": {"InputName": "left-out", "Then": "--no"}}`,
	}
	got, err := input.command(command)
	if want := []string{"echo", "a-3", "--none", "yz", "--data"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	_, err = input.command([]string{`{"Concat": ["a"], "IfPresent": {"InputName": "n", "Then": "x"}}`})
	fails(t, err, codeData, "neither Concat nor IfPresent")
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		rest, want []string
	}{{[]string{"--", "sh", "-c", "x"}, []string{"sh", "-c", "x"}}, {[]string{"--json", `["echo","{\u007bitem}}"]`}, []string{"echo", "{{item}}"}},
		{[]string{"--"}, nil}, {[]string{"--json", "[]"}, nil}, {[]string{"sh"}, nil}} {
		got, err := commandLine(c.rest)
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) {
			t.Errorf("%q: %q, %v", c.rest, got, err)
		}
	}
	_, err := subcommand([]string{"start"})
	fails(t, err, codeUsage, `"start"`, "usage")
}
