package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

const fetches = 4 // at a time

// collect fetches the artifacts of every list of TRAINYARD_LISTS into /kfp/in/<name>/<index>.
func collect(where place) error {
	value, err := fromJSON(os.Getenv("TRAINYARD_LISTS"))
	lists, ok := value.(map[string]any)
	if err != nil || !ok {
		return errorf(codeUsage, "TRAINYARD_LISTS is not a JSON object")
	}
	store, err := newStore(where)
	if err != nil {
		return err
	}
	var jobs []fetch
	for _, name := range sortedNames(lists) {
		if !portName.MatchString(name) {
			return errorf(codeUsage, "TRAINYARD_LISTS: %q can't be the name of an input", name)
		}
		folder := where.kfp("in", name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		for index, uri := range flatten(lists[name]) {
			bucket, key, ok := splitURI(uri)
			if !ok || bucket != where.template.ArchiveLocation.S3.Bucket {
				return errorf(codeData, "list %s: %q is not in the bucket of this run's artifacts", name, uri)
			}
			jobs = append(jobs, fetch{bucket, key, filepath.Join(folder, strconv.Itoa(index))})
		}
	}
	return fetchAll(store, jobs)
}

type fetch struct{ bucket, key, folder string }

func fetchAll(store *store, jobs []fetch) error {
	slots, failures := make(chan struct{}, fetches), make([]error, len(jobs))
	var all sync.WaitGroup
	for i, job := range jobs {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			found, err := store.folder(job.bucket, job.key, job.folder)
			if err == nil && !found {
				err = errorf(codeData, "s3://%s/%s is not there any more", job.bucket, job.key)
			}
			failures[i] = err
		})
	}
	all.Wait()
	return cmp.Or(failures...)
}

// flatten gives the strings of a list, of lists in it, and of lists written as text; what a skipped iteration left is dropped.
func flatten(value any) []string {
	switch v := value.(type) {
	case []any:
		var all []string
		for _, element := range v {
			all = append(all, flatten(element)...)
		}
		return all
	case string:
		if strings.HasPrefix(v, "[") {
			if inner, err := fromJSON(v); err == nil {
				return flatten(inner)
			}
		}
		if v != "" && v != "null" && v != absent && v != before {
			return []string{v}
		}
	}
	return nil
}

func splitURI(uri string) (bucket, key string, ok bool) {
	rest, ok := strings.CutPrefix(uri, "s3://")
	bucket, key, found := strings.Cut(rest, "/")
	return bucket, strings.Trim(key, "/"), ok && found && bucket != "" && strings.Trim(key, "/") != ""
}
