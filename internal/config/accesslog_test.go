package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestFilesOfAccessLogsAreBounded holds that as many proxies as one likes may share a
// file, and that there are not more files than may be.
func TestFilesOfAccessLogsAreBounded(t *testing.T) {
	text := func(files int) string {
		var b strings.Builder
		b.WriteString("version: 1\nproxies:\n")
		for i := range 2 * maxLogs {
			fmt.Fprintf(&b, "  p%03d: {virtual_hosts: [p%d.test], access_log: {path: ./log%d}, routes: [{fixed_response: {status: 204}}]}\n", i, i, i%files)
		}
		return b.String()
	}
	for files, want := range map[int]int{maxLogs: 0, maxLogs + 1: 1} {
		_, _, problems := Load("test.yaml", []byte(text(files)))
		if len(problems) != want {
			t.Errorf("%d files: got %v", files, problems)
		}
	}
}
