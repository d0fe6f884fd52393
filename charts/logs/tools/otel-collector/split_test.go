package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

func add(logs plog.Logs, namespace, pod, container, text string, at time.Time) {
	one := logs.ResourceLogs().AppendEmpty()
	for key, value := range map[string]string{
		"k8s.namespace.name": namespace, "k8s.pod.name": pod, "k8s.pod.uid": "6f1c-" + pod, "k8s.container.name": container,
	} {
		one.Resource().Attributes().PutStr(key, value)
	}
	record := one.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetTimestamp(pcommon.NewTimestampFromTime(at))
	record.Body().SetStr(text)
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 7, time.UTC)

func TestEachContainerHasAnObjectOfItsOwn(t *testing.T) {
	logs := plog.NewLogs()
	add(logs, "vision", "digits-worker-0", "pytorch", "first", noon.Add(time.Second))
	add(logs, "speech", "digits-worker-0", "pytorch", "theirs", noon)
	add(logs, "vision", "digits-worker-0", "pytorch", "second", noon)
	add(logs, "vision", "digits-worker-0", "upload", "beside", noon)
	found := split(logs)
	if len(found) != 3 {
		t.Fatalf("%d objects", len(found))
	}
	key := found[0].key([]byte("x"))
	if !strings.HasPrefix(key, "vision/digits-worker-0/6f1c-digits-worker-0/pytorch/20260504T120000.000000007Z-") {
		t.Errorf("key %s", key)
	}
	if key != found[0].key([]byte("x")) || key == found[0].key([]byte("y")) {
		t.Error("a key is that of its content")
	}
	if found[0].logs.LogRecordCount() != 2 || found[1].of.namespace != "speech" {
		t.Errorf("%+v", found)
	}
}

func TestWhatIsNoNameBecomesNoKey(t *testing.T) {
	logs := plog.NewLogs()
	add(logs, "../vision", "digits", "pytorch", "?", noon)
	add(logs, "vision", "digits", "", "?", noon)
	add(logs, "vision/", "digits", "pytorch", "?", noon)
	for _, part := range split(logs) {
		if !strings.HasPrefix(part.key(nil), unknown+"/") {
			t.Error(part.key(nil))
		}
	}
}

func TestABatchThatFailedComesAgainUnderTheSameNames(t *testing.T) {
	logs := plog.NewLogs()
	add(logs, "vision", "a-worker-0", "pytorch", "one", noon)
	add(logs, "vision", "b-worker-0", "pytorch", "two", noon)
	var mutex sync.Mutex
	there, refuse := map[string]int{}, "vision/b"
	to := &podStore{put: func(_ context.Context, key string, _ []byte) error {
		mutex.Lock()
		defer mutex.Unlock()
		if refuse != "" && strings.HasPrefix(key, refuse) {
			return errors.New("the store does not answer")
		}
		there[key]++
		return nil
	}}
	if to.write(context.Background(), logs) == nil {
		t.Fatal("it counts as written")
	}
	refuse = ""
	if err := to.write(context.Background(), logs); err != nil {
		t.Fatal(err)
	}
	if len(there) != 2 {
		t.Error(there)
	}
}
