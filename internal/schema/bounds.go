package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Check returns a problem if a value of f is outside its bounds or not an allowed word, and
// how to fix it; what is "" if there is no problem. V is the value without its pointer.
func (f *Field) Check(v reflect.Value) (what, remedy string) {
	switch f.Type.Kind {
	case Int, Scalar:
		if v.CanInt() {
			return f.checkNumber(v)
		}
	case Text:
		return f.checkText(v.String())
	case List, Map:
		return f.checkLength(v.Len(), "entries"), ""
	}
	return "", ""
}

func (f *Field) checkNumber(v reflect.Value) (what, remedy string) {
	n := v.Int()
	switch {
	case f.Min != nil && n < *f.Min:
		return fmt.Sprintf("%v is below the minimum %s", v.Interface(), f.MinText), f.Bounds()
	case f.Max != nil && n > *f.Max:
		return fmt.Sprintf("%v is above the maximum %s", v.Interface(), f.MaxText), f.Bounds()
	}
	return "", ""
}

func (f *Field) checkText(text string) (what, remedy string) {
	if len(f.Enum) == 0 || slices.Contains(f.Enum, text) {
		return f.checkLength(len(text), "bytes"), ""
	}
	words := "write " + orList(f.Enum)
	if slices.Contains(f.Later, text) {
		return text + " is not in this version yet", words
	}
	if near := Nearest(text, slices.Concat(f.Enum, f.Later)); near != "" {
		words = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Sprintf("unknown value %q", text), words
}

func (f *Field) checkLength(n int, unit string) string {
	switch {
	case f.Max != nil && int64(n) > *f.Max:
		return fmt.Sprintf("%d %s, more than the maximum of %s", n, unit, f.MaxText)
	case f.Min != nil && int64(n) < *f.Min:
		return fmt.Sprintf("%d %s, fewer than the minimum of %s", n, unit, f.MinText)
	}
	return ""
}

// Bounds returns the remedy for a number out of bounds, "" without bounds.
func (f *Field) Bounds() string {
	switch {
	case f.MinText != "" && f.MinText == f.MaxText:
		return "write " + f.MinText
	case f.MinText != "" && f.MaxText != "":
		return fmt.Sprintf("write a value between %s and %s", f.MinText, f.MaxText)
	case f.MinText != "":
		return "write a value of at least " + f.MinText
	case f.MaxText != "":
		return "write a value of at most " + f.MaxText
	}
	return ""
}

// orList returns words as a phrase: "a, b or c".
func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// Nearest returns the known word that is most similar to word, or "" if none is similar
// enough. It tolerates a typing error for every three letters, counting a swap of two
// neighbours as one, and ignores case and the difference between "-", "_" and " ".
func Nearest(word string, known []string) string {
	const longest = 64
	if word == "" || len(word) > longest {
		return ""
	}
	folded := foldWord(word)
	best, bestDistance := "", max(1, len(folded)/3)+1
	for _, k := range known {
		if d := distance(folded, foldWord(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// foldWord removes from a word what does not distinguish words.
func foldWord(word string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(word))
}

// distance returns the number of insertions, deletions, substitutions and swaps of
// neighbours between a and b (optimal string alignment).
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
