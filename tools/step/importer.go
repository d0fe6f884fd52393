package main

import (
	"os"
	"strings"
)

// importArtifact makes an artifact of something that no step made.
func importArtifact(where place) error {
	s, err := readStep()
	if err != nil {
		return err
	}
	if len(s.Outputs.Artifacts) != 1 {
		return errorf(codeUsage, "TRAINYARD_STEP of an importer names one output artifact")
	}
	s.Inputs.Parameters = map[string]parameter{"uri": {Type: "STRING"}, "metadata": {Type: "STRUCT"}}
	return s.told(where, imported)
}

func imported(input *executorInput) (results, error) {
	name := sortedNames(input.outputs)[0]
	m := input.outputs[name]
	uri, _ := input.parameters["uri"].(string)
	if uri == "" {
		return results{}, errorf(codeData, "the importer has no uri")
	}
	m.URI = uri
	m.Metadata, _ = input.parameters["metadata"].(map[string]any)
	data := input.where.kfp("out", name, dataName)
	if strings.HasPrefix(uri, "s3://") {
		if err := fetchURI(input.where, uri, data); err != nil {
			return results{}, err
		}
	}
	err := finishArtifact(input.where, input.where.kfp("out", name), &m, !exists(data))
	return results{artifacts: []meta{m}}, err
}

// fetchURI fetches one object, or all objects below a prefix.
func fetchURI(where place, uri, to string) error {
	bucket, key, ok := splitURI(uri)
	if !ok {
		return errorf(codeData, "the importer's uri %q has no bucket or no key", uri)
	}
	store, err := newStore(where)
	if err != nil {
		return err
	}
	found, err := store.file(bucket, key, to)
	if err == nil && !found {
		found, err = store.folder(bucket, key, to)
	}
	if err == nil && !found {
		err = errorf(codeData, "the importer's uri %s does not exist", uri)
	}
	if err != nil {
		_ = os.RemoveAll(to)
	}
	return err
}
