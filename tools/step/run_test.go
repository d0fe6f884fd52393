package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const pass = `{"task": "copy", "component": "comp-copy", "pipeline": "p", "inputs": {"artifacts": {"a": {"type": "system.Dataset"}}},
	"outputs": {"artifacts": {"b": {"type": "system.Model"}}}}`

func TestArtifactsAndLineage(t *testing.T) {
	p := newPod(t, pass, nil)
	p.artifact("a", meta{Type: "system.Dataset", URI: "s3://runs/vision/pipelines/old/old-1/a/data", SHA256: "aa", Run: "old", Task: "make"}, "hello")
	p.succeeds(`cp "$1" "$2"; echo more > "$2.txt"`, "{{$.inputs.artifacts['a'].path}}", "{{$.outputs.artifacts['b'].path}}")
	p.is("hello", "kfp/out/b/data")
	p.is("more\n", "kfp/out/b/data.txt")
	p.is("s3://runs/vision/pipelines/run-1/run-1-train-7/b", "kfp/outp/.at-b")
	m := p.document("kfp/out/b/meta.json")
	if m["sha256"] != p.read("kfp/outp/.sha-b") || m["bytes"] != 10.0 || m["run"] != "run-1" || m["task"] != "copy" {
		t.Error(m)
	}
	l := p.document("kfp/lineage.json")
	from, to := l["inputs"].([]any)[0].(map[string]any), l["outputs"].([]any)[0].(map[string]any)
	if l["state"] != "succeeded" || l["image"] != "images.example/train:1" || from["run"] != "old" || from["sha256"] != "aa" || to["sha256"] != m["sha256"] {
		t.Error(l)
	}
	p.is("", "dev/termination-log")
}

func TestFailureIsOneReadableLine(t *testing.T) {
	p := newPod(t, pass, nil)
	p.artifact("a", meta{}, "")
	err := p.runs(`printf 'started\nTraceback (most recent call last):\n  File "x.py", line 1, in f\n    boom()\nValueError: no data\n  in 2 files\n' >&2; exit 3`)
	fails(t, err, 3, "ValueError: no data\n  in 2 files")
	if strings.Contains(err.Error(), "boom") || p.document("kfp/lineage.json")["error"] != err.Error() {
		t.Error(err)
	}
	err = p.runs(`printf 'Traceback (most recent call last):\n  File "x.py"\nKeyError: 7\n' >&2; echo held back; exit 1`)
	if err == nil || err.Error() != "KeyError: 7" {
		t.Error(err)
	}
	err = p.runs(`echo "}"; echo started; echo "error: no such model" >&2; exit 1`)
	if err == nil || err.Error() != "error: no such model" {
		t.Error(err)
	}
	for script, words := range map[string]string{
		"exit 4":                 "ended with code 4 and said nothing",
		"echo one; echo two >&2": "",
		"kill -KILL $$":          "killed (SIGKILL)",
		`for i in 1 2 3 4 5 6 7 8; do echo "line $i"; done; exit 1`: "line 4\nline 5\nline 6\nline 7\nline 8",
	} {
		err := p.runs(script)
		if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", script, err)
		}
	}
	fails(t, runStep(p.place, []string{"no-such-program"}), 127, "no program no-such-program")
	fails(t, runStep(p.place, []string{p.file("", "plain")}), 126, "can't be started")
}

func TestMessageReachesTheTerminationLog(t *testing.T) {
	p := newPod(t, `{"inputs": {"artifacts": {"a": {"type": "system.Dataset"}}}}`, nil)
	err := dispatch([]string{"run", "--", "true"}, p.place)
	fails(t, err, codeData, "input artifact a was not given")
	p.is(err.Error(), "dev/termination-log")
	p.artifact("a", meta{}, "")
	err = dispatch([]string{"run", "--", "sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x | fold -w 900; exit 1"}, p.place)
	if size := len(p.read("dev/termination-log")); err == nil || size > messageLimit || size < 1000 {
		t.Error(size, err)
	}
}

