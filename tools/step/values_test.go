package main

import (
	"strconv"
	"strings"
	"testing"
)

func TestInputValues(t *testing.T) {
	for _, c := range []struct{ kind, items, text, want string }{
		{"STRING", "", "5", `"5"`}, {"STRING", "", "null", `"null"`}, {"STRING", "", "", `""`}, {"STRING", "", absent, "null"}, {"STRING", "", before, "null"},
		{"NUMBER_INTEGER", "", "3.0", "3"}, {"NUMBER_INTEGER", "", "1e3", "1000"}, {"NUMBER_INTEGER", "", "null", "null"},
		{"NUMBER_INTEGER", "", "9007199254740993", "9007199254740993"}, {"NUMBER_DOUBLE", "", "0.10", "0.10"},
		{"BOOLEAN", "", "True", "true"}, {"BOOLEAN", "", "0", "false"}, {"LIST", "", "[1.0, 2.5, [3.0]]", "[1,2.5,[3]]"},
		{"LIST", "STRING", `["a", 7, true, "1.50"]`, `["a","7","true","1.50"]`}, {"STRUCT", "", `{"a": 1.0}`, `{"a":1}`},
	} {
		got, err := inputValue(parameter{c.kind, c.items}, c.text, runInfo{})
		if err != nil || toJSON(got) != c.want {
			t.Errorf("%+v: %s, %v", c, toJSON(got), err)
		}
	}
	for _, c := range [][2]string{{"NUMBER_INTEGER", "1.5"}, {"NUMBER_INTEGER", "one"}, {"BOOLEAN", "perhaps"}, {"LIST", "{}"},
		{"LIST", "[1"}, {"STRUCT", "{} {}"}, {"NUMBER_DOUBLE", "[]"}, {"TASK_FINAL_STATUS", "[]"}, {"NUMBER_INTEGER", "1e999"}} {
		if got, err := inputValue(parameter{Type: c[0]}, c[1], runInfo{}); err == nil {
			t.Errorf("%s was accepted: %v", c, got)
		}
	}
}

func TestWrongInputIsNamed(t *testing.T) {
	p := newPod(t, `{"inputs": {"parameters": {"epochs": "NUMBER_INTEGER"}}}`, map[string]string{"epochs": "many"})
	fails(t, p.runs("true"), codeData, "input parameter epochs", "NUMBER_INTEGER")
}

func TestWhatArgoLeftIsNamed(t *testing.T) {
	const step = `{"task": "a", "inputs": {"parameters": {"n": "NUMBER_INTEGER", "words": "LIST", "text": "STRING"}}}`
	left := "{{tasks.first.outputs.parameters.n}}"
	fails(t, newPod(t, step, map[string]string{"n": left}).runs("true"), codeData, "input parameter n: Argo left "+left)
	fails(t, newPod(t, step, map[string]string{"words": "{{=x}}"}).runs("true"), codeData, "input parameter words: Argo left {{=x}}")
	p := newPod(t, step, nil)
	t.Setenv("TRAINYARD_PARAMS", `{"text": "\"x\": {{=1+1}}", "n": {{=toJson(inputs.parameters["n"])}}}`)
	fails(t, p.runs("true"), codeData, `input parameter n: Argo left {{=toJson(inputs.parameters["n"])}}`)
	p = newPod(t, `{"task": "{{tasks.name}}"}`, nil)
	fails(t, p.runs("true"), codeData, "the name of the task: Argo left {{tasks.name}}")
	// A text may have been written by a step, and a placeholder of kfp's is filled in here.
	p = newPod(t, step, map[string]string{"text": left, "n": "7", "words": `["{{=x}}"]`})
	p.succeeds("true")
}

