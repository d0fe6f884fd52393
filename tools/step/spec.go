package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
)

// step is TRAINYARD_STEP: what the translator says about this step.
type step struct {
	Task      string `json:"task"`
	Component string `json:"component"`
	Pipeline  string `json:"pipeline"`
	Cache     bool   `json:"cache"`
	Inputs    ports  `json:"inputs"`
	Outputs   ports  `json:"outputs"`
}

type ports struct {
	Parameters map[string]parameter `json:"parameters"`
	Artifacts  map[string]artifact  `json:"artifacts"`
}

// parameter is kfp's type of a parameter, and of the elements of a list where it is known.
type parameter struct {
	Type, Items string
}

// UnmarshalJSON takes "LIST" and {"type": "LIST", "items": "STRING"}.
func (p *parameter) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &p.Type) == nil {
		return nil
	}
	long := struct{ Type, Items string }{}
	if err := strict(text, &long); err != nil {
		return err
	}
	*p = parameter(long)
	return nil
}

type artifact struct {
	Type     string `json:"type"`
	Optional bool   `json:"optional"`
	List     bool   `json:"list"`
}

// portName is what a name may be: it becomes part of a path.
var portName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

func readStep() (step, error) {
	var s step
	if err := strict([]byte(os.Getenv("TRAINYARD_STEP")), &s); err != nil {
		return s, errorf(codeUsage, "TRAINYARD_STEP is not what README.md of trainyard-step says: %v", err)
	}
	for name, text := range map[string]string{"task": s.Task, "run": os.Getenv("TRAINYARD_RUN")} {
		if whole.MatchString(text) {
			return s, errorf(codeData, unresolved, "the name of the "+name, text)
		}
	}
	for _, side := range []ports{s.Inputs, s.Outputs} {
		for _, name := range append(sortedNames(side.Parameters), sortedNames(side.Artifacts)...) {
			if !portName.MatchString(name) {
				return s, errorf(codeUsage, "TRAINYARD_STEP: %q can't be the name of an input or output", name)
			}
		}
	}
	return s, nil
}

// strict reads JSON and refuses fields that nothing here knows.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
