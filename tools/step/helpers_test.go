package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const archive = `{"container": {"image": "images.example/train:1"}, "archiveLocation": {"s3": {"endpoint": "store:9000",
	"bucket": "runs", "insecure": true, "key": "vision/pipelines/run-1/run-1-train-7"}}}`

// pod is a step's file system in a folder, with the environment that a translator would give.
type pod struct {
	*testing.T
	place
}

func newPod(t *testing.T, step string, parameters map[string]string) pod {
	t.Helper()
	root := t.TempDir()
	p := pod{t, place{root: root}}
	p.file(archive, "var/run/argo/template")
	p.file("", "dev/termination-log")
	p.place = newPlace(root)
	if parameters == nil {
		parameters = map[string]string{}
	}
	t.Setenv("TRAINYARD_STEP", step)
	t.Setenv("TRAINYARD_PARAMS", toJSON(parameters))
	t.Setenv("TRAINYARD_RUN", "run-1")
	t.Setenv("TRAINYARD_RUN_UID", "uid-1")
	t.Setenv("ARGO_NODE_ID", "run-1-7")
	return p
}

func (p pod) file(content string, parts ...string) string {
	p.Helper()
	name := p.path(parts...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		p.Fatal(err)
	}
	return name
}

// artifact is an input as an earlier step left it.
func (p pod) artifact(name string, m meta, data string) {
	p.Helper()
	p.file(toJSON(m), "kfp/in", name, metaName)
	p.file(data, "kfp/in", name, dataName)
}

// withLinks has s3:// uris, as in a pod whose volume is mounted at /s3.
func (p pod) withLinks() pod {
	p.Helper()
	folder := p.path("s3")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.Fatal(err)
	}
	p.useLinks(folder)
	return p
}

func (p pod) read(parts ...string) string {
	p.Helper()
	text, err := os.ReadFile(p.path(parts...))
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

// runs the step with a shell script as its command.
func (p pod) runs(script string, words ...string) error {
	p.Helper()
	return runStep(p.place, append([]string{"sh", "-c", script, "sh"}, words...))
}

func (p pod) succeeds(script string, words ...string) {
	p.Helper()
	if err := p.runs(script, words...); err != nil {
		p.Fatal(err)
	}
}

func (p pod) is(want string, parts ...string) {
	p.Helper()
	if got := p.read(parts...); got != want {
		p.Errorf("%s: %q, want %q", strings.Join(parts, "/"), got, want)
	}
}

// fails wants an error with this code and these words.
func fails(t *testing.T, err error, code int, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if exitCode(err) != code {
		t.Errorf("code %d, want %d: %v", exitCode(err), code, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %q", word, err)
		}
	}
}

func (p pod) document(parts ...string) map[string]any {
	p.Helper()
	var found map[string]any
	if err := json.Unmarshal([]byte(p.read(parts...)), &found); err != nil {
		p.Fatal(err)
	}
	return found
}
