package main

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// apply turns old into new by the edits, and says what old they stand for.
func apply(edits []edit) (old, new string) {
	for _, e := range edits {
		if e.mark != '+' {
			old += e.text
		}
		if e.mark != '-' {
			new += e.text
		}
	}
	return old, new
}

func TestEditsTurnOneTextIntoTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n"}), 0, 12).Draw(t, "lines"), "")
		})
		old, new := text.Draw(t, "old"), text.Draw(t, "new")
		gotOld, gotNew := apply(lineEdits(splitLines([]byte(old)), splitLines([]byte(new))))
		if gotOld != old || gotNew != new {
			t.Fatalf("got %q to %q, want %q to %q", gotOld, gotNew, old, new)
		}
	})
}

func TestUnifiedDiffHasThreeLinesAround(t *testing.T) {
	old := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16"
	new := strings.Replace(strings.Replace(old, "5\n", "five\n", 1), "16", "16\n17\n", 1)
	got := unifiedDiff("f", []byte(old), []byte(new))
	want := `--- f
+++ f (formatted)
@@ -2,7 +2,7 @@
 2
 3
 4
-5
+five
 6
 7
 8
@@ -13,4 +13,5 @@
 13
 14
 15
-16
\ No newline at end of file
+16
+17
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
