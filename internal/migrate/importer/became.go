package importer

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Field is what a directive became: fields of the document, or what headgate does
// without one. A verdict "same" or "close" has one (see Translation.Became), and Verify
// looks for it in the document that was made. The zero Field is nowhere.
type Field struct {
	refs     []ref
	parts    []Part
	byItself bool
}

// ref is a field, or an element of a field that is a list. Its node may be changed after
// the verdict, and may be replaced by an equal one where routes are merged.
type ref struct {
	name string
	node *yaml.Node
}

// defaultBehaviour is what Entry.Became has for a directive that needs no field.
const defaultBehaviour = "default"

// ByItself returns the Field of what headgate does without a field of the document. Use it
// for a directive for what is done in any case, never for one that has a field.
func ByItself() Field { return Field{byItself: true} }

// Through returns the Field of a directive that acts through others: a block through its
// directives, a variable through the lines that use it. It is in the document when one of
// them is.
func Through[P Part](parts ...P) Field {
	f := Field{}
	for _, p := range parts {
		f.parts = append(f.parts, p)
	}
	return f
}

// Field returns the field of o with a name. If o has none, the Field is nowhere.
func (o Object) Field(name string) Field {
	if o.node == nil {
		return Field{}
	}
	return Field{refs: []ref{{name, o.get(name)}}}
}

// LastOf returns the last element of a field that is a list. If there is none, the Field
// is nowhere.
func (o Object) LastOf(name string) Field {
	if o.node == nil {
		return Field{}
	}
	n := o.get(name)
	if n == nil || n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return Field{}
	}
	return Field{refs: []ref{{name, n.Content[len(n.Content)-1]}}}
}

// As returns o itself as what a directive became: an element of the list that has a name,
// or the field with it.
func (o Object) As(name string) Field {
	if o.node == nil {
		return Field{}
	}
	return Field{refs: []ref{{name, o.node}}}
}

// Value returns the Field of a single value that is somewhere in the document: for what
// is written later than the verdict is known.
func Value(name string, value any) Field { return NewObject().Set(name, value).Field(name) }

// Or returns the Field that is in the document where f or g is.
func (f Field) Or(g Field) Field {
	return Field{
		refs:     append(f.refs[:len(f.refs):len(f.refs)], g.refs...),
		parts:    append(f.parts[:len(f.parts):len(f.parts)], g.parts...),
		byItself: f.byItself || g.byItself,
	}
}

// Became gives a part the verdict Same or Close, and names what it became. Like Say it
// returns whether this is the first verdict of the part. A part that is translated in
// several places, such as a header rule that holds in many locations, names all of its
// fields by further calls.
func (t *Translation) Became(p Part, v Verdict, f Field, note string, args ...any) bool {
	first := t.addVerdict(p, v, note, args...)
	if o := p.Place(); o.entry != 0 {
		t.became[o] = t.became[o].Or(f)
	}
	return first
}

// SayKnown gives a part the verdict that a table has for its name, and reports whether
// there is one. A row that is Same or Close is what headgate does without a field.
func (t *Translation) SayKnown(p Part, table Table, name string) bool {
	row, ok := table[name]
	switch {
	case !ok:
	case row.byItself:
		t.Became(p, row.verdict, ByItself(), "%s", row.note)
	default:
		t.addVerdict(p, row.verdict, "%s", row.note)
	}
	return ok
}

// Verify looks for what every directive became. A directive whose fields are not in the
// document was lost, whatever was said of it: its verdict becomes Impossible, and a
// person has to look at it. Finish calls it; call it before the report is used where a
// Translation is not finished.
func (t *Translation) Verify() {
	doc := index(t.document())
	all := slices.SortedFunc(maps.Keys(t.became), func(a, b *Origin) int { return cmp.Compare(a.entry, b.entry) })
	all = append(all, t.withoutField()...)
	for lost := true; lost; { // what acts through a lost directive is lost, too
		lost = false
		for _, o := range all {
			e := &t.Report.Entries[o.entry-1]
			if e.Became = nil; e.Verdict != Same && e.Verdict != Close {
				continue
			}
			if e.Became = t.found(doc, o, map[*Origin]bool{}, nil); len(e.Became) == 0 {
				lost = true
				o.verdict, e.Verdict = Impossible, Impossible
				e.Note = strings.TrimPrefix(e.Note+"; "+notThere, "; ")
				if len(t.became[o].parts) == 0 { // otherwise what it acts through is to look at
					t.Check("%s:%d: %s is not in the document: write it by hand", e.File, e.Line, e.Directive)
				}
			}
		}
	}
}

