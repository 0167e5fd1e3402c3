//go:build linux

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestParseBenchmark(t *testing.T) {
	times, allocations, err := parseBenchmark([]byte(`goos: linux
cpu: X
BenchmarkIPFilter/10/203.0.113.1 	 9000	       29.50 ns/op	       0 B/op	       0 allocs/op
BenchmarkIPFilter/10/203.0.113.1 	 9000	       31 ns/op	   12.5 MB/s	       0 B/op	       2 allocs/op
PASS
`))
	if err != nil || len(times) != 2 || times[0].value != 29.5 || times[1].value != 31 || allocations != 2 {
		t.Errorf("got %v, %d, %v", times, allocations, err)
	}
	for _, bad := range []string{"PASS\n", "BenchmarkA 1 2 ns/op 0 B/op 0 allocs/op\nBenchmarkB 1 2 ns/op 0 B/op 0 allocs/op\n"} {
		if _, _, err := parseBenchmark([]byte(bad)); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// TestFeaturesHaveBenchmarks holds that each row's benchmark is there.
func TestFeaturesHaveBenchmarks(t *testing.T) {
	for _, r := range allFeatures() {
		name := regexp.MustCompile(`^\w+`).FindString(r.pattern)
		dir := "../internal/" + r.folder
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range files {
			text, _ := os.ReadFile(dir + "/" + f.Name())
			found = found || strings.Contains(string(text), "func Benchmark"+name+"(b *testing.B)")
		}
		if !found {
			t.Errorf("%s: %s has no Benchmark%s", r.title, dir, name)
		}
	}
}
