//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
)

// The stored bodies, by their path, in bytes.
const (
	shortKept, shortSize = "/kept1", 1 << 10
	longKept, longSize   = "/kept64", 64 << 10
)

// cachingRows are the rows about what is answered from a cache.
func cachingRows() []row {
	caching := func(p peer) bool { return p.name == "headgate" || p.name == "before" || p.name == "nginx" }
	setups := func() []setup { return []setup{{cache: true}} }
	return []row{
		{
			name: "hit", title: "HTTP/1.1 keep-alive, 1 KiB from the cache, c=64", unit: "µs CPU per request",
			goals: []goal{{"nginx", 0.7}}, only: caching, setups: setups,
			measure: measureHits(shortKept, shortSize),
		},
		{
			name: "hit64", title: "the same, 64 KiB", unit: "µs CPU per request",
			goals: []goal{{"nginx", 0.6}}, only: caching, setups: setups,
			measure: measureHits(longKept, longSize),
		},
	}
}

// makeKept makes the files that may be stored.
func makeKept(dir string) error {
	if err := writeFile(dir, shortKept[1:], strings.Repeat("x", shortSize)); err != nil {
		return err
	}
	return writeFile(dir, longKept[1:], strings.Repeat("x", longSize))
}

// keptLocations are those of the upstream.
func keptLocations(dir string) string {
	out := ""
	for _, path := range []string{shortKept, longKept} {
		out += fmt.Sprintf("    location = %s { root %s; add_header Cache-Control max-age=3600; }\n", path, dir)
	}
	return out
}

// measureHits asks for a path that is stored already.
func measureHits(path string, size int) func(*bench, []*running) (sample, error) {
	return func(b *bench, all []*running) (sample, error) {
		r := all[0]
		if err := r.keep(b.ctx, path, size); err != nil {
			return sample{}, err
		}
		name := filepath.Join(r.setup.dir, "hits.lua")
		if err := writeFile(r.setup.dir, "hits.lua", fmt.Sprintf("wrk.path = %q\n", path)); err != nil {
			return sample{}, err
		}
		v, err := b.cpuOfRequests(r, "-c64", "-s", name)
		return sample{value: v}, err
	}
}

// keep asks until the answer comes from the cache.
func (r *running) keep(ctx context.Context, path string, size int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", r.setup.address)
		},
	}}
	defer client.CloseIdleConnections()
	for {
		rq, err := http.NewRequestWithContext(ctx, "GET", "http://"+r.setup.address+path, nil)
		if err != nil {
			return err
		}
		rs, err := client.Do(rq)
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, rs.Body)
		rs.Body.Close()
		if err != nil || n != int64(size) {
			return fmt.Errorf("%s: %d bytes, %v", path, n, err)
		}
		if strings.Contains(strings.ToLower(rs.Header.Get("Cache-Status")), "hit") {
			return nil
		}
	}
}
