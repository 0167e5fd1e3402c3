//go:build unix

package files

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"headgate/internal/exchange"
)

// A pipe without a writer would hold the request for ever.
func TestPipesAndSocketsAreNotOpened(t *testing.T) {
	root := tree(t, map[string]string{"index.html": "x"})
	if err := unix.Mkfifo(filepath.Join(root, "pipe.txt"), 0o644); err != nil {
		t.Skip(err)
	}
	if l, err := net.Listen("unix", filepath.Join(root, "s.txt")); err == nil { // a path may be too long for one
		defer l.Close()
	}
	s := newSite(t, Config{Root: root, Listing: true, Index: []string{"none.html"}}, exchange.Route{Strip: true})
	for _, target := range []string{"/pipe.txt", "/s.txt"} {
		if ex, _ := s.get("GET", target); ex.Reason != exchange.NotFound {
			t.Errorf("%s: %v %s", target, ex.Reason, ex.Cause)
		}
	}
	if _, text := s.get("GET", "/"); len(text) == 0 || strings.Contains(text, "pipe.txt") || strings.Contains(text, ">s.txt<") {
		t.Errorf("the listing shows them:\n%s", text)
	}
}
