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
	// Line is the line, counted from 1; 0 if unknown.
	Line int `json:"line,omitempty"`
	// Column is the column, counted from 1; 0 if unknown.
	Column int `json:"column,omitempty"`
	// Object is the object's kind and name: "proxy shop, route /api".
	Object string `json:"object,omitempty"`
	// Field is the path of the field: "proxies.shop.routes[0].path".
	Field string `json:"field,omitempty"`
	// What is wrong, in lower case and without a full stop.
	What string `json:"what"`
	// Remedy is how to fix it, in the same form; "" if What is sufficient.
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

// Positions maps fields to positions in files.
type Positions interface {
	// Position returns line and column of the field with this path, or of the nearest
	// object around it; 0, 0 if unknown.
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
	// reported are the fields that have a problem: true if their value could not be read.
	reported map[string]bool
}

// NewReport returns an empty report for the configuration with this name.
// Positions may be nil when it did not come from a file.
func NewReport(file string, positions Positions) *Report {
	return &Report{file: file, positions: positions, reported: map[string]bool{}}
}

// Add adds a problem. It fills in File, and Line and Column if they are 0. A problem
// without a position is omitted if its field already has one, or if an object around it
// could not be read: it would be a consequence. Problems beyond 1 000 are counted and
// omitted.
func (r *Report) Add(p Problem) {
	if p.Line == 0 && p.Field != "" && r.follows(p.Field) {
		return
	}
	if len(r.problems) >= maxProblems {
		r.dropped++
		return
	}
	r.place(&p)
	if _, ok := r.reported[p.Field]; !ok {
		r.reported[p.Field] = false
	}
	r.problems = append(r.problems, p.short())
}

// short returns p with shortened texts. The field is not shortened, because it identifies
// the object.
func (p Problem) short() Problem {
	for _, text := range []*string{&p.Object, &p.What, &p.Remedy} {
		*text = shown.Short(*text, maxText)
	}
	return p
}

// SetFile sets the file that is being read, for problems with a line. "" uses the
// positions.
func (r *Report) SetFile(name string) { r.file = name }

// place fills in the position of a problem.
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

// follows reports whether a problem of this field, or of an object around it, was reported
// already.
func (r *Report) follows(field string) bool {
	if _, ok := r.reported[field]; ok {
		return true
	}
	for i := range len(field) {
		if (field[i] == '.' || field[i] == '[') && r.reported[field[:i]] {
			return true
		}
	}
	return r.reported[""]
}

// Empty reports whether nothing is wrong.
func (r *Report) Empty() bool { return len(r.problems) == 0 }

// Problems returns the problems in the order of the file. The last one has the number of
// omitted problems, if any.
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

// Notes returns what an operator should know about the configuration, in the order of the
// file. Notes do not reject it.
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

// Called returns p with the description of its object: its kind ("proxy", "route") and its
// name, which may be empty. It follows the descriptions of the objects around it.
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

// JoinPath returns the path of the field name of the object at path. A name with a dot, a
// bracket or a quote is quoted in brackets.
func JoinPath(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\" ") {
		return path + "[" + strconv.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// Object returns the description of the object of p: "proxy shop, route /api".
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

// Problem adds a problem with the value at p. Both texts are in lower case and without a
// period; remedy may be empty.
func (p Place) Problem(what, remedy string) {
	p.report.Add(Problem{Object: p.Object(), Field: p.Path(), What: what, Remedy: remedy})
}

// Note adds a note on the value at p: a setting that works but is not recommended. The
// texts have the form of a problem's.
func (p Place) Note(what, remedy string) {
	p.report.AddNote(Problem{Object: p.Object(), Field: p.Path(), What: what, Remedy: remedy})
}

// AddNote adds a note, and fills in its position.
func (r *Report) AddNote(n Problem) {
	if len(r.notes) < MaxNotes {
		r.place(&n)
		r.notes = append(r.notes, n.short())
	}
}

// ProblemAt is Problem for a value at a known line and column.
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
	p.report.reported[p.Path()] = true
}

// Full reports whether further problems are only counted, so that remedies need not be
// computed.
func (p Place) Full() bool { return len(p.report.problems) >= maxProblems }

// Reported reports whether the value at p already has a problem.
func (p Place) Reported() bool { return p.report.follows(p.Path()) }

// Problemf is Problem with a format as in fmt.Sprintf.
func (p Place) Problemf(remedy, what string, args ...any) {
	p.Problem(fmt.Sprintf(what, args...), remedy)
}
