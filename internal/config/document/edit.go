package document

import (
	"cmp"
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
	// Value is the value of a Set, as JSON. Strings can contain variables such as ${VAR}.
	// Fields that are null are absent.
	Value json.RawMessage `json:"value,omitempty"`
	// To is the new key of a Rename.
	To string `json:"to,omitempty"`
	// Document is the name of the document that a new object goes to, where there
	// are several. "" is the first.
	Document string `json:"document,omitempty"`
}

// maxSteps bounds how many places of a text one edit changes.
const maxSteps = 500

// Edit returns the document after an edit. Every byte that the edit does not concern stays:
// comments, order, quotes, anchors, and texts with ${…}. Removing a field removes its line,
// and keeps the comments above it.
//
// The parsed result is compared with the intended one: an edit that cannot be made in
// place, or that would change other values through an anchor, is rejected with a problem.
// Section is that of Outline.
func (d *Document) Edit(e Edit, section func(string) bool) (*Document, *schema.Problem) {
	ed := &editing{edit: e, section: section}
	if p := ed.start(d); p != nil {
		return nil, p
	}
	before := ed.now // has parsed what the edit is near to
	for range maxSteps {
		if ed.done() {
			return ed.now, ed.verify(before)
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
	root    *yaml.Node // of now, see tree
	made    bool       // the field that was not there
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
	ed.setDocument(d)
	ed.want, p = ed.edited(ed.entry(ed.focus), inside)
	return p
}

// plainName reports whether a path or name can be written to a document.
func plainName(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// setDocument goes on with a document.
func (ed *editing) setDocument(d *Document) {
	ed.now, ed.src = d, newSource(d)
	ed.root = ed.tree()
}

// tree returns the tree of the document, with the entries that an edit may read: in a
// section of entries, these are the edited one, the one that gets its name, the first and
// the last. A new section is added after the last entry.
func (ed *editing) tree() *yaml.Node {
	if ed.now.list == nil {
		return ed.now.root
	}
	section := cmp.Or(ed.focus.section, ed.focus.name)
	root := *ed.now.root
	root.Content = slices.Clone(root.Content)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i].Value
		list, ok := ed.now.Objects(key)
		if !ok || key != section && i+2 < len(root.Content) {
			continue
		}
		part := yaml.Node{Kind: yaml.MappingNode, Line: root.Content[i+1].Line, Column: root.Content[i+1].Column}
		for j := range list {
			e := &list[j]
			edited := key == section && (ed.focus.section == "" || e.Name == ed.focus.name || e.Name == ed.edit.To)
			if edited || j == 0 || j == len(list)-1 {
				key, value := e.Nodes()
				part.Content = append(part.Content, key, value)
			}
		}
		root.Content[i+1] = &part
	}
	return &root
}

// entry returns what an entry means, nil if there is none.
func (ed *editing) entry(at place) *value {
	if at.section == "" {
		if _, n := (Step{at.name, -1}).Find(ed.root); n != nil {
			return meaning(n)
		}
	}
	return ed.now.meaningOf(at)
}

func (d *Document) meaningOf(at place) *value {
	if e := d.Entry(at.section, at.name); e != nil {
		_, n := e.Nodes()
		return meaning(n)
	}
	return nil
}

// edited returns a value with the edit made inside it.
func (ed *editing) edited(v *value, inside []Step) (*value, *schema.Problem) {
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
		child, p := ed.edited(old, inside[1:])
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
	return nil, ed.problem(nil, "the path refers to a part that the value does not have", "")
}

func (ed *editing) wantedField(out *value, name string, inside []Step) (*value, *schema.Problem) {
	old := out.fields[name]
	fields, names := map[string]*value{}, slices.Clone(out.names)
	for key, v := range out.fields {
		fields[key] = v
	}
	out.fields, out.names = fields, names
	child, p := ed.edited(old, inside[1:])
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

// depth is the number of steps of the path to the entry.
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
		if before.Entry(renamed.section, renamed.name) != nil || !ed.entry(renamed).same(ed.want) {
			return ed.problem(nil, fmt.Sprintf("there is %q already", ed.edit.To), "take another name")
		}
	}
	for i, e := range before.each {
		if p := ed.untouched(e.place(), renamed, e, ed.now.near(i, e.place()), before); p != nil {
			return p
		}
	}
	for i, e := range ed.now.each {
		if before.near(i, e.place()) != nil {
			continue
		}
		if p := ed.untouched(e.place(), renamed, nil, e, before); p != nil {
			return p
		}
	}
	return nil
}

// untouched verifies that an entry that is not edited has the same value as before. Either
// may be nil.
func (ed *editing) untouched(at, renamed place, was, is *Entry, before *Document) *schema.Problem {
	switch {
	case was != nil && is != nil && was.Text != "" && was.Text == is.Text:
	case at == ed.focus || at == renamed || at == (place{"", ed.focus.section}) || at.section == ed.focus.name && ed.focus.section == "":
	case at.section == "" && ed.section(at.name): // it is its entries
	case before.meaningOf(at).same(ed.now.meaningOf(at)):
	default:
		name := at.name
		if at.section != "" {
			name = schema.JoinPath(at.section, at.name)
		}
		return ed.problem(nil, "the edit would change "+name+" too, which has the same anchor", "edit the file by hand, at the anchor")
	}
	return nil
}

// each calls visit for every entry with its number, until it returns false.
func (d *Document) each(visit func(i int, e *Entry) bool) {
	for i := range d.list {
		if !visit(i, &d.list[i]) {
			return
		}
	}
	for _, e := range d.others {
		if !visit(len(d.list), e) {
			return
		}
	}
}

// near returns the entry at a place, or nil. It is quick where that has the number i.
func (d *Document) near(i int, at place) *Entry {
	if i < len(d.list) && d.list[i].place() == at {
		return &d.list[i]
	}
	return d.Entry(at.section, at.name)
}

func (e *Entry) place() place { return place{e.Section, e.Name} }
