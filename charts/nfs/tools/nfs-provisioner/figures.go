package main

import (
	"fmt"
	"net/http"
	"sync"
)

// figures are the last measurements, in Prometheus' format: files of claims, and files kept of deleted claims.
type figures struct {
	mu    sync.Mutex
	lines []string
}

// set replaces the lines by those of a new round.
func (f *figures) set(lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = lines
}

func (f *figures) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintln(w, "# HELP trainyard_nfs_bytes What a directory of the export takes on disk.\n# TYPE trainyard_nfs_bytes gauge")
	for _, line := range f.lines {
		fmt.Fprintln(w, line)
	}
}

// figure is one line; state is live, or kept where the claim is gone.
func figure(one kept, state string, bytes int64) string {
	namespace, claim := one.namespace(), one.claim[min(len(one.namespace())+1, len(one.claim)):]
	return fmt.Sprintf("trainyard_nfs_bytes{namespace=%q,claim=%q,directory=%q,state=%q} %d", namespace, claim, one.directory, state, bytes)
}
