// Package lint holds the rules of the house that no common tool knows: layers,
// comments, names, the shape of a room, the list of dependencies. Load reads the
// source, Check returns every place where a rule is broken, and the package's
// test does both for this module.
//
// It parses the source itself and never asks the go command: a test that runs
// another program is cached by what it read itself, and would go on passing when
// a rule is broken. It knows no types; what needs them is left to vet and
// staticcheck.
package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
)

// Finding is one place where a rule is broken.
type Finding struct {
	// File is the path relative to the module, with slashes.
	File string
	// Line counts from 1; 0 stands for the file as a whole.
	Line int
	// Rule is the short name of the rule.
	Rule string
	// Problem says what is wrong.
	Problem string
	// Remedy says what to do about it.
	Remedy string
}

// String returns the finding on one line: file:line: rule: problem; remedy.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s; %s", f.File, max(f.Line, 1), f.Rule, f.Problem, f.Remedy)
}

// Check holds the tree against every rule and returns what it found, by file and
// line.
func Check(t *Tree) []Finding {
	var found []Finding
	for _, r := range rules() {
		r.check(t, func(file string, line int, problem string, args ...any) {
			found = append(found, Finding{
				File: file, Line: line, Rule: r.name,
				Problem: fmt.Sprintf(problem, args...), Remedy: r.remedy,
			})
		})
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Problem, b.Problem))
	})
	return slices.Compact(found)
}

// report records one finding.
type report func(file string, line int, problem string, args ...any)

// rule is one rule of the house.
type rule struct {
	name   string
	remedy string
	check  func(*Tree, report)
}

// rules returns every rule, in the order of STYLE.md.
func rules() []rule {
	return []rule{
		{"layers", "imports go down only: move the code, or give the package its line in internal/lint/layers.txt", checkLayers},
		{"dependency", "deps.txt has one line for each module that go.mod requires: its path, two spaces, and why", checkDependencies},
		{"init", "make a function that main calls, or a value that is ready as it stands", checkInit},
		{"blank-import", "import what is used by name; only embed may be blank", checkBlankImports},
		{"state", "a package variable never changes: keep what changes in a value with an owner", checkState},
		{"name", "name it by what it gives; docs/glossary.md has the words", checkNames},
		{"verb", "name what it does to what: acquire, parseHeader, reportFault; a noun is one that nginx, HAProxy, Envoy, Go or an RFC has", checkVerbs},
		{"words", "say which client, caller, goroutine, process or operator it is, and what happens; docs/language.md has examples", checkWords},
		{"length", "a file holds one idea: split it", checkLength},
		{"package-comment", "say in a comment above the package clause what the package is for, how to use it, and what it does not do", checkPackageComments},
		{"comment", "write a full sentence that begins with the name", checkComments},
		{"later", "do it, or open an issue and take the note out", checkNotes},
		{"room", "a room is a folder under internal/feature with config.go (type Config), guide.md and a test", checkRooms},
		{"status", "return an Answer with a Reason; the table in internal/exchange knows the status", checkStatus},
		{"pure", "a compile only makes values: have inputs load it, tell it by env.Note, and start it in a method Start of what is kept", checkPure},
		{"max", "the largest number of something begins with max", checkMax},
		{"log-key", "the log key of an error is \"error\"", checkLogKeys},
	}
}

// eachFile calls f for every parsed Go file.
func (t *Tree) eachFile(f func(*File)) {
	for _, p := range t.Packages {
		for _, file := range p.Files {
			f(file)
		}
	}
}

// eachSource calls f for every parsed Go file that is not a test.
func (t *Tree) eachSource(f func(*Package, *File)) {
	for _, p := range t.Packages {
		for _, file := range p.Files {
			if !file.Test {
				f(p, file)
			}
		}
	}
}

// line returns the line on which n begins.
func (t *Tree) line(n ast.Node) int { return t.fset.Position(n.Pos()).Line }
