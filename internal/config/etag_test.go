package config

import (
	"strings"
	"testing"

	"headgate/internal/config/document"
)

func TestETagsFollowWhatIsSaid(t *testing.T) {
	a, _ := mustLoad(t, withPolicies)
	b, _ := mustLoad(t, "# moved\n"+strings.Replace(withPolicies, "[10.0.0.0/8]", `["10.0.0.0/8"] `, 1))
	c, _ := mustLoad(t, strings.Replace(withPolicies, "requests: 50", "requests: 51", 1))
	for _, k := range Kinds() {
		for _, name := range append(k.Names(a), "") {
			was, is, other := a.ETag(k.Name, name), b.ETag(k.Name, name), c.ETag(k.Name, name)
			switch {
			case k.Single != (name == ""):
				if was != "" {
					t.Errorf("%s %q has a tag", k.Name, name)
				}
			case was == "" || was != is:
				t.Errorf("%s %s: %s, and written in another way %s", k.Name, name, was, is)
			case (was != other) != (k.Name == "policies" && name == "staff"):
				t.Errorf("%s %s: %s, after a change of the policy staff %s", k.Name, name, was, other)
			}
		}
	}
	if a.ETag("proxies", "none") != "" || a.ETag("none", "x") != "" {
		t.Error("what is not there has a tag")
	}
}

func TestRenamingAnObjectRenamesItWhereItIsNamed(t *testing.T) {
	docs := Documents{List: []Document{
		{"a.yaml", []byte("version: 1\npolicies:\n  staff: {ip_filter: {allow: [10.0.0.0/8]}} # who works here\n")},
		{"b.yaml", []byte("version: 1\nproxies:\n  shop:\n    use: [staff] # them\n    routes: [{use: [staff], fixed_response: {status: 200}}]\n")},
	}}
	c, _, problems := LoadDocuments(docs, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	after, p := docs.Edit(c.RenameEdits("policies", "staff", "office")...)
	if p != nil {
		t.Fatal(p)
	}
	if _, _, problems := LoadDocuments(after, nil); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	want := "version: 1\nproxies:\n  shop:\n    use: [office] # them\n    routes: [{use: [office], fixed_response: {status: 200}}]\n"
	if got := string(after.List[1].Data); got != want {
		t.Errorf("got %s", got)
	}
	if got := string(docs.List[1].Data); !strings.Contains(got, "staff") {
		t.Error("the documents before were changed")
	}
}

func TestNewObjectsGoWhereTheEditSays(t *testing.T) {
	docs := Documents{List: []Document{{"a.yaml", []byte("version: 1\n")}, {"b.yaml", []byte("version: 1\n# last\n")}}}
	value := []byte(`{"routes":[{"fixed_response":{"status":200}}]}`)
	after, p := docs.Edit(
		document.Edit{Op: document.Set, Path: "proxies.a", Value: value},
		document.Edit{Op: document.Set, Path: "proxies.b", Value: value, Document: "b.yaml"},
		document.Edit{Op: document.Set, Path: "proxies.b.routes[0].path", Value: []byte(`"/b"`)},
	)
	if p != nil {
		t.Fatal(p)
	}
	c, _, problems := LoadDocuments(after, nil)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s\n%s", problems, after.List[0].Data, after.List[1].Data)
	}
	for name, want := range map[string]string{"a": "a.yaml", "b": "b.yaml"} {
		if o, _ := c.Origin("proxies", name); o.Document != want {
			t.Errorf("proxy %s is in %s, want %s", name, o, want)
		}
	}
	if c.Proxies["b"].Routes[0].Path != "/b" {
		t.Errorf("%s", after.List[1].Data)
	}
	if _, p := docs.Edit(document.Edit{Op: document.Set, Path: "proxies.a", Value: value, Document: "c.yaml"}); p == nil || p.What != `there is no document "c.yaml"` {
		t.Errorf("a document that is not there: %v", p)
	}
}
