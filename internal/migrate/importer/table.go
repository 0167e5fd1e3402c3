package importer

import "strings"

// Row is the verdict of directives that need no look at their arguments.
type Row struct {
	// Names are the directives, with spaces between them.
	Names   string
	Verdict Verdict
	Note    string
}

// NewRow returns the row of some names.
func NewRow(names string, v Verdict, note string) Row { return Row{names, v, note} }

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
