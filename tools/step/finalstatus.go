package main

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"
)

// kfpStates are kfp's words for Argo's phases.
var kfpStates = map[string]string{
	"Succeeded": "SUCCEEDED", "Failed": "FAILED", "Error": "FAILED", "Skipped": "SKIPPED", "Omitted": "SKIPPED",
	"Running": "RUNNING", "Pending": "PENDING",
}

// finalStatus makes kfp's PipelineTaskFinalStatus of what the translator gives.
func finalStatus(raw any, info runInfo) (any, error) {
	given, ok := raw.(map[string]any)
	if !ok {
		return nil, errorf(codeData, "%.60s", toJSON(raw))
	}
	state, _ := given["state"].(string)
	if known, ok := kfpStates[state]; ok {
		state = known
	}
	status := map[string]any{"state": state, "pipelineJobResourceName": info.run}
	for _, key := range []string{"pipelineJobResourceName", "pipelineTaskName", "error"} {
		if value, ok := given[key]; ok {
			status[key] = value
		}
	}
	if message := failureText(given["failures"]); message != "" && state != "SUCCEEDED" {
		status["error"] = map[string]any{"code": 9, "message": message} // gRPC's FAILED_PRECONDITION, as kfp gives it
	}
	return status, nil
}

// insideDAG is what the translator calls a step inside the graph that holds its cache; see translate/memoization.py.
const insideDAG = "run"

// failureText joins the messages of failed pods, which Argo gives as a JSON list, sometimes as a Go string with one in
// it. The translator keeps the first part of a long one: the failures that are whole count.
func failureText(raw any) string {
	text, _ := raw.(string)
	decoder := json.NewDecoder(strings.NewReader(unquoted(text)))
	if _, err := decoder.Token(); err != nil {
		return text
	}
	var lines []string
	for decoder.More() {
		var failure struct{ DisplayName, Message, TemplateName string }
		if err := decoder.Decode(&failure); err != nil {
			break
		}
		if failure.Message != "" && failure.TemplateName != "" && !derived(failure.Message) {
			name := failure.DisplayName
			if attempt, ok := strings.CutPrefix(name, insideDAG); ok && (attempt == "" || attempt[0] == '(') {
				name = failure.TemplateName + attempt
			}
			lines = append(lines, name+": "+failure.Message)
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "; ")
}

// unquoted takes Go's quotes off, also where the end is cut off, perhaps within an escape.
func unquoted(text string) string {
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	if whole, err := strconv.Unquote(text); err == nil {
		return whole
	}
	for cut := range min(len(text), longestEscape) {
		if part, err := strconv.Unquote(text[:len(text)-cut] + `"`); err == nil {
			return part
		}
	}
	return text
}

const longestEscape = 10 // bytes, \U0001f600

// derived messages only say that something below failed.
func derived(message string) bool {
	return strings.HasPrefix(message, "child '") || strings.HasPrefix(message, "retryStrategy.expression evaluated") ||
		message == "No more retries left"
}
