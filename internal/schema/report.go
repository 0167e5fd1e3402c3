package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/setting/shown"
)

// Problem is one thing an operator has to mend in a configuration.
type Problem struct {
	// File is the configuration's name, "" when it came from elsewhere.
	File string `json:"file,omitempty"`
	// Line says where it is, counted from 1; 0 when nobody knows.
	Line int `json:"line,omitempty"`
	// Column says where in the line, counted from 1; 0 when nobody knows.
	Column int `json:"column,omitempty"`
	// Object is the object's kind and name: "proxy shop, route /api".
	Object string `json:"object,omitempty"`
	// Field is the path of the field: "proxies.shop.routes[0].path".
	Field string `json:"field,omitempty"`
	// What is wrong, in lower case and without a full stop.
	What string `json:"what"`
	// Remedy is what mends it, in the same form; "" when What says it all.
	Remedy string `json:"remedy,omitempty"`
}

// Error returns the problem in the form that compilers use, so that editors
// find the place: "headgate.yaml:12:7: proxies.shop.routes[0].path: …; …".
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		b.WriteByte(':')
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	switch {
	case p.Field != "":
		b.WriteString(shown.Short(p.Field, maxText) + ": ")
	case p.Object != "":
		b.WriteString(p.Object + ": ")
	}
	b.WriteString(p.What)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// Positions knows where in a file a field stands.
type Positions interface {
	// Position returns line and column of the field with this path, or of the
	// nearest object around it; 0, 0 when nothing is known.
	Position(path string) (line, column int)
	// File returns the name of the file that holds the field, "" when nothing is
	// known.
	File(path string) string
}

// maxText bounds each text of a problem, in bytes: a value that it repeats may be as long
// as a configuration.
const maxText = 512

// maxProblems bounds a report. A file with more problems than this has one.
const maxProblems = 1000

// Report collects problems. It is not safe for use by several goroutines at
// once.
type Report struct {
	file      string
	positions Positions
	problems  []Problem
	notes     []Problem
	dropped   int
	// told are the fields that have a problem: true when nothing of their value
	// could be read.
	told map[string]bool
}

// NewReport returns an empty report for the configuration with this name.
// Positions may be nil when it did not come from a file.
func NewReport(file string, positions Positions) *Report {
	return &Report{file: file, positions: positions, told: map[string]bool{}}
}

// Add adds a problem. File, and Line and Column when they are 0, are filled in
// from what the report knows of the field. A problem without a place of its own
// is left out when its field has one already, or when nothing could be read of
// an object around it: it would only follow from that one. Past 1 000 problems
// they are counted and left out.
func (r *Report) Add(p Problem) {
	if p.Line == 0 && p.Field != "" && r.follows(p.Field) {
		return
	}
	if len(r.problems) >= maxProblems {
		r.dropped++
		return
	}
	r.place(&p)
	if _, ok := r.told[p.Field]; !ok {
		r.told[p.Field] = false
	}
	r.problems = append(r.problems, p.short())
}

// short returns p with bounded texts. The field stays whole: it is what others find the
// object by.
func (p Problem) short() Problem {
	for _, text := range []*string{&p.Object, &p.What, &p.Remedy} {
		*text = shown.Short(*text, maxText)
	}
	return p
}

// SetFile says which file is being read: problems with a line of their own stand in
// it. "" asks the positions.
func (r *Report) SetFile(name string) { r.file = name }

// place fills in where a problem stands.
func (r *Report) place(p *Problem) {
	if p.Line == 0 && p.File == "" && r.positions != nil {
		p.Line, p.Column = r.positions.Position(p.Field)
		if name := r.positions.File(p.Field); name != "" {
			p.File = name
		}
	}
	if p.File == "" {
		p.File = r.file
	}
}

// follows reports whether a problem of this field was told already, or follows
// from one that was.
func (r *Report) follows(field string) bool {
	if _, ok := r.told[field]; ok {
		return true
	}
	for i := range len(field) {
		if (field[i] == '.' || field[i] == '[') && r.told[field[:i]] {
			return true
		}
	}
	return r.told[""]
}

// Empty reports whether nothing is wrong.
func (r *Report) Empty() bool { return len(r.problems) == 0 }

