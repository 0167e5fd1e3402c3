// Package importer is what the importers of other proxies' configurations have in
// common. A Translation holds the document that an importer writes and the report in
// which every Part of the source has a verdict; a Table has the verdicts of directives
// that need no look at their arguments. It reads nothing itself; a folder below it does
// for each proxy.
package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Verdict is what became of a directive.
type Verdict string

// The verdicts of directives that are in the document: Translation.Became assigns them,
// with the field that the directive became.
const (
	// Same says that headgate does the same.
	Same Verdict = "same"
	// Close says that headgate does nearly the same; the note says the difference.
	Close Verdict = "close"
)

// Omission is a verdict of a directive for which nothing is in the document. It is a type
// of its own so that Translation.Say accepts neither Same nor Close.
type Omission string

// The omissions, which are verdicts, too.
const (
	// Ignored says that nothing has to be done; the note says why.
	Ignored = "ignored"
	// Impossible says that headgate cannot do it; the note says why, and what else
	// helps.
	Impossible = "not_possible"
)

// Entry is one directive of the source.
type Entry struct {
	// File is where it is defined.
	File string `json:"file"`
	// Line is its line there.
	Line int `json:"line"`
	// Directive is its text, shortened.
	Directive string `json:"directive"`
	// Verdict is what became of it: same, close, ignored or not_possible.
	Verdict Verdict `json:"verdict"`
	// Note is the reason or the difference.
	Note string `json:"note,omitempty"`
	// Became are the fields of the document that it became, such as
	// proxies.app.routes[0].servers[1], at most 8; "default" is what headgate does without
	// a field. Only same and close have any.
	Became []string `json:"became,omitempty"`
}

// Report is what became of every directive.
type Report struct {
	// Source is the proxy that the configuration is for.
	Source string `json:"source"`
	// Entries are in the order of the source.
	Entries []Entry `json:"entries"`
	// Counts are the entries by verdict.
	Counts map[Verdict]int `json:"counts"`
	// Check is what a person should look at before the document is used.
	Check []string `json:"check,omitempty"`
	// Files are certificates and keys that the source holds inside of itself, by the
	// names that the document has for them: paths below the document's own folder.
	Files map[string][]byte `json:"-"`
}

// filesFolder is where what a source holds inside of itself is written.
const filesFolder = "imported"

// Keep adds a file that is written beside the document and returns its name there.
func (r *Report) Keep(name string, data []byte) string {
	if r.Files == nil {
		r.Files = map[string][]byte{}
	}
	name = filesFolder + "/" + strings.Map(func(c rune) rune {
		if c == '/' || c == '\\' || c < ' ' {
			return '-'
		}
		return c
	}, name)
	r.Files[name] = data
	return name
}

// maxDirective bounds the text of a directive in a report.
const maxDirective = 200

// Add adds an entry.
func (r *Report) Add(e Entry) {
	if runes := []rune(e.Directive); len(runes) > maxDirective {
		e.Directive = string(runes[:maxDirective]) + "…"
	}
	r.Entries = append(r.Entries, e)
}

// Finish puts the entries in order and counts them.
func (r *Report) Finish(files []string) {
	rank := map[string]int{}
	for i, name := range files {
		if _, twice := rank[name]; !twice {
			rank[name] = i + 1
		}
	}
	slices.SortStableFunc(r.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), cmp.Compare(a.Line, b.Line))
	})
	r.Counts = map[Verdict]int{Same: 0, Close: 0, Ignored: 0, Impossible: 0}
	for _, e := range r.Entries {
		r.Counts[e.Verdict]++
	}
}

// Summary is one line about the whole.
func (r *Report) Summary() string {
	return fmt.Sprintf("%d directives: %d the same, %d close, %d ignored, %d not possible",
		len(r.Entries), r.Counts[Same], r.Counts[Close], r.Counts[Ignored], r.Counts[Impossible])
}
