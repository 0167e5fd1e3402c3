package document

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzEdit holds that an edit of any file, if it is not refused, reads as it was
// meant: what the path leads to has the value, everything else says what it said.
func FuzzEdit(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(string(data), "proxies.shop.routes[0].path", `"/x"`, uint8(0))
	}
	for _, text := range []string{
		"a: {b: [c, {d: e}], f: 'g''h'}\n", "a:\n- b: c # d\n  e: |\n    f\n\n    g\n-  h\n", "a: &x {b: c}\nd: *x\ne: {<<: *x}\n", "a:\n  b: >-\n   c\n   d\n  # e\nf:\n",
		"a: b\n  c d\ne: \"f\\n  g\n  h\"\n", "a: [\n  b, # c\n  d,\n]\n", "ä: ö\na: {b: ü}\n",
	} {
		for i, path := range []string{"a", "a.b", "a[0]", "a.b[1].d", "a[0].b", "e.x", "f"} {
			f.Add(text, path, []string{`1`, `"x: y"`, `{"b":"c"}`, `["d",{"e":true}]`}[i%4], uint8(i%3))
		}
	}
	f.Fuzz(func(t *testing.T, text, path, value string, op uint8) {
		section := func(key string) bool { return key == "proxies" || key == "a" }
		before, p := Read("f", []byte(text), Outline{Section: section})
		if p != nil {
			return
		}
		e := Edit{Op: []Op{Set, Remove, Rename}[op%3], Path: path, Value: json.RawMessage(value), To: "renamed"}
		after, p := before.Edit(e, section)
		if p != nil {
			if p.What == "" {
				t.Fatal("a refusal without a reason")
			}
			return
		}
		// Read as a whole by the library, the result says the same.
		tree, p := Parse("f", []byte(after.Text()))
		if p != nil {
			t.Fatalf("the result of %v cannot be read: %v\n%q\n%q", e, p, text, after.Text())
		}
		whole, first := meaning(tree.Content[0]), strings.SplitN(path, ".", 2)[0]
		first = strings.SplitN(first, "[", 2)[0]
		was, _ := Parse("f", []byte(text))
		for name, v := range meaning(was.Content[0]).fields {
			if name != first && !strings.HasPrefix(path, "[") && !v.same(whole.fields[name]) {
				t.Fatalf("%v changed %q, too\n%q\n%q", e, name, text, after.Text())
			}
		}
	})
}

func TestManyEditsOfOneListStayInPlace(t *testing.T) {
	d, p := Read("f", []byte("a:\n  - b # one\n  # two\n  - c\n"), Outline{})
	if p != nil {
		t.Fatal(p)
	}
	none := func(string) bool { return false }
	for range 5 {
		if d, p = d.Edit(Edit{Op: Set, Path: "a[2]", Value: json.RawMessage(`"d"`)}, none); p != nil {
			t.Fatal(p)
		}
		if d, p = d.Edit(Edit{Op: Remove, Path: "a[2]"}, none); p != nil {
			t.Fatal(p)
		}
	}
	if want := "a:\n  - b # one\n  # two\n  - c\n"; d.Text() != want {
		t.Errorf("got %q, want %q", d.Text(), want)
	}
	if _, p := d.Edit(Edit{Op: Set, Path: "a", Value: json.RawMessage(strings.Repeat("[", 100) + strings.Repeat("]", 100))}, none); p == nil || !strings.Contains(p.What, "deep") {
		t.Errorf("a value that is too deep: %v", p)
	}
}

// TestAnEditBehindAccents holds that columns count characters on lines that are read
// without the library.
func TestAnEditBehindAccents(t *testing.T) {
	section := func(key string) bool { return key == "a" }
	d, p := Read("f", []byte("# Übung\na:\n  b: {c: \"größer\", d: é, e: 1, f: 2} # für später\n  g: ü\n"), Outline{Section: section})
	if p != nil {
		t.Fatal(p)
	}
	if d.Entry("a", "b").Text == "" {
		t.Error("the library reads it")
	}
	d, p = d.Edit(Edit{Op: Set, Path: "a.b.e", Value: json.RawMessage(`3`)}, section)
	if p != nil {
		t.Fatal(p)
	}
	if got, want := d.Text(), "# Übung\na:\n  b: {c: \"größer\", d: é, e: 3, f: 2} # für später\n  g: ü\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestANewSectionIsPutBehindTheLast adds a section and a setting to documents that end
// with the entry of another section.
func TestANewSectionIsPutBehindTheLast(t *testing.T) {
	section := func(name string) bool { return name == "ports" || name == "proxies" }
	const before = "version: 1\nports:\n  web:\n    address: \"0.0.0.0:80\"\n    protocol: http\n"
	for _, c := range []struct{ text, path, value, want string }{
		{before, "proxies.shop", `{"active": true}`, before + "proxies:\n  shop:\n    active: true\n"},
		{before, "admin.address", `"127.0.0.1:1"`, before + "admin:\n  address: \"127.0.0.1:1\"\n"},
		{before, "ports.tls", `{"active": true}`, before + "  tls:\n    active: true\n"},
		{before + "# the end\n", "proxies.shop", `{"active": true}`, before + "proxies:\n  shop:\n    active: true\n# the end\n"},
	} {
		d, p := Read("f", []byte(c.text), Outline{Section: section})
		if p != nil {
			t.Fatal(p)
		}
		after, p := d.Edit(Edit{Op: Set, Path: c.path, Value: json.RawMessage(c.value)}, section)
		if p != nil {
			t.Errorf("%s: %v", c.path, p)
			continue
		}
		if after.Text() != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.path, after.Text(), c.want)
		}
	}
}
