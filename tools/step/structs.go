package main

import (
	"encoding/json"
	"strings"
)

// ifPresent is kfp's IfPresent: one of two branches, by whether an input has a value.
type ifPresent struct {
	InputName string
	Then      json.RawMessage
	Else      json.RawMessage
}

// command resolves every word: kfp's structures first, then placeholders. A word may become none or several.
func (e *executorInput) command(words []string) ([]string, error) {
	var resolved []string
	for _, word := range words {
		parts := []string{word}
		if strings.HasPrefix(word, `{"Concat":`) || strings.HasPrefix(word, `{"IfPresent":`) {
			var err error
			if parts, err = e.structure(json.RawMessage(word)); err != nil {
				return nil, err
			}
		}
		for _, part := range parts {
			text, err := e.resolve(part)
			if err != nil {
				return nil, err
			}
			resolved = append(resolved, text)
		}
	}
	return resolved, nil
}

// structure flattens one of kfp's structures into words that still have their placeholders.
func (e *executorInput) structure(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return e.structures(list)
	}
	var object struct {
		Concat    []json.RawMessage
		IfPresent *ifPresent
	}
	if err := strict(raw, &object); err != nil || (object.Concat == nil) == (object.IfPresent == nil) {
		return nil, errorf(codeData, "the command has a structure that is neither Concat nor IfPresent: %.200s", raw)
	}
	if object.IfPresent == nil {
		words, err := e.structures(object.Concat)
		return []string{strings.Join(words, "")}, err
	}
	branch := object.IfPresent.Else
	if e.given(object.IfPresent.InputName) {
		branch = object.IfPresent.Then
	}
	return e.structure(branch)
}

func (e *executorInput) structures(list []json.RawMessage) ([]string, error) {
	var words []string
	for _, raw := range list {
		some, err := e.structure(raw)
		if err != nil {
			return nil, err
		}
		words = append(words, some...)
	}
	return words, nil
}
