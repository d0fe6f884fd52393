package main

import (
	"regexp"
	"strings"
)

var (
	placeholder = regexp.MustCompile(`\{\{\$([^{}]*)\}\}`)
	keyed       = regexp.MustCompile(`^(inputs|outputs)\.(parameters|artifacts)\[['"]+([^'"\]]+)['"]+\](.*)$`)
	metadataKey = regexp.MustCompile(`^\.metadata\[['"]+([^'"\]]+)['"]+\]$`)
	ours        = regexp.MustCompile(`^(inputs|outputs|pipeline_|json_escape|workspace_path)`)
)

// resolve fills in the placeholders of one word of the command. What was filled in is not looked at again.
func (e *executorInput) resolve(word string) (string, error) {
	var wrong error
	text := placeholder.ReplaceAllStringFunc(word, func(found string) string {
		value, err := e.value(strings.TrimSuffix(strings.TrimPrefix(found, "{{$"), "}}"))
		if err != nil && wrong == nil {
			wrong = err
		}
		if value == nil {
			return found
		}
		return *value
	})
	return text, wrong
}

// value gives nil for text that only looks like a placeholder.
func (e *executorInput) value(inner string) (*string, error) {
	if inner == "" {
		text := toJSON(e.document())
		return &text, nil
	}
	inner, dotted := strings.CutPrefix(inner, ".")
	if !dotted {
		return nil, nil
	}
	if constant, ok := e.constants[inner]; ok {
		return &constant, nil
	}
	if parts := keyed.FindStringSubmatch(inner); parts != nil {
		text, err := e.keyed(parts[1], parts[2], parts[3], parts[4])
		return &text, err
	}
	if ours.MatchString(inner) {
		return nil, errorf(codeData, "the command has the placeholder {{$.%s}}, which is not known", inner)
	}
	return nil, nil
}

func (e *executorInput) keyed(side, kind, name, rest string) (string, error) {
	unknown := errorf(codeData, "the command has the placeholder {{$.%s.%s['%s']%s}}, which is not known", side, kind, name, rest)
	switch side + kind {
	case "inputsparameters":
		if _, declared := e.declared.Inputs.Parameters[name]; declared && rest == "" {
			return asText(e.parameters[name]), nil
		}
	case "outputsparameters":
		if _, declared := e.declared.Outputs.Parameters[name]; declared && rest == ".output_file" {
			return e.where.kfp("outp", name), nil
		}
	case "inputsartifacts":
		if kind, declared := e.declared.Inputs.Artifacts[name]; declared {
			return e.ofArtifact(e.artifacts[name], kind.List, rest, unknown)
		}
	case "outputsartifacts":
		if one, declared := e.outputs[name]; declared {
			if rest == ".path" {
				return e.where.kfp("out", name, dataName), nil
			}
			return e.ofArtifact([]meta{one}, false, rest, unknown)
		}
	}
	return "", unknown
}

// ofArtifact gives a part of the first artifact, or the whole list.
func (e *executorInput) ofArtifact(list []meta, isList bool, rest string, unknown error) (string, error) {
	if rest == "" {
		return toJSON(runtimes(list)), nil
	}
	if isList {
		return "", unknown
	}
	key := metadataKey.FindStringSubmatch(rest)
	if key == nil && rest != ".uri" && rest != ".path" && rest != ".name" && rest != ".metadata" {
		return "", unknown
	}
	if len(list) == 0 {
		return "null", nil // as kfp does for an optional input that was not given
	}
	one := list[0]
	switch rest {
	case ".uri":
		return one.URI, nil
	case ".path":
		return e.where.kfp("in", one.Name, dataName), nil
	case ".name":
		return one.Name, nil
	case ".metadata":
		return toJSON(one.runtime()["metadata"]), nil
	}
	return asText(one.Metadata[key[1]]), nil
}
