package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Origin is the position of a part of the source, and its verdict. The values that a
// reader makes of the source embed it, and so become a Part together with their Text.
type Origin struct {
	// File and Line are the position of the part.
	File string
	Line int

	settled bool
	entry   int // its place in the report, plus one; 0 is none
	verdict Verdict
}

// Place returns o; it makes every type that embeds an Origin nearly a Part.
func (o *Origin) Place() *Origin { return o }

// Settled reports whether the part has a verdict, or needs none.
func (o *Origin) Settled() bool { return o.settled }

// Verdict returns the verdict of the part, empty if it has none.
func (o *Origin) Verdict() Verdict { return o.verdict }

// Skip records that the part needs no entry of its own.
func (o *Origin) Skip() { o.settled = true }

// Reopen lets the part be translated again, such as for the next place at which it is
// used. What the report has of it stays.
func (o *Origin) Reopen() { o.settled = false }

// Part is a part of the source that has a verdict: a directive, a field, a label.
type Part interface {
	Place() *Origin
	// Text is the part as the report shows it, without secrets.
	Text() string
}

// Translation is an import under way: the document as far as it is made, and the report.
// An importer embeds it in what goes through its source. Its Objects are never empty.
type Translation struct {
	Report *Report
	// Parts of the document, by the names of their objects.
	Ports, ACME, Certificates, Upstreams, Lists, Geo, Bans, Policies, Proxies, TCP, UDP Object

	checks map[string]bool
	became map[*Origin]Field // of the parts with a verdict by Became
	groups []*group          // addresses that belong together
	large  []*group          // lists of addresses that no group has
}

// NewTranslation returns an empty translation of a configuration of source.
func NewTranslation(source string) *Translation {
	return &Translation{
		Report: &Report{Source: source}, checks: map[string]bool{}, became: map[*Origin]Field{},
		Ports: NewObject(), ACME: NewObject(), Certificates: NewObject(), Upstreams: NewObject(), Lists: NewObject(), Geo: NewObject(), Bans: NewObject(), Policies: NewObject(), Proxies: NewObject(), TCP: NewObject(), UDP: NewObject(),
	}
}

// AddVerdict adds a verdict to a part for which nothing is in the document, Ignored or
// Impossible, with the reason as a format; Became is for the others. The first verdict of a part
// is kept: AddVerdict reports whether this one was it. A part that was opened again keeps its
// entry, with the worse verdict.
func (t *Translation) AddVerdict(p Part, o Omission, note string, args ...any) bool {
	return t.addVerdict(p, Verdict(o), note, args...)
}

func (t *Translation) addVerdict(p Part, v Verdict, note string, args ...any) bool {
	o := p.Place()
	if o.settled {
		return false
	}
	if len(args) > 0 {
		note = fmt.Sprintf(note, args...)
	}
	o.settled = true
	if o.entry != 0 { // it was opened again: the worst of its verdicts counts
		if slices.Index(severity, v) > slices.Index(severity, o.verdict) {
			t.Amend(p, v, note)
		}
		return true
	}
	o.verdict = v
	t.Report.Add(Entry{File: o.File, Line: o.Line, Directive: p.Text(), Verdict: v, Note: note})
	o.entry = len(t.Report.Entries)
	return true
}

// severity has the verdicts, the worst last.
var severity = []Verdict{Ignored, Same, Close, Impossible}

// Amend changes the verdict that a part has, and adds to its note. It does nothing for
// a part without one.
func (t *Translation) Amend(p Part, v Verdict, note string) {
	o := p.Place()
	if o.entry == 0 {
		return
	}
	e := &t.Report.Entries[o.entry-1]
	switch {
	case strings.Contains(e.Note, note):
		note = e.Note
	case e.Note != "":
		note = e.Note + "; " + note
	}
	o.verdict, e.Verdict, e.Note = v, v, note
}

// Check notes what a person should look at before the document is used.
func (t *Translation) Check(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !t.checks[text] {
		t.checks[text] = true
		t.Report.Check = append(t.Report.Check, text)
	}
}

// maxName is the length of a name that is made of something in the source.
const maxName = 60

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Unused returns a name that no object of in has: wish in the letters that names have,
// otherwise where nothing of it is left.
func Unused(in Object, wish, otherwise string) string {
	name := strings.Trim(notInNames.ReplaceAllString(wish, "-"), "-._")
	if name = strings.TrimRight(name[:min(len(name), maxName)], "-."); name == "" {
		name = otherwise
	}
	for base, n := name, 2; in.Has(name); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// Finish writes the document and completes the report. Its head says what it was made
// from, and what each entry of the report is called. The entries come in the order of
// files.
func (t *Translation) Finish(from, each string, files []string) ([]byte, *Report, error) {
	t.shareAddresses()
	t.Verify()
	t.Report.Finish(files)
	data, err := t.document().Write("Made from " + from + " by headgate import.\n" + t.Report.Summary() + ".\nThe report says what became of every " + each + ".")
	return data, t.Report, err
}

// document returns the document as far as it is made.
func (t *Translation) document() Object {
	out := NewObject().Set("version", 1)
	for _, part := range []struct {
		name string
		o    Object
	}{{"ports", t.Ports}, {"acme", t.ACME}, {"certificates", t.Certificates}, {"upstreams", t.Upstreams}, {"lists", t.Lists}, {"geo", t.Geo}, {"bans", t.Bans}, {"policies", t.Policies}, {"proxies", t.Proxies}, {"tcp_proxies", t.TCP}, {"udp_proxies", t.UDP}} {
		if part.o.Len() > 0 {
			out.Set(part.name, part.o)
		}
	}
	return out
}
