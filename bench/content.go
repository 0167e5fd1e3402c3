//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// pageSize is the size of the page that is compressed, in bytes.
const pageSize = 256 << 10

// The codings of the rows of compression.
const (
	gzipCoding   = "gzip"
	brotliCoding = "br"
	zstdCoding   = "zstd"
)

// contentRows are the rows about what is changed on the way.
func contentRows() []row {
	known := func(p peer) bool { return p.name != "net/http" }
	// HAProxy's library has levels of its own, which make larger bodies.
	atLevels := func(p peer) bool { return p.name == "headgate" || p.name == "nginx" }
	ours := func(p peer) bool { return p.name == "headgate" }
	compressed := func(coding string) func() []setup {
		return func() []setup { return []setup{{compress: coding}} }
	}
	return []row{
		{
			name: "rules", title: "HTTP/1.1 keep-alive with three header rules", unit: "µs CPU per request",
			goals: []goal{{"nginx", 1}}, only: known,
			setups:  func() []setup { return []setup{{rules: true}} },
			measure: measureRequests,
		},
		{
			name: gzipCoding, title: "256 KiB of text, gzip at level 5", unit: "ms CPU per MiB",
			goals: []goal{{"nginx", 1}}, only: atLevels,
			setups: compressed(gzipCoding), measure: measureCompression,
		},
		{
			name: zstdCoding, title: "the same, zstd", unit: "ms CPU per MiB",
			only: ours, setups: compressed(zstdCoding), measure: measureCompression,
		},
		{
			name: brotliCoding, title: "the same, br", unit: "ms CPU per MiB",
			only: ours, setups: compressed(brotliCoding), measure: measureCompression,
		},
	}
}

// makePage writes a text that compresses about as pages do: made of words, in an
// order that does not repeat.
func makePage(dir string) error { return writeFile(dir, "page", pageText(pageSize)) }

// pageText is the first bytes of the page.
func pageText(size int) string {
	words := strings.Fields("route proxy port server header value the of and to a in is that for with as was on are by this be class div span href src link script")
	var b strings.Builder
	for seed := uint32(1); b.Len() < size; {
		seed = seed*1664525 + 1013904223
		b.WriteString(words[seed>>16%uint32(len(words))])
		b.WriteByte(" =\n\"<>/"[seed>>28%7])
	}
	return b.String()[:size]
}

// measureCompression asks for the page on one connection, over and over.
func measureCompression(b *bench, all []*running) (sample, error) {
	r := all[0]
	client := &http.Client{Transport: &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", r.setup.address)
		},
	}}
	defer client.CloseIdleConnections()
	if err := r.fetchPage(b.ctx, client); err != nil {
		return sample{}, err
	}
	v, err := r.cpuPer(time.Millisecond, func() (n int, err error) {
		for began := time.Now(); time.Since(began) < b.duration || n < fewestBodies; n++ {
			if err := r.fetchPage(b.ctx, client); err != nil {
				return n, err
			}
		}
		return n, nil
	})
	return sample{value: v * (1 << 20) / pageSize}, err
}

// fetchPage gets the page once, and holds that it came compressed.
func (r *running) fetchPage(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, "GET", "http://"+r.setup.host(0)+"/page", nil)
	if err != nil {
		return err
	}
	rq.Header.Set("Accept-Encoding", r.setup.compress)
	rs, err := client.Do(rq)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	n, err := io.Copy(io.Discard, rs.Body)
	if got := rs.Header.Get("Content-Encoding"); err == nil && (got != r.setup.compress || rs.StatusCode != http.StatusOK || n > pageSize/2) {
		return fmt.Errorf("page: status %d, coding %q, %d bytes", rs.StatusCode, got, n)
	}
	return err
}
