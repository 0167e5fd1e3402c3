package importer

import "strings"

// Row is the verdict of directives that need no look at their arguments.
type Row struct {
	names    string // the directives, with spaces between them
	verdict  Verdict
	note     string
	byItself bool // Same or Close, and headgate does it without a field
}

// NewRow returns the row of some names for which nothing is in the document: its verdict
// is Ignored or Impossible.
func NewRow(names string, o Omission, note string) Row {
	return Row{names: names, verdict: Verdict(o), note: note}
}

// NewDefault returns the row of some names for what headgate does without a field:
// its verdict is Same or Close.
func NewDefault(names string, v Verdict, note string) Row {
	return Row{names: names, verdict: v, note: note, byItself: true}
}

// Table has the row of each directive.
type Table map[string]Row

// Has reports whether there is a row of a name.
func (t Table) Has(name string) bool { _, ok := t[name]; return ok }

// NewTable returns the table of rows. Where a name is in two of them, the first one has
// it.
func NewTable(rows []Row) Table {
	t := Table{}
	for _, row := range rows {
		for name := range strings.FieldsSeq(row.names) {
			if _, ok := t[name]; !ok {
				t[name] = row
			}
		}
	}
	return t
}
