package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// place is a bucket, opened with the keys in a folder where a Secret is mounted.
type place struct {
	bucket, folder string

	mutex  sync.Mutex
	told   string // what the client was made from
	client *minio.Client
}

func newPlace(bucket, folder string) *place {
	return &place{bucket: bucket, folder: folder}
}

func (p *place) put(ctx context.Context, key string, content []byte) error {
	client, err := p.open()
	if err != nil {
		return err
	}
	_, err = client.PutObject(ctx, p.bucket, key, bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{ContentType: "application/gzip", DisableMultipart: true})
	if err != nil {
		return fmt.Errorf("s3://%s/%s: %w", p.bucket, key, err)
	}
	return nil
}

// open returns the client, a new one where the keys have changed.
func (p *place) open() (*minio.Client, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	held := map[string]string{}
	for _, name := range []string{"endpoint", "region", "access-key", "secret-key", "ca.crt"} {
		text, err := os.ReadFile(filepath.Join(p.folder, name))
		if err != nil && !(os.IsNotExist(err) && name == "ca.crt") {
			return nil, fmt.Errorf("the key of the store can't be read: %w", err)
		}
		held[name] = strings.TrimSpace(string(text))
	}
	told := fmt.Sprint(held)
	if told == p.told {
		return p.client, nil
	}
	client, err := connect(held)
	if err != nil {
		return nil, err
	}
	p.told, p.client = told, client
	return client, nil
}

func connect(held map[string]string) (*minio.Client, error) {
	endpoint, err := url.Parse(held["endpoint"])
	if err != nil || endpoint.Host == "" {
		return nil, fmt.Errorf("the store's endpoint %q is not a URL", held["endpoint"])
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if held["ca.crt"] != "" {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM([]byte(held["ca.crt"])) {
			return nil, fmt.Errorf("ca.crt of the store is not a certificate")
		}
	}
	region := held["region"]
	if region == "" {
		region = "us-east-1" // else the client queries it, which the key may not
	}
	return minio.New(endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(held["access-key"], held["secret-key"], ""),
		Secure: endpoint.Scheme == "https",
		Region: region,
		// The queue retries, for as long as it is configured to.
		MaxRetries: 1,
		Transport: &http.Transport{
			TLSClientConfig:       trust,
			Proxy:                 http.ProxyFromEnvironment,
			MaxIdleConnsPerHost:   atOnce,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: 30 * time.Second,
		},
	})
}
