package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"headgate/internal/schema"
)

// Op is what an edit does.
type Op string

// The operations.
const (
	// Set gives a field a value. Of an object or list that is there, only what is
	// not the same is written anew.
	Set Op = "set"
	// Remove takes a field, an object or an element of a list out.
	Remove Op = "remove"
	// Rename gives an object or field another key, at the same place.
	Rename Op = "rename"
)

// Edit is one change of a document.
type Edit struct {
	// Op is what is done.
	Op Op `json:"op"`
	// Path is where: "proxies.shop.routes[0].path", in the form of a problem's field.
	// The index after the last element of a list appends one.
	Path string `json:"path"`
	// Value is the value of a Set, as JSON. Texts are those of a document: ${VAR}
	// stands for a variable. Fields that are null are absent.
	Value json.RawMessage `json:"value,omitempty"`
	// To is the new key of a Rename.
	To string `json:"to,omitempty"`
	// Document is the name of the document that a new object goes to, where there
	// are several. "" is the first.
	Document string `json:"document,omitempty"`
}

// maxSteps bounds how many places of a text one edit changes.
const maxSteps = 500

// Edit returns the document with an edit made. Every byte that the edit does not
// touch stays: comments, order, quotes, anchors, and the texts with ${…}. A field
// that is removed takes its line with it, and leaves the comments above it.
//
// What was read of the result is compared with what was wanted: an edit that
// cannot be made in place, or that would change anything else because of an anchor
// that others use, is refused, and the problem says why. Section is that of
// Outline.
func (d *Document) Edit(e Edit, section func(string) bool) (*Document, *schema.Problem) {
	ed := &editing{edit: e, section: section}
	if p := ed.start(d); p != nil {
		return nil, p
	}
	for range maxSteps {
		if ed.done() {
			return ed.now, ed.verify(d)
		}
		if p := ed.step(); p != nil {
			return nil, p
		}
	}
	return nil, ed.problem(nil, "the edit changes too many places at once", "make several edits of it")
}

// editing is one Edit under way.
type editing struct {
	edit    Edit
	section func(string) bool
	steps   []Step
	focus   place  // the entry that is edited
	want    *value // what it shall be, nil for none
	value   *value
	now     *Document
	made    bool // the field that was not there
	src     *source
}

func (ed *editing) problem(n *yaml.Node, what, remedy string) *schema.Problem {
	p := &schema.Problem{Field: ed.edit.Path, What: what, Remedy: remedy}
	if ed.now != nil {
		p.File = ed.now.name
	}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	return p
}

// start checks the edit and works out what its entry shall be.
func (ed *editing) start(d *Document) (p *schema.Problem) {
	ed.now = d
	for rest := ed.edit.Path; rest != "" && len(ed.steps) <= maxDepth; {
		var s Step
		s, rest = CutStep(rest)
		ed.steps = append(ed.steps, s)
	}
	if !plainName(ed.edit.Path) || !plainName(ed.edit.To) {
		return ed.problem(nil, "the path or the new name holds a control character, or is not UTF-8", "")
	}
	if n := len(ed.steps); n == 0 || n > maxDepth || ed.steps[0].Index >= 0 {
		return ed.problem(nil, "the path names no field", "write one like proxies.shop.routes[0].path")
	}
	ed.focus = place{"", ed.steps[0].Name}
	inside := ed.steps[1:]
	if len(inside) > 0 && inside[0].Index < 0 && ed.section(ed.focus.name) {
		ed.focus, inside = place{ed.focus.name, inside[0].Name}, inside[1:]
	}
	if ed.edit.Op == Set {
		v, err := parseValue(ed.edit.Value)
		if err != nil || v.null {
			return ed.problem(nil, fmt.Sprintf("the value cannot be read: %v", err), "write it as JSON; remove takes a field out")
		}
		ed.value = v
	}
	if p := ed.read(d.text, d); p != nil {
		return p
	}
	ed.want, p = ed.wanted(ed.entry(ed.focus), inside)
	return p
}

