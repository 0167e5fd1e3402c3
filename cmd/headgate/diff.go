package main

import (
	"fmt"
	"strings"
)

// diffContext is the number of equal lines around a difference.
const diffContext = 3

// edit is one line of a comparison: ' ' in both, '-' in the old text only, '+'
// in the new one only.
type edit struct {
	mark byte
	text string
}

// unifiedDiff returns what turns a file's old content into the new one, in the
// form of "diff -u".
func unifiedDiff(name string, old, new []byte) string {
	edits := lineEdits(splitLines(old), splitLines(new))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s (formatted)\n", name, name)
	oldLine, newLine := 1, 1
	for begin := 0; begin < len(edits); {
		end := hunkEnd(edits, begin)
		if end == begin { // an equal line far from every difference
			oldLine, newLine, begin = oldLine+1, newLine+1, begin+1
			continue
		}
		olds, news := 0, 0
		for _, e := range edits[begin:end] {
			if e.mark != '+' {
				olds++
			}
			if e.mark != '-' {
				news++
			}
		}
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", oldLine, olds, newLine, news)
		for _, e := range edits[begin:end] {
			b.WriteByte(e.mark)
			b.WriteString(e.text)
			if !strings.HasSuffix(e.text, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
		oldLine, newLine, begin = oldLine+olds, newLine+news, end
	}
	return b.String()
}

// hunkEnd returns where the hunk that begins at begin ends, or begin if none
// begins there.
func hunkEnd(edits []edit, begin int) int {
	last := -1
	for i := begin; i < len(edits); i++ {
		if edits[i].mark != ' ' {
			last = i
			continue
		}
		if last < 0 && i-begin >= diffContext {
			return begin
		}
		if last >= 0 && i-last > 2*diffContext {
			break
		}
	}
	if last < 0 {
		return begin
	}
	return min(len(edits), last+1+diffContext)
}

// splitLines splits a text after each line end.
func splitLines(text []byte) []string {
	lines := strings.SplitAfter(string(text), "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// lineEdits returns the edits that turn old into new. Lines that begin and end
// both are set aside; of the rest the longest common part is kept, or nothing
// when it is too long to compare.
func lineEdits(old, new []string) []edit {
	var head, tail []edit
	for len(old) > 0 && len(new) > 0 && old[0] == new[0] {
		head = append(head, edit{' ', old[0]})
		old, new = old[1:], new[1:]
	}
	for len(old) > 0 && len(new) > 0 && old[len(old)-1] == new[len(new)-1] {
		tail = append(tail, edit{' ', old[len(old)-1]})
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	edits := append(head, compareRest(old, new)...)
	for i := len(tail) - 1; i >= 0; i-- {
		edits = append(edits, tail[i])
	}
	return edits
}

// maxCompare bounds the memory of a comparison, in cells of its table.
const maxCompare = 16 << 20

func compareRest(old, new []string) []edit {
	var edits []edit
	if len(old)*len(new) <= maxCompare {
		edits, old, new = compareTable(old, new)
	}
	for _, line := range old {
		edits = append(edits, edit{'-', line})
	}
	for _, line := range new {
		edits = append(edits, edit{'+', line})
	}
	return edits
}

// compareTable finds the longest common part. It returns what is left of the
// texts when one of them has ended.
func compareTable(old, new []string) (edits []edit, restOld, restNew []string) {
	width := len(new) + 1
	length := make([]int32, (len(old)+1)*width) // of the common part from i, j on
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(new) - 1; j >= 0; j-- {
			if old[i] == new[j] {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(old) && j < len(new) {
		switch {
		case old[i] == new[j]:
			edits = append(edits, edit{' ', old[i]})
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			edits = append(edits, edit{'-', old[i]})
			i++
		default:
			edits = append(edits, edit{'+', new[j]})
			j++
		}
	}
	return edits, old[i:], new[j:]
}
