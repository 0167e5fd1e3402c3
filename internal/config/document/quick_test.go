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

// wholeTree returns the tree of a document with the objects of its sections in it.
func wholeTree(d *Document) *yaml.Node {
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		list, _ := d.Objects(d.root.Content[i].Value)
		for j := range list {
			key, value := list[j].Nodes()
			d.root.Content[i+1].Content = append(d.root.Content[i+1].Content, key, value)
		}
	}
	return d.root
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
		if diff := sameTree(wholeTree(&parts), doc.Content[0]); diff != "" {
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

// A file of which something is known reads like one of which nothing is, whatever was
// changed in it.
func TestReadAfterAChange(t *testing.T) {
	const text = "# top\nversion: 1\nproxies:\n  a: {b: c}\n  # of d\n  d:\n    e: f # é\n\n  g:\n    h: ${I}\nx: y\nports:\n  j: {k: l}\n  m: n\n"
	for at := range len(text) + 1 {
		for _, piece := range []string{"", " ", "\n", "#", "z", ":", "\n  z: {b: c}\n", "  ", "proxies:\n"} {
			for _, cut := range []int{0, 1, 7, 30} {
				after := text[:at] + piece + text[min(len(text), at+cut):]
				afterAChange(t, text, after)
				afterAChange(t, after, text)
			}
		}
	}
}

// afterAChange fails when a file that is read with another one before reads in another
// way than alone.
func afterAChange(t *testing.T, before, after string) {
	t.Helper()
	o := Outline{Section: func(key string) bool { return key == "proxies" || key == "ports" }}
	was, p := Read("f", []byte(before), o)
	if p != nil {
		return
	}
	alone, p := Read("f", []byte(after), o)
	o.Before = was
	known, q := Read("f", []byte(after), o)
	if (p == nil) != (q == nil) {
		t.Fatalf("%v with %q before, %v alone:\n%q", q, before, p, after)
	}
	if p != nil {
		return
	}
	for i, e := range alone.each {
		k := known.near(i, e.place())
		if k == nil {
			t.Fatalf("%v is missing with %q before:\n%q", e.place(), before, after)
		}
		if k.Line != e.Line || k.Column != e.Column || k.Text != e.Text || k.variable != e.variable {
			t.Fatalf("%+v with %q before, want %+v:\n%q", k, before, e, after)
		}
		if is := was.Entry(e.Section, e.Name); k.Known() && (is == nil || is.Text != e.Text) {
			t.Fatalf("%v is known, which is not what %q says:\n%q", e.place(), before, after)
		}
	}
	if diff := sameTree(wholeTree(known), wholeTree(alone)); diff != "" {
		t.Fatalf("with %q before and alone differ: %s\n%q", before, diff, after)
	}
}

// FuzzReadAfterAChange is TestReadAfterAChange for any two files.
func FuzzReadAfterAChange(f *testing.F) {
	f.Add("version: 1\nproxies:\n  a: {b: c}\n  d: e\n", "version: 1\nproxies:\n  a: {b: f}\n  d: e\n")
	f.Add("proxies:\n  a: b\n", "proxies:\n a: b\n")
	f.Add("ports: {a: b}\nproxies:\n  c: d\n", "ports:\n  a: b\nproxies:\n  c: d\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		if checkBytes("f", []byte(before)) == nil && checkBytes("f", []byte(after)) == nil {
			afterAChange(t, before, after)
		}
	})
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