// plainName reports whether a path or name can stand in a document.
func plainName(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// neighbour is the entry behind which a new one is put: the last of its section, or,
// where the section itself is new, the last of the document.
func (ed *editing) neighbour(d *Document) place {
	last := func(n *yaml.Node) string {
		if n = Resolved(n); n.Kind != yaml.MappingNode || len(n.Content) < 2 {
			return ""
		}
		return n.Content[len(n.Content)-2].Value
	}
	if e := d.Entry("", ed.focus.section); ed.focus.section != "" && e != nil {
		return place{ed.focus.section, last(e.value)}
	}
	if e := d.Entry("", last(d.root)); e != nil {
		return place{e.Name, last(e.value)}
	}
	return place{}
}

// read reads a text of which nothing but the entry that is edited needs to be
// parsed, and its neighbour.
func (ed *editing) read(text string, before *Document) (p *schema.Problem) {
	neighbour := ed.neighbour(before)
	known := func(e *Entry) bool {
		at := place{e.Section, e.Name}
		was := before.entries[at]
		edited := at == ed.focus || at == neighbour || e.Section == ed.focus.section && e.Name == ed.edit.To || e.Section == ed.focus.name
		return !edited && was != nil && was.Text == e.Text
	}
	ed.now, p = Read(before.name, []byte(text), Outline{Section: ed.section, Known: known})
	if p != nil {
		ed.now = before
		return ed.problem(nil, "the document could not be read after the edit: "+p.What, "edit the file by hand")
	}
	ed.src = newSource(text)
	return nil
}

// entry returns what an entry means, nil if there is none.
func (ed *editing) entry(at place) *value { return ed.now.meaningOf(at) }

func (d *Document) meaningOf(at place) *value {
	if e := d.entries[at]; e != nil {
		return meaning(e.node())
	}
	return nil
}

// wanted returns a value with the edit made inside it.
func (ed *editing) wanted(v *value, inside []Step) (*value, *schema.Problem) {
	if len(inside) == 0 {
		switch ed.edit.Op {
		case Set:
			return ed.value, nil
		case Rename:
			if v == nil {
				return nil, ed.problem(nil, "there is nothing to rename", "")
			}
			return v, nil
		}
		if v == nil {
			return nil, ed.problem(nil, "there is nothing to remove", "")
		}
		return nil, nil
	}
	s := inside[0]
	if v == nil || v.null {
		v = &value{kind: yaml.MappingNode}
		if s.Index >= 0 {
			v.kind = yaml.SequenceNode
		}
	}
	out := *v
	switch {
	case s.Index < 0 && v.kind == yaml.MappingNode:
		return ed.wantedField(&out, s.Name, inside)
	case s.Index >= 0 && v.kind == yaml.SequenceNode && s.Index <= len(v.items):
		out.items = slices.Clone(v.items)
		var old *value
		if s.Index < len(v.items) {
			old = v.items[s.Index]
		}
		child, p := ed.wanted(old, inside[1:])
		switch {
		case p != nil:
			return nil, p
		case child == nil:
			out.items = slices.Delete(out.items, s.Index, s.Index+1)
		case old == nil:
			out.items = append(out.items, child)
		default:
			out.items[s.Index] = child
		}
		return &out, nil
	}
	return nil, ed.problem(nil, "the path leads into a value that has no such part", "")
}

func (ed *editing) wantedField(out *value, name string, inside []Step) (*value, *schema.Problem) {
	old := out.fields[name]
	fields, names := map[string]*value{}, slices.Clone(out.names)
	for key, v := range out.fields {
		fields[key] = v
	}
	out.fields, out.names = fields, names
	child, p := ed.wanted(old, inside[1:])
	if p != nil {
		return nil, p
	}
	rename := ed.edit.Op == Rename && len(inside) == 1
	if child == nil || rename {
		delete(out.fields, name)
		out.names = slices.DeleteFunc(out.names, func(n string) bool { return n == name })
	}
	if rename {
		if out.fields[ed.edit.To] != nil {
			return nil, ed.problem(nil, fmt.Sprintf("there is %q already", ed.edit.To), "take another name")
		}
		name = ed.edit.To
	}
	if child != nil {
		out.put(name, child)
	}
	return out, nil
}

// done reports whether the entry is what it shall be.
func (ed *editing) done() bool {
	if ed.edit.Op == Rename && len(ed.steps) <= ed.depth() {
		return ed.entry(ed.focus) == nil && ed.entry(place{ed.focus.section, ed.edit.To}) != nil
	}
	return ed.entry(ed.focus).same(ed.want)
}

// depth is how many steps of the path lead to the entry.
func (ed *editing) depth() int {
	if ed.focus.section == "" {
		return 1
	}
	return 2
}

// verify holds that the edit did what was wanted and nothing else.
func (ed *editing) verify(before *Document) *schema.Problem {
	renamed := place{ed.focus.section, ""}
	if ed.edit.Op == Rename && len(ed.steps) == ed.depth() {
		renamed.name = ed.edit.To
		if before.entries[renamed] != nil || !ed.entry(renamed).same(ed.want) {
			return ed.problem(nil, fmt.Sprintf("there is %q already", ed.edit.To), "take another name")
		}
	}
	all := map[place]bool{}
	for at := range before.entries {
		all[at] = true
	}
	for at := range ed.now.entries {
		all[at] = true
	}
	for at := range all {
		switch a, b := before.entries[at], ed.now.entries[at]; {
		case at == ed.focus || at == renamed || at == (place{"", ed.focus.section}) || at.section == ed.focus.name && ed.focus.section == "":
		case at.section == "" && ed.section(at.name): // it is its entries
		case a != nil && b != nil && a.Text != "" && a.Text == b.Text:
		case before.meaningOf(at).same(ed.now.meaningOf(at)):
		default:
			name := at.name
			if at.section != "" {
				name = schema.JoinPath(at.section, at.name)
			}
			return ed.problem(nil, "the edit would change "+name+" too, which has the same anchor", "edit the file by hand, where the anchor stands")
		}
	}
	return nil
}
