// Tally reads the output of go test -json. It shows what failed and what is slow,
// appends each test's result to a file, and fails when anything failed. Another file
// gets the tests that are worth a second run.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	results := flag.String("results", os.DevNull, "`file` to which lines of result and test are appended")
	again := flag.String("again", os.DevNull, "`file` to which lines of package and test are written that may be run once more")
	flag.Parse()
	file, err := os.OpenFile(*results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	t := newTally(os.Stdout, file)
	if err := t.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := file.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := os.WriteFile(*again, []byte(t.again()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if t.failed {
		os.Exit(1)
	}
}

// event is one line of go test -json; go doc test2json tells of its fields.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64 // in seconds
}

// slow is from when on a package or a test is told of, in seconds.
const slow = 15

// tally follows one run of go test.
type tally struct {
	shown   io.Writer
	results io.Writer
	output  map[string][]string // by test, until its result is known
	failing map[string]bool     // packages of which a test failed
	failed  bool
	lost    []string // package and test, a line each, of the outermost tests that failed
	final   bool     // something failed that a second run must not hide
}

func newTally(shown, results io.Writer) *tally {
	return &tally{shown: shown, results: results, output: map[string][]string{}, failing: map[string]bool{}}
}

// read reads events to the end. What is no event is shown as it is: the go
// command says some things in plain text.
func (t *tally) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(t.shown, "%s", line)
			} else {
				t.event(e)
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

func (t *tally) event(e event) {
	name := e.Package
	if e.Test != "" {
		name += "." + e.Test
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.shown, e.Output)
	case "build-fail":
		t.failed, t.final = true, true
	case "output":
		t.output[name] = append(t.output[name], e.Output)
	case "fail":
		t.failed = true
		for _, line := range t.output[name] {
			fmt.Fprint(t.shown, line)
			t.final = t.final || strings.Contains(line, "DATA RACE") || strings.HasPrefix(line, "panic:")
		}
		if e.Test == "" {
			t.broken(e.Package)
		}
		t.lose(e)
		t.result(e, name)
	case "pass", "skip":
		t.result(e, name)
	}
	if e.Elapsed >= slow && !strings.Contains(e.Test, "/") {
		fmt.Fprintf(t.shown, "note: %.0f s in %s\n", e.Elapsed, name)
	}
}

// longestPanic is how many lines are shown of a test that ended its program.
const longestPanic = 300

// broken shows how a program of tests ended before its time, which a test without a result
// says: a panic, or how all goroutines stood when its time was over.
func (t *tally) broken(program string) {
	for _, name := range slices.Sorted(maps.Keys(t.output)) {
		lines := t.output[name]
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "panic:") })
		if at < 0 || !strings.HasPrefix(name, program+".") {
			continue
		}
		for _, line := range lines[at:min(len(lines), at+longestPanic)] {
			fmt.Fprint(t.shown, line)
		}
		delete(t.output, name)
	}
}

// lose notes what a second run would have to show. A package that failed without a
// test of its own cannot show anything.
func (t *tally) lose(e event) {
	switch {
	case e.Test == "":
		t.final = t.final || !t.failing[e.Package]
	case !strings.Contains(e.Test, "/"):
		t.lost = append(t.lost, e.Package+" "+e.Test+"\n")
	}
}

// again returns a line of package and test for each test that may be run once more.
func (t *tally) again() string {
	if t.final {
		return ""
	}
	return strings.Join(t.lost, "")
}

// result notes a test's result. A package counts when it failed and none of its
// tests did: it does not build, or it ended before its time.
func (t *tally) result(e event, name string) {
	delete(t.output, name)
	switch {
	case e.Test != "" && e.Action == "fail":
		t.failing[e.Package] = true
	case e.Test != "":
	case e.Action != "fail" || t.failing[e.Package]:
		return
	}
	fmt.Fprintln(t.results, e.Action, name)
}