// withoutField returns origins of the entries that no part with a field has.
func (t *Translation) withoutField() (out []*Origin) {
	named := make([]bool, len(t.Report.Entries)+1)
	for o := range t.became {
		named[o.entry] = true
	}
	for i, e := range t.Report.Entries {
		if !named[i+1] && (e.Verdict == Same || e.Verdict == Close) {
			out = append(out, &Origin{entry: i + 1, verdict: e.Verdict})
		}
	}
	return out
}

// notThere is the note of a directive whose fields are not in the document.
const notThere = "no route or setting of the document has it"

// maxBecame bounds the fields that an entry of the report names.
const maxBecame = 8

// found returns the places of what a part became, at most maxBecame of them.
func (t *Translation) found(doc places, o *Origin, visited map[*Origin]bool, out []string) []string {
	if visited[o] {
		return out
	}
	f := t.became[o]
	visited[o] = true
	add := func(place string) {
		if len(out) < maxBecame && !slices.Contains(out, place) {
			out = append(out, place)
		}
	}
	if f.byItself {
		add(defaultBehaviour)
	}
	for _, r := range f.refs {
		if place, ok := doc.place(r); ok && len(out) < maxBecame {
			add(place)
		}
	}
	for _, p := range f.parts {
		inner := p.Place()
		if v := inner.verdict; inner.entry == 0 || v != Same && v != Close || len(out) >= maxBecame {
			continue
		}
		out = t.found(doc, inner, visited, out)
	}
	return out
}

// places are the places of a document's nodes: by the nodes themselves, and by the names
// of fields with a hash of their values, for nodes that were replaced by equal ones.
type places struct {
	seed    maphash.Seed
	byNode  map[*yaml.Node]string
	byValue map[valueOf]string
}

type valueOf struct {
	name string
	hash uint64
}

func index(document Object) places {
	p := places{maphash.MakeSeed(), map[*yaml.Node]string{}, map[valueOf]string{}}
	p.add("", "", document.node)
	return p
}

// add adds a node with all below it, and returns the hash of its value.
func (p places) add(path, name string, n *yaml.Node) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	fmt.Fprintf(&h, "%d %d:%s", n.Kind, len(n.Value), n.Value)
	below := func(path, name string, c *yaml.Node) { fmt.Fprintf(&h, ",%x", p.add(path, name, c)) }
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			field := n.Content[i].Value
			fmt.Fprintf(&h, ",%d:%s", len(field), field)
			below(strings.TrimPrefix(path+"."+field, "."), field, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			below(fmt.Sprintf("%s[%d]", path, i), name, c)
		}
	}
	sum := h.Sum64()
	if _, ok := p.byNode[n]; !ok {
		p.byNode[n] = path
	}
	if v := (valueOf{name, sum}); p.byValue[v] == "" {
		p.byValue[v] = path
	}
	return sum
}

// place returns where a field is in the document.
func (p places) place(r ref) (string, bool) {
	if r.node == nil {
		return "", false
	}
	if place, ok := p.byNode[r.node]; ok {
		return place, true
	}
	alone := places{p.seed, map[*yaml.Node]string{}, map[valueOf]string{}}
	place, ok := p.byValue[valueOf{r.name, alone.add("", r.name, r.node)}]
	return place, ok
}

// Adopt adds what another translation of a part of the source has found: the verdicts that
// keep returns true for, which may change them. Their fields are looked for in t's
// document.
func (t *Translation) Adopt(inner *Translation, keep func(e *Entry) bool) {
	at := map[int]int{} // by places in the report of inner, plus one: those in t's
	for i, e := range inner.Report.Entries {
		if e.Became = nil; keep(&e) {
			t.Report.Add(e)
			at[i+1] = len(t.Report.Entries)
		}
	}
	for o, f := range inner.became {
		if o.entry = at[o.entry]; o.entry != 0 {
			o.verdict = t.Report.Entries[o.entry-1].Verdict
			t.became[o] = f
		}
	}
}
