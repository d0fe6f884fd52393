package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
)

const (
	absent = "absent.trainyard.io" // Argo's default value of an optional input that was not given
	before = "trainyard.io/absent" // the same in runs that 0.3.0 began
	// maxOutput is what an output parameter may have: it travels in the environment of the next step, where Linux ends
	// at 128 KiB, and in the status of the workflow, which etcd ends at 1 MiB.
	maxOutput = 100_000
)

// What Argo leaves as it is when it can't resolve it. In a value that is no STRING such text is nothing else; a STRING may
// have come from a step that wrote it, which can't be told apart.
var (
	leftOver = regexp.MustCompile(`"([^"\\]+)": (\{\{=[^{}]*\}\})`) // where a value belongs, so outside of all strings
	whole    = regexp.MustCompile(`(?s)^\{\{[^$].*\}\}$`)
)

const unresolved = "%s: Argo left %.200s as it is, because what it names was not there"

// readParameters gives the values that the command sees; those not given are not in it.
func readParameters(s step, info runInfo) (map[string]any, error) {
	given := map[string]any{}
	if text := os.Getenv("TRAINYARD_PARAMS"); text != "" {
		value, err := fromJSON(text)
		object, ok := value.(map[string]any)
		if err != nil || !ok {
			if left := leftOver.FindStringSubmatch(text); left != nil {
				return nil, errorf(codeData, unresolved, "input parameter "+left[1], left[2])
			}
			return nil, errorf(codeUsage, "TRAINYARD_PARAMS is not a JSON object")
		}
		given = object
	}
	values := map[string]any{}
	for _, name := range sortedNames(s.Inputs.Parameters) {
		kind := s.Inputs.Parameters[name]
		if text, _ := given[name].(string); kind.Type != "STRING" && kind.Type != "" && whole.MatchString(text) {
			return nil, errorf(codeData, unresolved, "input parameter "+name, text)
		}
		value, err := inputValue(kind, given[name], info)
		if err != nil {
			return nil, errorf(codeData, "input parameter %s is not a %s: %v", name, kind.Type, err)
		}
		if value != nil {
			values[name] = value
		}
	}
	return values, nil
}

// inputValue reads what Argo gives, which is text, by the parameter's type.
func inputValue(kind parameter, raw any, info runInfo) (any, error) {
	text, isText := raw.(string)
	if raw == nil || isText && (text == absent || text == before) {
		return nil, nil
	}
	if isText {
		text = info.resolve(text)
		if kind.Type == "STRING" || kind.Type == "" {
			return text, nil
		}
		if text == "" || text == "null" {
			return nil, nil
		}
		if kind.Type == "BOOLEAN" {
			return strconv.ParseBool(text)
		}
		value, err := fromJSON(text)
		if err != nil {
			return nil, err
		}
		raw = value
	}
	switch kind.Type {
	case "STRING":
		return toJSON(raw), nil
	case "LIST":
		list, ok := raw.([]any)
		if !ok {
			return nil, errorf(codeData, "%.60s", toJSON(raw))
		}
		return elements(list, kind.Items), nil
	case "STRUCT", "TASK_CONFIG":
		if _, ok := raw.(map[string]any); !ok && kind.Type == "TASK_CONFIG" {
			return nil, errorf(codeData, "%.60s", toJSON(raw))
		}
		return wholeNumbers(raw), nil
	case "TASK_FINAL_STATUS":
		return finalStatus(raw, info)
	}
	return scalar(kind.Type, raw)
}

// elements mends strings that Argo took for JSON when it made the list.
func elements(list []any, items string) []any {
	for i, element := range list {
		if _, isText := element.(string); items == "STRING" && !isText {
			list[i] = toJSON(element)
		} else {
			list[i] = wholeNumbers(element)
		}
	}
	return list
}

// scalar checks a number or a truth value.
func scalar(kind string, value any) (any, error) {
	number, isNumber := value.(json.Number)
	truth, isTruth := value.(bool)
	switch {
	case kind == "BOOLEAN" && isTruth:
		return truth, nil
	case kind == "BOOLEAN" && isNumber:
		return strconv.ParseBool(number.String())
	case kind == "NUMBER_DOUBLE" && isNumber:
		return number, nil
	case kind == "NUMBER_INTEGER" && isNumber:
		if whole, ok := wholeNumber(number); ok {
			return whole, nil
		}
	}
	return nil, errorf(codeData, "%.60s", toJSON(value))
}

// outputValue reads an output parameter that was written as text, by its type.
func outputValue(kind parameter, text string) (any, error) {
	if kind.Type == "STRING" || kind.Type == "" {
		return text, nil
	}
	trimmed := strings.TrimSpace(text)
	if kind.Type == "BOOLEAN" {
		return strconv.ParseBool(trimmed)
	}
	value, err := fromJSON(trimmed)
	if err != nil {
		return nil, err
	}
	return checkedOutput(kind, value)
}

// checkedOutput holds a value against the type that the component declares.
func checkedOutput(kind parameter, value any) (any, error) {
	switch kind.Type {
	case "STRING", "":
		return asText(value), nil
	case "LIST":
		if _, ok := value.([]any); !ok {
			return nil, errorf(codeData, "%.60s", toJSON(value))
		}
		return value, nil
	case "STRUCT":
		return value, nil
	}
	return scalar(kind.Type, value)
}

// asText is how a value stands in a command or in Argo's parameter.
func asText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	return toJSON(value)
}
