package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// The prefix for lines whose file names no pod; no team's name begins with it.
const unknown = "_unknown"

// Valid names of a namespace, a pod, its uid or a container. Nothing else in a path can become part of a key.
var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// container identifies the container of some lines.
type container struct{ namespace, pod, uid, name string }

// lines are those of one container.
type lines struct {
	of   container
	logs plog.Logs
}

func of(resource pcommon.Resource) container {
	get := func(key string) string {
		value, _ := resource.Attributes().Get(key)
		if text := value.AsString(); name.MatchString(text) {
			return text
		}
		return ""
	}
	found := container{get("k8s.namespace.name"), get("k8s.pod.name"), get("k8s.pod.uid"), get("k8s.container.name")}
	if found.namespace == "" || found.pod == "" || found.uid == "" || found.name == "" {
		return container{namespace: unknown, pod: unknown, uid: unknown, name: unknown}
	}
	return found
}

// split groups a batch by container, in order of appearance.
func split(logs plog.Logs) []lines {
	var found []lines
	at := map[container]int{}
	for i := range logs.ResourceLogs().Len() {
		one := logs.ResourceLogs().At(i)
		whose := of(one.Resource())
		if _, known := at[whose]; !known {
			at[whose] = len(found)
			found = append(found, lines{whose, plog.NewLogs()})
		}
		one.CopyTo(found[at[whose]].logs.ResourceLogs().AppendEmpty())
	}
	return found
}

// key is the object's name: by namespace, which is the team, and by pod, whose name begins with its run's. The rest
// sorts by time, and is the same for the same content.
func (l lines) key(content []byte) string {
	sum := sha256.Sum256(content)
	stamp := l.first().UTC().Format("20060102T150405.000000000Z")
	return fmt.Sprintf("%s/%s/%s/%s/%s-%s.json.gz",
		l.of.namespace, l.of.pod, l.of.uid, l.of.name, stamp, hex.EncodeToString(sum[:6]))
}

// first is the time at which the first line was written, or else read.
func (l lines) first() time.Time {
	var found pcommon.Timestamp
	for i := range l.logs.ResourceLogs().Len() {
		scopes := l.logs.ResourceLogs().At(i).ScopeLogs()
		for j := range scopes.Len() {
			records := scopes.At(j).LogRecords()
			for k := range records.Len() {
				at := records.At(k).Timestamp()
				if at == 0 {
					at = records.At(k).ObservedTimestamp()
				}
				if found == 0 || at < found {
					found = at
				}
			}
		}
	}
	return found.AsTime()
}
