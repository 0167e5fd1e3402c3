package main

import (
	"io"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const in = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"fine\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"bad\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL p\n"}
{"Action":"fail","Package":"p"}
{"Action":"pass","Package":"q","Elapsed":20.4}
plain text
`
	var shown, results strings.Builder
	tally := newTally(&shown, &results)
	if err := tally.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	if got, want := shown.String(), "bad\nFAIL p\nnote: 20 s in q\nplain text\n"; got != want {
		t.Errorf("shown: got %q, want %q", got, want)
	}
	if got, want := results.String(), "pass p.TestA\nfail p.TestB\nskip p.TestC\n"; got != want {
		t.Errorf("results: got %q, want %q", got, want)
	}
	if !tally.failed {
		t.Error("got passed, want failed")
	}
	if got, want := tally.again(), "p TestB\n"; got != want {
		t.Errorf("again: got %q, want %q", got, want)
	}
}

// When the time of a program is over, the test that ran has no result of its own.
func TestHowAProgramEndedBeforeItsTimeIsShown(t *testing.T) {
	const in = `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out after 8m0s\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"goroutine 1 [running]:\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== PAUSE TestB\n"}
{"Action":"output","Package":"p","Output":"FAIL p 480s\n"}
{"Action":"fail","Package":"p"}
`
	var shown strings.Builder
	tally := newTally(&shown, io.Discard)
	if err := tally.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	if got, want := shown.String(), "FAIL p 480s\npanic: test timed out after 8m0s\ngoroutine 1 [running]:\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if tally.again() != "" {
		t.Error("it may be run again")
	}
}

func TestWhatASecondRunMustNotHide(t *testing.T) {
	for name, in := range map[string]string{
		"data race": `{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`,
		"panic": `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`,
		"package": `{"Action":"fail","Package":"p"}
`,
		"build": `{"ImportPath":"p","Action":"build-fail"}
`,
	} {
		tally := newTally(io.Discard, io.Discard)
		if err := tally.read(strings.NewReader(in)); err != nil {
			t.Fatal(err)
		}
		if got := tally.again(); got != "" || !tally.failed {
			t.Errorf("%s: again: got %q, want nothing", name, got)
		}
	}
}

func TestBuildFailure(t *testing.T) {
	const in = `{"ImportPath":"p","Action":"build-output","Output":"p.go:1: no\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p"}
`
	var shown, results strings.Builder
	tally := newTally(&shown, &results)
	if err := tally.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	if shown.String() != "p.go:1: no\n" || !tally.failed {
		t.Errorf("got %q, failed %v", shown.String(), tally.failed)
	}
	if got, want := results.String(), "fail p\n"; got != want {
		t.Errorf("results: got %q, want %q", got, want)
	}
}
