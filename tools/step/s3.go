package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// How long a store that doesn't answer is waited for: as long as Argo's executor does.
var (
	storePatience = 10 * time.Minute
	storePause    = time.Second
)

// store reads from the object store that the run's artifacts are in.
type store struct {
	base   *url.URL
	keys   signer
	client *http.Client
}

func newStore(where place) (*store, error) {
	s3 := where.template.ArchiveLocation.S3
	if s3 == nil || s3.Endpoint == "" {
		return nil, fault(codeStore, "the step's template names no store: is an artifact repository set for this namespace?")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	scheme := "https"
	if s3.Insecure {
		scheme = "http"
	} else if pem := os.Getenv("TRAINYARD_S3_CA"); pem != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(pem)) {
			return nil, fault(codeUsage, "TRAINYARD_S3_CA holds no certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	region := s3.Region
	if region == "" {
		region = "us-east-1"
	}
	return &store{
		base:   &url.URL{Scheme: scheme, Host: s3.Endpoint},
		keys:   signer{os.Getenv("TRAINYARD_S3_ACCESS_KEY"), os.Getenv("TRAINYARD_S3_SECRET_KEY"), region},
		client: &http.Client{Transport: transport},
	}, nil
}

// file fetches one object; false when there is none.
func (s *store) file(bucket, key, to string) (bool, error) {
	found := false
	err := s.retried("s3://"+bucket+"/"+key, func() error {
		answer, err := s.get(bucket, key, nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusNotFound {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return final{err}
		}
		target, err := os.Create(to)
		if err != nil {
			return final{err}
		}
		_, err = io.Copy(target, answer.Body)
		found = err == nil
		return errors.Join(err, target.Close())
	})
	return found, err
}

// folder fetches all objects below a key; false when there are none.
func (s *store) folder(bucket, key, to string) (bool, error) {
	keys, err := s.list(bucket, key+"/")
	for _, one := range keys {
		inside := filepath.Clean(strings.TrimPrefix(one, key+"/"))
		if strings.HasSuffix(one, "/") {
			continue // a folder's own mark
		}
		if !filepath.IsLocal(inside) {
			return false, fault(codeData, "s3://%s/%s would leave its folder", bucket, one)
		}
		found, err := s.file(bucket, one, filepath.Join(to, inside))
		if err != nil || !found {
			return false, err
		}
	}
	return len(keys) > 0, err
}

func (s *store) list(bucket, prefix string) ([]string, error) {
	var keys []string
	next := ""
	for {
		var page struct {
			Contents              []struct{ Key string }
			IsTruncated           bool
			NextContinuationToken string
		}
		err := s.retried("s3://"+bucket+"/"+prefix, func() error {
			query := url.Values{"list-type": {"2"}, "prefix": {prefix}}
			if next != "" {
				query.Set("continuation-token", next)
			}
			answer, err := s.get(bucket, "", query)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			return xml.NewDecoder(answer.Body).Decode(&page)
		})
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			keys = append(keys, object.Key)
		}
		if next = page.NextContinuationToken; !page.IsTruncated || next == "" {
			return keys, nil
		}
	}
}

// get answers 200 and 404; a refusal is final, everything else may be tried again.
func (s *store) get(bucket, key string, query url.Values) (*http.Response, error) {
	target := *s.base
	target.Path = "/" + bucket
	if key != "" {
		target.Path += "/" + key
	}
	target.RawPath, target.RawQuery = escapePath(target.Path), strings.ReplaceAll(query.Encode(), "+", "%20")
	request, err := http.NewRequest(http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, final{err}
	}
	s.keys.sign(request, time.Now())
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusNotFound && key != "" {
		return answer, nil
	}
	defer answer.Body.Close()
	var reason struct{ Code, Message string }
	_ = xml.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&reason)
	err = fmt.Errorf("%s %s %s", answer.Status, reason.Code, reason.Message)
	if answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests {
		err = final{err}
	}
	return nil, err
}

// final is an error that another try doesn't mend.
type final struct{ error }

func (s *store) retried(what string, try func() error) error {
	end, pause := time.Now().Add(storePatience), storePause
	for {
		err := try()
		var last final
		if err == nil {
			return nil
		}
		if errors.As(err, &last) || time.Now().Add(pause).After(end) {
			return fault(codeStore, "%s can't be read: %s", what, strings.TrimSpace(err.Error()))
		}
		time.Sleep(pause)
		pause = min(2*pause, 15*time.Second)
	}
}
