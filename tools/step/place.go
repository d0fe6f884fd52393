package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	messageLimit = 2000
	dataName     = "data"
	metaName     = "meta.json"
)

// place is where the files of a step are, and where its artifacts go.
type place struct {
	root     string
	s3       string // folder in which kfp looks for s3:// artifacts; "" when links can't be made there
	template template
}

// template is what is needed of the JSON that Argo's init container leaves.
type template struct {
	Container struct {
		Image string `json:"image"`
	} `json:"container"`
	Inputs struct {
		Artifacts []struct {
			Name string `json:"name"`
			S3   *struct {
				Bucket string `json:"bucket"`
				Key    string `json:"key"`
			} `json:"s3"`
		} `json:"artifacts"`
	} `json:"inputs"`
	ArchiveLocation struct {
		S3 *struct {
			Endpoint string `json:"endpoint"`
			Bucket   string `json:"bucket"`
			Region   string `json:"region"`
			Insecure bool   `json:"insecure"`
			Key      string `json:"key"`
		} `json:"s3"`
	} `json:"archiveLocation"`
}

func newPlace(root string) place {
	p := place{root: strings.TrimRight(root, "/")}
	if text, err := os.ReadFile(p.path("var/run/argo/template")); err == nil {
		_ = json.Unmarshal(text, &p.template) // without it only places in the store are unknown
	}
	if p.root == "" {
		p.useLinks("/s3")
	}
	return p
}

// useLinks has artifacts named by s3:// uris, if links can be made in this folder.
func (p *place) useLinks(folder string) {
	if probe, err := os.MkdirTemp(folder, ".probe"); err == nil {
		_ = os.Remove(probe)
		p.s3 = folder
	}
}

func (p place) path(parts ...string) string {
	return filepath.Join(append([]string{"/", p.root}, parts...)...)
}

func (p place) kfp(parts ...string) string {
	return p.path(append([]string{"kfp"}, parts...)...)
}

// at is where Argo stores the artifact's folder, "" when that is not known.
func (p place) at(name string) string {
	if top := p.top(); top != "" {
		return top + "/" + name
	}
	return ""
}

// source is the s3:// place from which Argo was to fetch an input artifact, "" when none was given.
func (p place) source(name string) string {
	for _, one := range p.template.Inputs.Artifacts {
		if one.Name == name && one.S3 != nil && one.S3.Key != "" {
			bucket := one.S3.Bucket
			if s3 := p.template.ArchiveLocation.S3; bucket == "" && s3 != nil {
				bucket = s3.Bucket
			}
			return "s3://" + bucket + "/" + one.S3.Key
		}
	}
	return ""
}

// top is s3://bucket/key of this pod.
func (p place) top() string {
	s3 := p.template.ArchiveLocation.S3
	if s3 == nil || s3.Bucket == "" || s3.Key == "" {
		return ""
	}
	return "s3://" + s3.Bucket + "/" + strings.Trim(s3.Key, "/")
}

// pipelineRoot is the place of the whole run: one level above its pods.
func (p place) pipelineRoot() string {
	if top := p.top(); top != "" {
		return "s3://" + path.Dir(strings.TrimPrefix(top, "s3://"))
	}
	return p.kfp()
}

// outputURI is how the command sees an output artifact.
func (p place) outputURI(name string) string {
	if at := p.at(name); at != "" && p.s3 != "" {
		return at + "/" + dataName
	}
	return p.kfp("out", name, dataName)
}

// outputFile is where kfp's executor writes what it returns. kfp takes its folder for the place of the task in the store,
// and dsl.get_uri() names files in it as it likes: outputs, which may have the same names, lie one level above.
func (p place) outputFile() string {
	const name = "executor_output.json"
	if top := p.top(); top != "" && p.s3 != "" {
		return filepath.Join(p.s3, strings.TrimPrefix(top, "s3://"), ".task", name)
	}
	return p.kfp(name)
}

// local is the file that kfp takes for a uri, "" for one that has none.
func (p place) local(uri string) string {
	if key, ok := strings.CutPrefix(uri, "s3://"); ok {
		if p.s3 == "" {
			return ""
		}
		return filepath.Join(p.s3, key)
	}
	if strings.HasPrefix(uri, "/") {
		return filepath.Clean(uri)
	}
	return ""
}

// link makes the path that kfp derives from a uri lead to an artifact's folder. False: the uri can't be used here.
func (p place) link(uri, folder string) bool {
	from, to := p.local(uri), folder
	if from == "" {
		return false
	}
	if filepath.Base(from) == dataName {
		from = filepath.Dir(from) // so that "data.pt", written beside, is part of the artifact
	} else {
		to = filepath.Join(folder, dataName)
	}
	if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
		return false
	}
	if err := os.Symlink(to, from); err != nil {
		found, err := os.Readlink(from)
		return err == nil && found == to
	}
	return true
}

// sayEnd leaves the message that becomes the node's.
func (p place) sayEnd(message string) {
	if len(message) > messageLimit {
		message = strings.ToValidUTF8(message[:messageLimit], "")
	}
	_ = os.WriteFile(p.path("dev/termination-log"), []byte(message), 0o644) // a container without one still ends by its code
}