func TestFinalStatusOfAFailedRun(t *testing.T) {
	failures := `[{"displayName":"run(0)","message":"ValueError: no","templateName":"train","phase":"Failed"},` +
		`{"displayName":"run","message":"retryStrategy.expression evaluated to false","templateName":"train","phase":"Failed"},` +
		`{"displayName":"train","message":"No more retries left","templateName":"comp-train","phase":"Failed"}]`
	for _, text := range []string{toJSON(failures), failures} { // once as Argo writes it, once as it stands in JSON
		raw := toJSON(map[string]any{"state": "Failed", "failures": text, "pipelineTaskName": "root"})
		got, err := inputValue(parameter{Type: "TASK_FINAL_STATUS"}, raw, runInfo{run: "run-1"})
		want := `{"error":{"code":9,"message":"train(0): ValueError: no"},"pipelineJobResourceName":"run-1","pipelineTaskName":"root","state":"FAILED"}`
		if err != nil || toJSON(got) != want {
			t.Errorf("%s, %v", toJSON(got), err)
		}
	}
}

func TestFailuresThatAreCutOff(t *testing.T) {
	list := `[{"displayName":"b","message":"no \"room\"\u001b","templateName":"comp-b"},{"displayName":"a","message":"never` +
		"\x7f\U000e0001" + `","templateName":"comp-a"}]`
	whole := strconv.Quote(list)
	for length := range len(whole) {
		got := failureText(whole[:length])
		first, both := "b: no \"room\"\x1b", "a: never\x7f\U000e0001; b: no \"room\"\x1b"
		if got != "" && got != first && got != both && length > 1 {
			t.Errorf("%d bytes: %q", length, got)
		}
	}
	if got := failureText(whole); !strings.HasPrefix(got, "a: never") {
		t.Errorf("whole: %q", got)
	}
}

func TestOutputParameters(t *testing.T) {
	const step = `{"outputs": {"parameters": {"x": "%"}}}`
	for _, c := range []struct{ kind, written, text, exact string }{
		{"STRING", "007", "007", `"007"`}, {"STRING", "two\n", "two\n\n", `"two\n"`}, {"NUMBER_INTEGER", " 3.0\n", "3", "3"},
		{"NUMBER_DOUBLE", "0.5", "0.5", "0.5"}, {"BOOLEAN", "True", "true", "true"}, {"LIST", "[1, 2]", "[1,2]", "[1,2]"},
		{"STRUCT", `{"b": 1, "a": "<x>"}`, `{"a":"<x>","b":1}`, `{"a":"<x>","b":1}`},
	} {
		p := newPod(t, strings.ReplaceAll(step, "%", c.kind), nil)
		p.succeeds(`printf '%s' "$1" > "$2"`, c.written, "{{$.outputs.parameters['x'].output_file}}")
		p.is(c.text, "kfp/outp/x")
		p.is(c.exact, "kfp/outp/.json-x")
		p = newPod(t, strings.ReplaceAll(step, "%", c.kind), nil)
		p.succeeds(`printf '{"parameterValues": {"x": %s}}' "$1" > "$2"`, c.exact, "{{$.outputs.output_file}}")
		p.is(c.text, "kfp/outp/x")
	}
	p := newPod(t, strings.ReplaceAll(step, "%", "NUMBER_INTEGER"), nil)
	fails(t, p.runs("true"), codeData, "output parameter x was not written")
	fails(t, p.runs("echo many > "+p.kfp("outp/x")), codeData, "output parameter x is not a NUMBER_INTEGER")
}

func TestBigParameterIsRefused(t *testing.T) {
	p := newPod(t, `{"inputs": {"parameters": {"in": "STRING"}}, "outputs": {"parameters": {"x": "STRING"}}}`, nil)
	fails(t, p.runs(`head -c 100001 /dev/zero | tr '\0' a > `+p.kfp("outp/x")), codeData, "x has 100003 bytes", "artifact")
	t.Setenv("TRAINYARD_PARAMS", toJSON(map[string]string{"in": strings.Repeat("a", 131072)}))
	fails(t, p.runs("true", "{{$.inputs.parameters['in']}}"), codeData, "131072 bytes", "artifact")
}
