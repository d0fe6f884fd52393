package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"golang.org/x/sync/errgroup"
)

// How many objects of one batch are written at a time.
const atOnce = 4

// config of the exporter `pod_store`. Queue and retries are the collector's own.
type config struct {
	Timeout exporterhelper.TimeoutConfig                             `mapstructure:",squash"`
	Queue   configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	Retry   configretry.BackOffConfig                                `mapstructure:"retry_on_failure"`
	// Bucket that objects are written to.
	Bucket string `mapstructure:"bucket"`
	// Keys is a folder with endpoint, region, access-key, secret-key and, where there is one, ca.crt. It is read again
	// when it changes, so that a key is replaced while the collector runs.
	Keys string `mapstructure:"keys"`
}

func (c *config) Validate() error {
	if c.Bucket == "" || c.Keys == "" {
		return errors.New("bucket and keys must be set")
	}
	return nil
}

func newFactory() exporter.Factory {
	return exporter.NewFactory(
		component.MustNewType("pod_store"),
		func() component.Config {
			return &config{
				Timeout: exporterhelper.NewDefaultTimeoutConfig(),
				Queue:   configoptional.Some(exporterhelper.NewDefaultQueueConfig()),
				Retry:   configretry.NewDefaultBackOffConfig(),
			}
		},
		exporter.WithLogs(newExporter, component.StabilityLevelStable),
	)
}

func newExporter(ctx context.Context, set exporter.Settings, given component.Config) (exporter.Logs, error) {
	c := given.(*config)
	to := &podStore{put: newPlace(c.Bucket, c.Keys).put}
	return exporterhelper.NewLogs(ctx, set, c, to.write,
		exporterhelper.WithQueue(c.Queue), exporterhelper.WithRetry(c.Retry), exporterhelper.WithTimeout(c.Timeout))
}

// podStore writes each container's lines of a batch to a separate object: who may read an object is decided by its
// key, so that one never holds lines of two teams. The split comes after the queue, which may put batches together.
type podStore struct {
	put func(ctx context.Context, key string, content []byte) error
}

// write succeeds when every object is written; else the whole batch comes again. Objects already written then have the
// same name, so that they are overwritten and not doubled.
func (s *podStore) write(ctx context.Context, logs plog.Logs) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, part := range split(logs) {
		group.Go(func() error {
			content, err := packed(part.logs)
			if err != nil {
				return err
			}
			return s.put(within, part.key(content), content)
		})
	}
	return group.Wait()
}

// packed returns the lines as compressed OTLP JSON.
func packed(logs plog.Logs) ([]byte, error) {
	text, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := zip.Write(text); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