// Problems returns the problems in the order of the file. The last one says how
// many were left out, if any were.
func (r *Report) Problems() []Problem {
	out := slices.Clone(r.problems)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Field, b.Field))
	})
	if r.dropped > 0 {
		out = append(out, Problem{File: r.file, What: fmt.Sprintf("%d more problems are not shown", r.dropped)})
	}
	return out
}

// Root returns the place of the whole configuration.
func (r *Report) Root() Place { return Place{report: r} }

// Notes returns what an operator should know of the configuration, in the order of
// the file. A note is no reason to refuse it.
func (r *Report) Notes() []Problem {
	out := slices.Clone(r.notes)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Field, b.Field))
	})
	return out
}

// MaxNotes bounds the notes of a report; more are left out.
const MaxNotes = 100

// Place is where a check looks: an object or a field, known by its path. It is
// cheap to make and to copy; its path is put together only for a problem.
type Place struct {
	report *Report
	parent *Place
	name   string
	index  int
	kind   string
	called string
}

// Root returns the place of the whole configuration p is part of.
func (p Place) Root() Place { return p.report.Root() }

// Field returns the place of a field of the object at p.
func (p Place) Field(name string) Place {
	return Place{report: p.report, parent: &p, name: name, index: -1}
}

// Index returns the place of the element i of the list at p.
func (p Place) Index(i int) Place { return Place{report: p.report, parent: &p, index: i} }

// Called returns p with the words that name its object: its kind ("proxy",
// "route") and its name, which may be empty. The words of the objects around it
// are put in front of them.
func (p Place) Called(kind, name string) Place {
	p.kind, p.called = kind, name
	return p
}

// Name returns the last step of the path: a field, or the key of a map.
func (p Place) Name() string { return p.name }

// Path returns the path of p: "proxies.shop.routes[0].path".
func (p Place) Path() string {
	if p.parent == nil {
		return p.name
	}
	before := p.parent.Path()
	if p.index >= 0 {
		return before + "[" + strconv.Itoa(p.index) + "]"
	}
	return JoinPath(before, p.name)
}

// JoinPath returns the path of the field name of the object at path. A name
// with a dot, a bracket or a quote stands in quotes and brackets.
func JoinPath(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\" ") {
		return path + "[" + strconv.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// Object returns the words for the object p is part of: "proxy shop, route
// /api".
func (p Place) Object() string {
	var words []string
	for at := &p; at != nil; at = at.parent {
		switch {
		case at.called != "":
			words = append(words, at.kind+" "+at.called)
		case at.kind != "":
			words = append(words, at.kind)
		}
	}
	slices.Reverse(words)
	return strings.Join(words, ", ")
}

// Problem adds a problem with what stands at p. Both texts are in lower case
// and without a full stop; remedy may be empty.
func (p Place) Problem(what, remedy string) {
	p.report.Add(Problem{Object: p.Object(), Field: p.Path(), What: what, Remedy: remedy})
}

// Note adds a note on what stands at p: something that works and is a bad idea.
// Both texts are in the form of a problem's.
func (p Place) Note(what, remedy string) {
	p.report.AddNote(Problem{Object: p.Object(), Field: p.Path(), What: what, Remedy: remedy})
}

// AddNote adds a note. What it does not say of its place is filled in.
func (r *Report) AddNote(n Problem) {
	if len(r.notes) < MaxNotes {
		r.place(&n)
		r.notes = append(r.notes, n.short())
	}
}

// ProblemAt is Problem for what stands at a known line and column.
func (p Place) ProblemAt(line, column int, what, remedy string) {
	if p.Full() {
		p.report.dropped++
		return
	}
	p.report.Add(Problem{Line: line, Column: column, Object: p.Object(), Field: p.Path(), What: what, Remedy: remedy})
}

// Broken is ProblemAt for a value of which nothing can be read: later problems
// of what is in it are left out.
func (p Place) Broken(line, column int, what, remedy string) {
	p.ProblemAt(line, column, what, remedy)
	p.report.told[p.Path()] = true
}

// Full reports whether further problems are only counted, so that nobody needs
// to work on their remedies.
func (p Place) Full() bool { return len(p.report.problems) >= maxProblems }

// Reported reports whether a problem of what stands at p was told already.
func (p Place) Reported() bool { return p.report.follows(p.Path()) }

// Problemf is Problem with what put together as by fmt.Sprintf.
func (p Place) Problemf(remedy, what string, args ...any) {
	p.Problem(fmt.Sprintf(what, args...), remedy)
}
