//go:build linux

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestConstantRate holds that every request is sent and answered, also when the
// answers do not keep up.
func TestConstantRate(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, hundredBytes)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	latencies, err := constantRate(address, 2000, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(latencies) != 400 || served.Load() != 400 {
		t.Errorf("got %d latencies of %d requests, want 400", len(latencies), served.Load())
	}
	for i, l := range latencies {
		if l < 0 {
			t.Errorf("latency %d is %v: answered before it was due", i, l)
		}
	}
}

func TestConstantRateFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(server.URL, "http://")
	if _, err := constantRate(address, 1000, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, want the status", err)
	}
	server.Close()
	if _, err := constantRate(address, 1000, 100*time.Millisecond); err == nil {
		t.Error("nobody listens, and no error")
	}
}
