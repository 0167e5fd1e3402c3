package importer

import "strings"

// Row is the verdict of directives that need no look at their arguments.
type Row struct {
	// Names are the directives, with spaces between them.
	Names   string
	Verdict Verdict
	Note    string

	byItself bool // Same or Close, and headgate does it without a field
}

// NewRow returns the row of some names for which nothing is in the document: its verdict
// is Ignored or Impossible.
func NewRow(names string, v Verdict, note string) Row {
	return Row{Names: names, Verdict: v, Note: note}
}

// NewDefault returns the row of some names that ask for what headgate does without a
// field: its verdict is Same or Close.
func NewDefault(names string, v Verdict, note string) Row {
	return Row{Names: names, Verdict: v, Note: note, byItself: true}
}

// Table has the row of each directive.
type Table map[string]Row

// NewTable returns the table of rows. Where a name is in two of them, the first one has
// it.
func NewTable(rows []Row) Table {
	t := Table{}
	for _, row := range rows {
		for name := range strings.FieldsSeq(row.Names) {
			if _, ok := t[name]; !ok {
				t[name] = row
			}
		}
	}
	return t
}
