package main

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"time"
)

const workspace = "/kfp-workspace"

// runInfo is what is known of the run and of this attempt.
type runInfo struct {
	run, runUID, namespace, team, experiment, pod, node, image string
	started                                                    time.Time
	constants                                                  map[string]string // placeholders without a key -> value
}

func readRunInfo(s step, where place) runInfo {
	host, _ := os.Hostname()
	f := runInfo{
		run: os.Getenv("TRAINYARD_RUN"), runUID: os.Getenv("TRAINYARD_RUN_UID"),
		namespace: os.Getenv("TRAINYARD_NAMESPACE"), team: os.Getenv("TRAINYARD_TEAM"),
		experiment: os.Getenv("TRAINYARD_EXPERIMENT"), pod: cmp.Or(os.Getenv("HOSTNAME"), host), node: os.Getenv("ARGO_NODE_ID"),
		image: where.template.Container.Image, started: time.Now(),
	}
	created := cmp.Or(os.Getenv("TRAINYARD_CREATED"), stamp(f.started))
	f.constants = map[string]string{
		"pipeline_job_name": f.run, "pipeline_job_resource_name": f.run, "pipeline_job_uuid": f.runUID,
		"pipeline_task_name": s.Task, "pipeline_task_uuid": f.node, "pipeline_root": where.pipelineRoot(),
		"pipeline_job_create_time_utc": created, "pipeline_job_schedule_time_utc": created,
		"workspace_path": where.path(workspace), "outputs.output_file": where.outputFile(),
		"outputMetadataUri": where.outputFile(),
	}
	return f
}

// ofRun are the placeholders that a pipeline may pass on as a value.
var ofRun = regexp.MustCompile(`\{\{\$\.(pipeline_[a-z_]+|workspace_path)\}\}`)

// resolve fills in placeholders of the run; others stay as they are.
func (f runInfo) resolve(text string) string {
	return ofRun.ReplaceAllStringFunc(text, func(found string) string {
		if value, ok := f.constants[strings.Trim(found, "{}$.")]; ok {
			return value
		}
		return found
	})
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
