package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

const pingTimeout = 3 * time.Second

// serveHealth answers /healthz (this process works), /readyz (the NFS server answers too) and /metrics (what was measured). A silent server makes
// the pod unready, and does not restart it: that would not bring the server back.
func serveHealth(ctx context.Context, address string, ping func() error, measured http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("/", healthHandler(ping))
	mux.Handle("/metrics", measured)
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		klog.ErrorS(err, "health endpoint", "address", address)
	}
}

func healthHandler(ping func() error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	// A hard mount never returns while its server is gone, so at most one query runs at a time.
	asking := make(chan struct{}, 1)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		answer := make(chan error, 1)
		select {
		case asking <- struct{}{}:
			go func() { answer <- ping(); <-asking }()
		default:
		}
		select {
		case err := <-answer:
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			w.Write([]byte("ok\n"))
		case <-time.After(pingTimeout):
			http.Error(w, "the NFS server does not answer", http.StatusServiceUnavailable)
		}
	})
	return mux
}
