package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf16"
	"unicode/utf8"

	"headgate/internal/setting/shown"
)

// table writes rows with their columns below each other.
type table struct{ w *tabwriter.Writer }

func newTable(out io.Writer, columns ...string) *table {
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row adds a row. What would break the table, or drive a terminal, is left out.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t *table) end() error { return t.w.Flush() }

// printable replaces control characters: what strangers have sent is shown to a terminal.
func printable(s string) string { return shown.Text(s, '?') }

// screen is a writer of pages for people: lines and tabs stay, and what else would drive
// a terminal is left out. A character is to come whole in one Write.
type screen struct{ w io.Writer }

// Write writes p. The error is that of the underlying writer.
func (s screen) Write(p []byte) (int, error) {
	text := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && shown.Drives(r) {
			return '?'
		}
		return r
	}, string(p))
	if _, err := io.WriteString(s.w, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plainJSON returns an equivalent JSON text without control sequences of terminals: their
// characters are written as \u009b.
func plainJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && shown.Drives(r) }) {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		switch {
		case r == '\n', r == '\t', !shown.Drives(r):
			b = utf8.AppendRune(b, r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				b = fmt.Appendf(b, "\\u%04x", unit)
			}
		}
	}
	return b
}
