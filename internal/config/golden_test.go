package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate/internal/config/decode"
	"headgate/internal/config/format"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a golden file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// sources returns the YAML files of a folder of test data.
func sources(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	out := map[string][]byte{}
	for _, path := range paths {
		if out[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestProblemsAreToldAllAtOnce(t *testing.T) {
	for path, data := range sources(t, "problems") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, _, problems := Load(filepath.Base(path), data)
			if c != nil || len(problems) == 0 {
				t.Fatalf("Load = %v, %v; want problems", c, problems)
			}
			var b strings.Builder
			for _, p := range problems {
				b.WriteString(p.Error() + "\n")
				if p.Object != "" {
					b.WriteString("    in " + p.Object + "\n")
				}
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".golden", b.String())
		})
	}
}

func TestFormatIsCanonicalAndStable(t *testing.T) {
	for path, data := range sources(t, "format") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			out, problems := format.Canonical(data, Describe())
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".golden", string(out))
			again, problems := format.Canonical(out, Describe())
			if diff := cmp.Diff(string(out), string(again)); diff != "" || len(problems) > 0 {
				t.Errorf("formatted twice (-once +twice): %v\n%s", problems, diff)
			}
			sameConfig(t, data, out)
		})
	}
}

// sameConfig fails when two files do not mean the same.
func sameConfig(t *testing.T, before, after []byte) {
	t.Helper()
	l := loader{expand: &decode.Expander{
		Lookup: func(name string) (string, bool) { return "value of " + name, true },
		Read:   func(path string) ([]byte, error) { return []byte("content of " + path), nil },
	}}
	a, _, problemsA := l.load(one("f", before))
	b, _, problemsB := l.load(one("f", after))
	if len(problemsA) != len(problemsB) {
		t.Errorf("%d problems before, %d after formatting", len(problemsA), len(problemsB))
	}
	if diff := cmp.Diff(a, b, comparers()...); diff != "" {
		t.Errorf("formatting changed the meaning (-before +after):\n%s", diff)
	}
}