func TestOptionalInput(t *testing.T) {
	p := newPod(t, `{"inputs": {"artifacts": {"a": {"type": "system.Dataset", "optional": true}}}}`, nil)
	p.succeeds(`printf %s "$1" > `+p.path("seen"), "{{$}}")
	if in := p.document("seen")["inputs"].(map[string]any); len(in["artifacts"].(map[string]any)) != 0 {
		t.Error(in)
	}
}

func TestArtifactThatIsGoneIsNamed(t *testing.T) {
	p := newPod(t, `{"inputs": {"artifacts": {"a": {"type": "system.Dataset", "optional": true}}}}`, nil)
	p.file(strings.Replace(archive, "{", `{"inputs": {"artifacts": [{"name": "a", "s3": {"key": "v/old/a"}}]}, `, 1), "var/run/argo/template")
	p.place = newPlace(p.root)
	fails(t, p.runs("true"), codeData, "input artifact a is not in the store any more: s3://runs/v/old/a")
}

func TestDigestFollowsContentOnly(t *testing.T) {
	sum := func(uri, data, metadata string) string {
		p := newPod(t, pass, nil)
		p.artifact("a", meta{URI: uri}, data)
		t.Setenv("TRAINYARD_RUN", uri)
		p.succeeds(`mkdir "$2"; cp "$1" "$2/f"; printf '{"artifacts": {"b": {"artifacts": [{"uri": "%s", "metadata": %s}]}}}' "$2" "$4" > "$3"`,
			"{{$.inputs.artifacts['a'].path}}", "{{$.outputs.artifacts['b'].path}}", "{{$.outputs.output_file}}", metadata)
		return p.read("kfp/outp/.sha-b")
	}
	first := sum("s3://runs/1/a/data", "x", `{"rows": 1}`)
	if first != sum("s3://runs/2/a/data", "x", `{"rows": 1}`) {
		t.Error("another run changes the digest")
	}
	if first == sum("s3://runs/1/a/data", "y", `{"rows": 1}`) || first == sum("s3://runs/1/a/data", "x", `{"rows": 2}`) {
		t.Error("content or metadata don't change the digest")
	}
}

func TestURIsInTheStore(t *testing.T) {
	p := newPod(t, pass, nil).withLinks()
	p.artifact("a", meta{URI: "s3://runs/vision/pipelines/old/old-1/a/data"}, "hello")
	key := "runs/vision/pipelines/run-1/run-1-train-7"
	p.succeeds(`test "$1" = s3://runs/vision/pipelines/old/old-1/a/data && cat "$3/${1#s3://}" > "$3/${2#s3://}"; echo x > "$3/${2#s3://}.idx"`,
		"{{$.inputs.artifacts['a'].uri}}", "{{$.outputs.artifacts['b'].uri}}", p.s3)
	p.is("hello", "kfp/out/b/data")
	p.is("x\n", "kfp/out/b/data.idx")
	if m := p.document("kfp/out/b/meta.json"); m["uri"] != "s3://"+key+"/b/data" {
		t.Error(m)
	}
	p = newPod(t, pass, nil).withLinks() // a uri that the command chose: kfp's dsl.get_uri, a reference, an imported file
	p.artifact("a", meta{URI: "s3://other/set.csv"}, "rows")
	said := `{"artifacts": {"b": {"artifacts": [{"uri": "s3://` + key + `/mine"}]}}}`
	p.succeeds(`cp "$2/other/set.csv" "$2/`+key+`/mine"; printf %s "$3" > "$1"`, "{{$.outputs.output_file}}", p.s3, said)
	p.is("rows", "kfp/out/b/data")
	p = newPod(t, pass, nil).withLinks() // kfp's dsl.get_uri("b"), the name of the output itself
	p.artifact("a", meta{}, "")
	p.succeeds(`echo mine > "${1%/*}/b"; printf %s "$2" > "$1"`, "{{$.outputs.output_file}}", strings.ReplaceAll(said, "mine", ".task/b"))
	p.is("mine\n", "kfp/out/b/data")
	p = newPod(t, pass, nil).withLinks()
	p.artifact("a", meta{}, "")
	p.succeeds(`printf %s "$2" > "$1"`, "{{$.outputs.output_file}}", strings.ReplaceAll(said, key, "elsewhere"))
	if m := p.document("kfp/out/b/meta.json"); m["uri"] != "s3://elsewhere/mine" || exists(p.kfp("out/b/data")) {
		t.Error(m)
	}
}

