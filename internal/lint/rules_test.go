package lint_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"headgate/internal/lint"
)

// TestRules proves that each rule can fail. A script is a small module; its file
// named want lists the findings as "file:line: rule: problem". What the module
// lacks and the script is not about (go.mod, layers, dependencies) is filled in.
func TestRules(t *testing.T) {
	scripts, err := filepath.Glob("testdata/rules/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(script)
			if err != nil {
				t.Fatal(err)
			}
			files, want := module(archive)
			tree, err := lint.Load(files)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range lint.Check(tree) {
				if f.Remedy == "" {
					t.Errorf("%s has no remedy", f)
				}
				got += fmt.Sprintf("%s:%d: %s: %s\n", f.File, f.Line, f.Rule, f.Problem)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// module returns the files of a script, and what it wants to be found.
func module(archive *txtar.Archive) (files fstest.MapFS, want string) {
	files = fstest.MapFS{
		"go.mod":                   {Data: []byte("module example\n\ngo 1.26\n")},
		"deps.txt":                 {},
		"internal/lint/layers.txt": {Data: []byte("cmd/*\nfeature/* *\n")},
	}
	for _, f := range archive.Files {
		if f.Name == "want" {
			want = string(f.Data)
			continue
		}
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return files, want
}

// TestEveryRuleHasAScript fails when a rule is added and nothing proves that it
// can fail.
func TestEveryRuleHasAScript(t *testing.T) {
	for _, name := range lint.RuleNames() {
		if scripts, _ := filepath.Glob("testdata/rules/" + name + "*.txtar"); len(scripts) == 0 {
			t.Errorf("rule %s has no testdata/rules/%s.txtar", name, name)
		}
	}
}

// TestLongFile has no script because it would be long.
func TestLongFile(t *testing.T) {
	files, _ := module(&txtar.Archive{})
	head := "// Package a is long.\npackage a\n"
	files["internal/a/a.go"] = &fstest.MapFile{Data: []byte(head + strings.Repeat("\n", 699))}
	files["internal/a/b.go"] = &fstest.MapFile{Data: []byte("package a\n" + strings.Repeat("\n", 699))}
	tree, err := lint.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	found := lint.Check(tree)
	if len(found) != 1 || found[0].Rule != "length" || found[0].File != "internal/a/a.go" {
		t.Errorf("got %v, want one finding of length in internal/a/a.go", found)
	}
}

// TestFindingString is the form that editors and terminals make a link of.
func TestFindingString(t *testing.T) {
	f := lint.Finding{File: "a/b.go", Line: 3, Rule: "init", Problem: "what is wrong", Remedy: "what to do"}
	if got, want := f.String(), "a/b.go:3: init: what is wrong; what to do"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
