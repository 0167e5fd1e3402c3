package importer

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxInline is how many addresses a setting has in its own place. More become a list that
// settings refer to by its name.
const maxInline = 20

// group is networks that belong together in the source.
type group struct {
	name     string
	file     string // that a list can be read from; empty if it is in another form
	networks []string
	list     string // the list that was made of it
}

// Together notes that networks belong together in the source, such as those of one file: a
// setting that has all of them refers to a list of this name. File is the file itself if it
// is in the form of a list, one address or network a line, and empty otherwise: then the
// list has the networks as its entries.
func (t *Translation) Together(name, file string, networks []netip.Prefix) {
	if !strings.HasPrefix(file, "/") && !filepath.IsAbs(file) {
		file = "" // where it is on this machine is not known
	}
	texts := Networks(networks)
	slices.Sort(texts)
	if texts = slices.Compact(texts); len(texts) == 0 {
		return
	}
	for _, g := range t.groups {
		if g.file == file && slices.Equal(g.networks, texts) {
			return
		}
	}
	t.groups = append(t.groups, &group{name: name, file: file, networks: texts})
}

// addressSettings are the settings that hold addresses, with their fields.
var addressSettings = []struct {
	name   string
	fields []string
}{{"ip_filter", []string{"allow", "deny"}}, {"rate_limit", []string{"exempt"}}}

// shareAddresses moves many addresses of a setting, and those that belong together, to
// lists. Equal addresses become one list. What a directive became changes alike, so that
// Verify finds it.
func (t *Translation) shareAddresses() {
	seen := map[*yaml.Node]bool{}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			t.shareSetting(n.Content[i].Value, n.Content[i+1], seen)
		}
		for _, c := range n.Content {
			visit(c)
		}
	}
	visit(t.document().node)
	for _, f := range t.became {
		for _, r := range f.refs {
			if r.node != nil {
				t.shareSetting(r.name, r.node, seen)
			}
		}
	}
}

// shareSetting moves the addresses of one setting.
func (t *Translation) shareSetting(name string, n *yaml.Node, seen map[*yaml.Node]bool) {
	if seen[n] || n.Kind != yaml.MappingNode {
		return
	}
	for _, s := range addressSettings {
		if s.name != name {
			continue
		}
		seen[n] = true
		o := Object{n}
		for _, field := range s.fields {
			if texts := o.Texts(field); len(texts) > 0 {
				o.Set(field, t.shareTexts(field, texts))
			}
		}
	}
}

// listNames are the names of lists that have no name in their file.
var listNames = map[string]string{"allow": "allowed", "deny": "denied", "exempt": "exempt"}

// shareTexts returns addresses with references in the place of those that lists have.
func (t *Translation) shareTexts(field string, texts []string) []string {
	var references []string
	for _, g := range t.groups {
		if len(texts) < len(g.networks) || g.file == "" && len(g.networks) == 1 {
			continue
		}
		has := make(map[string]bool, len(texts))
		for _, text := range texts {
			has[text] = true
		}
		if slices.ContainsFunc(g.networks, func(n string) bool { return !has[n] }) {
			continue
		}
		for _, n := range g.networks {
			delete(has, n)
		}
		texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !has[text] })
		references = append(references, "list:"+t.listOf(g))
	}
	if len(texts) > maxInline {
		sorted := slices.Sorted(slices.Values(texts))
		i := slices.IndexFunc(t.large, func(g *group) bool { return slices.Equal(g.networks, sorted) })
		if i < 0 {
			i = len(t.large)
			t.large = append(t.large, &group{name: listNames[field], networks: sorted})
			t.large[i].list = Unused(t.Lists, listNames[field], "addresses")
			t.Lists.Set(t.large[i].list, NewObject().Set("entries", texts))
		}
		references, texts = append(references, "list:"+t.large[i].list), nil
	}
	return append(references, texts...)
}

// Addresses is what a setting has that holds addresses: those given, or lists of them.
// Setting is allow, deny or exempt.
func (t *Translation) Addresses(setting string, texts []string) []string {
	return t.shareTexts(setting, texts)
}

// listOf returns the list of a group, which is made when it is used for the first time.
func (t *Translation) listOf(g *group) string {
	if g.list != "" {
		return g.list
	}
	g.list = Unused(t.Lists, strings.TrimSuffix(g.name, filepath.Ext(g.name)), "addresses")
	if g.file != "" {
		t.Lists.Set(g.list, NewObject().Set("file", g.file))
		t.Check("lists.%s reads %s: headgate needs the right to read the file, and reads it again when it changes", g.list, g.file)
	} else {
		t.Lists.Set(g.list, NewObject().Set("entries", g.networks))
	}
	return g.list
}