func TestCustomPathIsTaken(t *testing.T) {
	p := newPod(t, pass, nil)
	p.artifact("a", meta{}, "")
	p.file("from afar", "work/model.bin")
	p.succeeds(`printf '{"artifacts": {"b": {"artifacts": [{"uri": "x", "custom_path": "%s"}]}}}' "$2" > "$1"`, "{{$.outputs.output_file}}", p.path("work/model.bin"))
	p.is("from afar", "kfp/out/b/data")
}

func TestFoldersAndLinks(t *testing.T) {
	p := newPod(t, pass, nil)
	p.artifact("a", meta{}, "")
	p.file("deep", "outside/d/f")
	out := "{{$.outputs.artifacts['b'].path}}"
	p.succeeds(`mkdir "$1"; ln -s `+p.path("outside")+` "$1/l"; ln -s l/d/f "$1/g"`, out)
	p.is("deep", "kfp/out/b/data/l/d/f")
	if info, _ := os.Lstat(p.kfp("out/b/data/g")); !info.Mode().IsRegular() {
		t.Error("a link was left")
	}
	for script, words := range map[string]string{`ln -s /nowhere/x "$1"`: "points nowhere", `mkdir "$1"; ln -s . "$1/me"`: "folder that it is in"} {
		q := newPod(t, pass, nil)
		q.artifact("a", meta{}, "")
		fails(t, q.runs(script, out), codeData, "output artifact b", words)
	}
	q := newPod(t, pass, nil) // an empty folder: only its meta.json comes back from a store
	q.file(toJSON(meta{Folder: true}), "kfp/in/a", metaName)
	q.succeeds(`test -d "$1"`, "{{$.inputs.artifacts['a'].path}}")
}

// stopped runs a script and has the step stopped once the script has written the file seen.up.
func (p pod) stopped(script string) <-chan error {
	p.Helper()
	done := make(chan error)
	go func() { done <- p.runs(script, p.path("seen")) }()
	for end := time.Now().Add(10 * time.Second); !exists(p.path("seen.up")) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	return done
}

func TestSignalReachesTheWholeGroup(t *testing.T) {
	p := newPod(t, "{}", nil)
	done := p.stopped(`trap 'echo mother >> "$1"; exit 9' TERM; (trap 'echo child >> "$1"; exit' TERM; touch "$1.up"; while :; do sleep 0.05; done) & while :; do sleep 0.05; done`)
	select {
	case err := <-done:
		fails(t, err, 9, "stopped by SIGTERM")
	case <-time.After(10 * time.Second):
		t.Fatal("the step did not end")
	}
	if seen := p.read("seen"); !strings.Contains(seen, "mother") || !strings.Contains(seen, "child") {
		t.Error(seen)
	}
}

// A shell without a trap dies at once; the program that it started takes its time to clean up.
func TestStoppedCommandMayCleanUp(t *testing.T) {
	p := newPod(t, "{}", nil)
	done := p.stopped(`sh -c 'trap "sleep 4; echo cleaned > $0; exit 143" TERM; touch $0.up; while :; do sleep 0.05; done' "$1"; true`)
	fails(t, <-done, 143, "stopped by SIGTERM")
	if seen := p.read("seen"); strings.TrimSpace(seen) != "cleaned" {
		t.Error(seen)
	}
}

func TestLeftBehindProcessesEnd(t *testing.T) {
	p := newPod(t, "{}", nil)
	p.succeeds(`sleep 300 & echo $! > "$1"`, p.path("pid"))
	pid := strings.TrimSpace(p.read("pid"))
	for range 100 {
		state, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it still runs")
}
