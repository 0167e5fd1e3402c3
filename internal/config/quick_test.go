package config

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// sameTree tells where two trees differ in what Load looks at.
func sameTree(a, b *yaml.Node) string {
	if a.Kind != b.Kind || a.Style != b.Style || a.Value != b.Value || a.Line != b.Line || a.Column != b.Column || len(a.Content) != len(b.Content) {
		return strings.TrimSpace(describeNode(a) + " against " + describeNode(b))
	}
	for i := range a.Content {
		if diff := sameTree(a.Content[i], b.Content[i]); diff != "" {
			return diff
		}
	}
	return ""
}

func describeNode(n *yaml.Node) string {
	return Problem{File: "node", Line: n.Line, Column: n.Column, What: found(n)}.Error()
}

// againstLibrary fails when quick reads a file in another way than the library.
func againstLibrary(t *testing.T, data []byte) (read bool) {
	t.Helper()
	if checkBytes("f", data) != nil {
		return false
	}
	root := parseQuick(data)
	if root == nil {
		return false
	}
	doc, p := parse("f", data)
	if p != nil {
		t.Fatalf("quick reads what the library refuses: %s\n%q", p.Error(), data)
	}
	if diff := sameTree(root, doc.Content[0]); diff != "" {
		t.Fatalf("quick and the library differ: %s\n%q", diff, data)
	}
	return true
}

func TestQuickReadsAsTheLibraryDoes(t *testing.T) {
	if !againstLibrary(t, []byte(example)) {
		t.Error("the example is not for quick")
	}
	for path, data := range sources(t, "problems") {
		t.Log(path, againstLibrary(t, data))
	}
	for path, data := range sources(t, "format") {
		t.Log(path, againstLibrary(t, data))
	}
	for _, text := range []string{
		"a: 1", "a:\n  b: c # d\n# e\n\n  f: [g, {h: i}, \"j\", 'k', []]\n",
		"a:\n- b: c\n  d: e\n-   f: g\n    h:\n      - i\n      - /j/k.l\n", "a:   x  y   # z", "a: {}\nb: []\n",
		"a: http://x:80/#b\nc: x#y\n", "a:\n    - {b: c}   # d\n    - e\n",
	} {
		if !againstLibrary(t, []byte(text)) {
			t.Errorf("not for quick: %q", text)
		}
	}
}

func TestQuickGivesUp(t *testing.T) {
	for _, text := range []string{
		"", "#", "a", "- a", "a:", "a:\nb: c", "a: &b c", "a: *b", "a: !b c", "a: |\n  b", "a: >\n  b", "? a", "a: b: c",
		"a: b\n  c", "a: b\n  c: d", "a: \"b\n  c\"", "a: \"b\\n\"", "a: 'b''c'", "a: [b\n  ]", "a: [b, ]", "a: [b: c]", "a: {b}", "a: {b: }",
		"a: [b c]", "a: [b #c\n]", "\ta: b", "a: b\r\n", " a: b", "a: ü", "<<: b", "\"a\": b", "--- \na: b", "a: b\n...\n", "a: \"b\"c",
		"a:\n  b: c\n d: e", "a:\n - - b", "a:\n -\n  b", "a: - b", "a: b\n- c", "a:\n- b\nc", "a: [b]c", "a: [b]#c", "a: %b", "a: @b", "a: ``",
		"a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40),
	} {
		if parseQuick([]byte(text)) != nil {
			t.Errorf("quick read %q", text)
		}
	}
}

// FuzzQuick holds quick to the library's reading.
func FuzzQuick(f *testing.F) {
	seed(f)
	for _, s := range []string{"a: [b, {c: d}]\n", "a:\n- b: c\n  d: 'e'\n", "a: x #y\nb: \"z\"\n", "a:\n  - /b:c\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { againstLibrary(t, data) })
}
