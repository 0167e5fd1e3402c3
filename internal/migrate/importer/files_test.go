package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPatternsMatchAsThoseOfTheSystemDo(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a/1.conf", "a/2.conf", "a/.hidden.conf", "b/1.conf", "b/sub/3.conf", "b/[x].conf", "c.conf"} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	files := Files{}.Bounded(1<<20, "too large")
	for _, pattern := range []string{
		"a/*.conf", "*/*.conf", "*/*/*.conf", "*", "*.conf", "c.conf", "none.conf", "none/*.conf", "a/*.conf/x", "c.conf/*", "?/1.conf", "[ab]/*", "b/[[]x].conf",
		root + "/*/1.conf", root + "/a/", "./*/1.conf", "*/", "//*", "a//*.conf", "", "/",
		"[", "a/[", "[/x", `a/\*`,
	} {
		got, gotErr := files.Glob(pattern)
		want, wantErr := filepath.Glob(pattern)
		if !slices.Equal(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Errorf("%q: got %q, %v; want %q, %v", pattern, got, gotErr, want, wantErr)
		}
	}
}

func TestPatternsLookAtABoundedNumberOfNames(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		if err := os.MkdirAll(filepath.Join(root, fmt.Sprint(i), "in"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	all := &globber{left: 40}
	if got, err := all.glob(root + "/*/*"); len(got) != 20 || err != nil {
		t.Errorf("got %d names and %v", len(got), err)
	}
	for left := range 40 {
		few := &globber{left: left}
		if _, err := few.glob(root + "/*/*"); err == nil || !strings.Contains(err.Error(), "more than 100000 names of files would be looked at; name the folder") {
			t.Fatalf("with %d left: %v", left, err)
		}
	}
}
