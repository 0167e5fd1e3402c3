package control

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// BenchmarkApply is a change of one proxy of ten thousand, each with three
// routes to servers.
func BenchmarkApply(b *testing.B) {
	var large strings.Builder
	large.WriteString("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nproxies:\n")
	for i := range 9_999 {
		fmt.Fprintf(&large, "  p%d:\n    virtual_hosts: [h%d.example.com]\n    routes:\n", i, i)
		for _, path := range []string{"/", "/api", "/static"} {
			fmt.Fprintf(&large, "      - path: %s\n        servers: [{url: \"http://127.0.0.1:%d\"}]\n", path, 10_000+i)
		}
	}
	text := large.String()
	c, err := New(Options{Log: slog.New(slog.DiscardHandler), StateDir: filepath.Join(b.TempDir(), "state")})
	if err != nil {
		b.Fatal(err)
	}
	defer c.close()
	apply := func(n int) {
		if err := c.Apply(Cause{}, doc(fmt.Sprintf("%s  last: {routes: [{fixed_response: {status: %d}}]}\n", text, 200+n%200))); err != nil {
			b.Fatal(err)
		}
	}
	apply(0)
	n := 1
	for b.Loop() {
		apply(n)
		n++
	}
	b.StopTimer()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-live")
}
