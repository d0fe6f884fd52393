package main

import (
	"sort"
	"strings"
)

// kfpStates are kfp's words for Argo's phases.
var kfpStates = map[string]string{
	"Succeeded": "SUCCEEDED", "Failed": "FAILED", "Error": "FAILED", "Skipped": "SKIPPED", "Omitted": "SKIPPED",
	"Running": "RUNNING", "Pending": "PENDING",
}

// finalStatus makes kfp's PipelineTaskFinalStatus of what the translator gives.
func finalStatus(raw any, facts facts) (any, error) {
	given, ok := raw.(map[string]any)
	if !ok {
		return nil, fault(codeData, "%.60s", toJSON(raw))
	}
	state, _ := given["state"].(string)
	if known, ok := kfpStates[state]; ok {
		state = known
	}
	status := map[string]any{"state": state, "pipelineJobResourceName": facts.run}
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

// failureText joins the messages of failed pods. Argo gives them as JSON, sometimes as JSON in a JSON string.
func failureText(raw any) string {
	for range 2 {
		text, isText := raw.(string)
		if !isText {
			break
		}
		value, err := fromJSON(text)
		if err != nil {
			return text
		}
		raw = value
	}
	list, _ := raw.([]any)
	var lines []string
	for _, element := range list {
		failure, _ := element.(map[string]any)
		message, _ := failure["message"].(string)
		name, _ := failure["displayName"].(string)
		if kind, _ := failure["templateName"].(string); message != "" && kind != "" && !derived(message) {
			lines = append(lines, name+": "+message)
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "; ")
}

// derived messages only say that something below failed.
func derived(message string) bool {
	return strings.HasPrefix(message, "child '") || message == "No more retries left"
}
