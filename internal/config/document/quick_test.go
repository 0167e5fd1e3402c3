package document

import (
	"fmt"
	"os"
	"path/filepath"
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
	return fmt.Sprintf("%d:%d: kind %v, style %v, %q", n.Line, n.Column, n.Kind, n.Style, n.Value)
}

// samples are the files by which package config is tested.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "testdata", "*", "*.yaml"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d samples: %v", len(paths), err)
	}
	out := map[string][]byte{}
	for _, path := range paths {
		if out[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// againstLibrary fails when quick reads a file in another way than the library.
func againstLibrary(t *testing.T, data []byte) (read bool) {
	t.Helper()
	if checkBytes("f", data) != nil {
		return false
	}
	root := parseQuick(data)
	parts := Document{text: string(data)}
	outlined := parts.readOutline(Outline{Section: func(key string) bool { return key == "proxies" || key == "a" }})
	if root == nil && !outlined {
		return false
	}
	doc, p := Parse("f", data)
	if p != nil {
		t.Fatalf("quick reads what the library refuses: %s\n%q", p.Error(), data)
	}
	if outlined {
		if diff := sameTree(parts.root, doc.Content[0]); diff != "" {
			t.Fatalf("the outline and the library differ: %s\n%q", diff, data)
		}
	}
	if root == nil {
		return false
	}
	if diff := sameTree(root, doc.Content[0]); diff != "" {
		t.Fatalf("quick and the library differ: %s\n%q", diff, data)
	}
	return true
}

func TestQuickReadsAsTheLibraryDoes(t *testing.T) {
	for path, data := range samples(t) {
		t.Log(path, againstLibrary(t, data))
	}
	for _, text := range []string{
		"a: 1", "a:\n  b: c # d\n# e\n\n  f: [g, {h: i}, \"j\", 'k', []]\n",
		"a:\n- b: c\n  d: e\n-   f: g\n    h:\n      - i\n      - /j/k.l\n", "a:   x  y   # z", "a: {}\nb: []\n",
		"a: http://x:80/#b\nc: x#y\n", "a:\n    - {b: c}   # d\n    - e\n",
		"# Übung\na: b # größer\n", "a: ü\nb: größe ü # ß\n", "a: [\"ü\", b, 'é€', {c: ñ, d: e}, 𝄞x, f]\n", "a:\n  - ü\n  - b: ü # é\n    c: \"\u00a0\"\n",
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
		"a: [b c]", "a: [b #c\n]", "\ta: b", "a: b\r\n", " a: b", "ü: a", "<<: b", "a: b\u0085c", "a: b\u2028c", "# \u2029", "a: \ufeffb", "a: b\x80", "a: \x7f", "a: \"\ufffe\"", "\"a\": b", "--- \na: b", "a: b\n...\n", "a: \"b\"c",
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
	for _, data := range samples(f) {
		f.Add(data)
	}
	for _, s := range []string{"a: [b, {c: d}]\n", "a:\n- b: c\n  d: 'e'\n", "a: x #y\nb: \"z\"\n", "a:\n  - /b:c\n", "a: [ü, \"é\", b]\n# ß\nc: ñ x #é\n", "proxies:\n  # é\n  a: {b: ü}\n  # \u0085\n  c: \u2028\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { againstLibrary(t, data) })
}
