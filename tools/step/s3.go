package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// How long a store that doesn't answer is waited for: as long as Argo's executor does. One that knows no such bucket has
// less time: it has just started, or the bucket's name is wrong.
var (
	storePatience  = 10 * time.Minute
	bucketPatience = time.Minute
	storePause     = time.Second
)

// store reads from the object store that the run's artifacts are in.
type store struct{ client *minio.Core }

func newStore(where place) (*store, error) {
	s3 := where.template.ArchiveLocation.S3
	if s3 == nil || s3.Endpoint == "" {
		return nil, errorf(codeStore, "the step's template names no store: is an artifact repository set for this namespace?")
	}
	transport, err := storeTransport(!s3.Insecure)
	if err != nil {
		return nil, err
	}
	client, err := minio.NewCore(s3.Endpoint, &minio.Options{
		Creds:        credentials.NewStaticV4(os.Getenv("TRAINYARD_S3_ACCESS_KEY"), os.Getenv("TRAINYARD_S3_SECRET_KEY"), ""),
		Secure:       !s3.Insecure,
		Transport:    transport,
		Region:       cmp.Or(s3.Region, "us-east-1"), // without one the library would ask for it
		BucketLookup: minio.BucketLookupPath,
		MaxRetries:   1, // retried has more patience
	})
	if err != nil {
		return nil, errorf(codeStore, "the store %s can't be used: %v", s3.Endpoint, err)
	}
	client.SetS3EnableDualstack(false) // Amazon's other host names may not be open to a step
	return &store{client}, nil
}

// storeTransport trusts only the authorities of TRAINYARD_S3_CA where that is set.
func storeTransport(secure bool) (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	pem := os.Getenv("TRAINYARD_S3_CA")
	if !secure || pem == "" {
		return transport, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(pem)) {
		return nil, errorf(codeUsage, "TRAINYARD_S3_CA holds no certificate")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// file fetches one object; false when there is none.
func (s *store) file(bucket, key, to string) (bool, error) {
	found := false
	err := s.retried("s3://"+bucket+"/"+key, func() error {
		object, _, _, err := s.client.GetObject(context.Background(), bucket, key, minio.GetObjectOptions{})
		if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound && !noBucket(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer object.Close()
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return final{err}
		}
		target, err := os.Create(to)
		if err != nil {
			return final{err}
		}
		_, err = io.Copy(target, object)
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
			return false, errorf(codeData, "s3://%s/%s would leave its folder", bucket, one)
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
	for next, more := "", true; more; {
		// Page by page, so that an outage amid very many keys costs one page.
		err := s.retried("s3://"+bucket+"/"+prefix, func() error {
			if err := possible(bucket, prefix); err != nil {
				return final{err}
			}
			page, err := s.client.ListObjectsV2(bucket, prefix, "", next, "", 0)
			if err != nil {
				return err
			}
			for _, object := range page.Contents {
				keys = append(keys, object.Key)
			}
			next, more = page.NextContinuationToken, page.IsTruncated
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// possible asks what the library asks before a listing: its answer there can't be told from an outage.
func possible(bucket, prefix string) error {
	return cmp.Or(s3utils.CheckValidBucketName(bucket), s3utils.CheckValidObjectNamePrefix(prefix))
}

// final is an error that another try doesn't help.
type final struct{ error }

// noBucket says whether the store knows no such bucket. MinIO says so of every bucket for a moment after its start.
func noBucket(err error) bool {
	var answer minio.ErrorResponse
	return errors.As(err, &answer) && answer.Code == minio.NoSuchBucket
}

// refusal makes a refusal of the store final; everything else may be tried again.
func refusal(err error) error {
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	passing := noBucket(err)
	err = errors.New(reason(answer))
	if !passing && answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests {
		return final{err}
	}
	return err
}

// reason puts the HTTP status before what the store said.
func reason(answer minio.ErrorResponse) string {
	status := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch {
	case answer.StatusCode == 0: // it answered well, and the library can't make sense of it
		return answer.Error()
	case strings.HasPrefix(answer.Code, strconv.Itoa(answer.StatusCode)): // no error of S3's: the library repeats the status
		return status
	}
	return status + " " + answer.Code + " " + answer.Message
}

func (s *store) retried(what string, try func() error) error {
	start, pause := time.Now(), storePause
	known := start // until when it said something else than that it knows no such bucket
	for {
		answer := try()
		if answer == nil {
			return nil
		}
		end := start.Add(storePatience)
		if noBucket(answer) {
			end = known.Add(bucketPatience)
		} else {
			known = time.Now()
		}
		err := refusal(answer)
		var last final
		if errors.As(err, &last) || time.Now().Add(pause).After(end) {
			return errorf(codeStore, "%s can't be read: %s", what, strings.TrimSpace(err.Error()))
		}
		time.Sleep(pause)
		pause = min(2*pause, 15*time.Second)
	}
}
