package config

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// KnownFields returns the fields that this release knows, as OBJECT.FIELD in order. The list
// is not to be changed.
var KnownFields = sync.OnceValue(func() []string {
	var all []string
	for _, o := range Describe().Objects() {
		for _, f := range o.Fields {
			all = append(all, o.Name()+"."+f.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
})

// maxOutside limits the problems of FieldsOutside.
const maxOutside = 20

// FieldsOutside returns a problem for each field in the documents that is not in a list like
// that of KnownFields, which another release has: who names the release.
func (c *Config) FieldsOutside(known []string, who, remedy string) []Problem {
	if c.loaded == nil {
		return nil
	}
	w := &outside{known: known, report: c.Report(), who: who, remedy: remedy}
	for _, d := range c.loaded.docs {
		w.documentOf(d)
	}
	return w.report.Problems()
}

// documentOf walks over a document.
func (w *outside) documentOf(d *document.Document) {
	root := w.report.Root()
	if n := d.Root(); n != nil {
		w.object(Describe(), n, root, 0)
	}
	for _, f := range Describe().Fields {
		entries, _ := d.Objects(f.Name)
		for i := range entries {
			_, value := entries[i].Nodes()
			w.value(f.Type.Elem, value, root.Field(f.Name).Field(entries[i].Name), 0)
		}
	}
}

// outside is a walk over documents.
type outside struct {
	known       []string
	report      *schema.Report
	who, remedy string
	found       int
}

// maxNesting limits how deep a walk goes: documents are less deep.
const maxNesting = 64

// object walks over an object of the documents.
func (w *outside) object(o *schema.Object, n *yaml.Node, at schema.Place, depth int) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind != yaml.MappingNode || depth > maxNesting {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		if key == "<<" {
			w.object(o, value, at, depth+1)
			continue
		}
		f := o.Field(key)
		if f == nil {
			continue // x- keys
		}
		if _, known := slices.BinarySearch(w.known, o.Name()+"."+key); !known {
			w.add(key, at.Field(key))
			continue
		}
		w.value(f.Type, value, at.Field(key), depth+1)
	}
}

func (w *outside) add(key string, at schema.Place) {
	if w.found++; w.found <= maxOutside {
		at.Problem(fmt.Sprintf("%s does not know the field %s", w.who, strings.TrimSpace(key)), w.remedy)
	}
}

// value walks over a value of a type.
func (w *outside) value(t *schema.Type, n *yaml.Node, at schema.Place, depth int) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case depth > maxNesting:
	case t.Object != nil && t.Elem == nil:
		w.object(t.Object, n, at, depth)
	case t.Elem != nil && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.value(t.Elem, n.Content[i+1], at.Field(n.Content[i].Value), depth+1)
		}
	case t.Elem != nil && n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			w.value(t.Elem, item, at.Index(i), depth+1)
		}
	}
}
