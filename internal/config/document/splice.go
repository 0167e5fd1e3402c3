package document

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/schema"
)

// splice is one change of a text: it replaces the range from begin to end.
type splice struct {
	begin, end int
	text       string
}

// held is a node with its parent: a mapping, with its key, or a list.
type held struct {
	node, key, parent *yaml.Node
	index             int // in a list
}

// step makes the first change that is missing.
func (ed *editing) step() *schema.Problem {
	s, p := ed.next()
	if p != nil {
		return p
	}
	if s.text == ed.src.text[s.begin:s.end] {
		return ed.problem(nil, "the edit cannot be made in place", "edit the file by hand")
	}
	now, p := ReadText(ed.now.name, ed.src.text[:s.begin]+s.text+ed.src.text[s.end:], Outline{Section: ed.section, Before: ed.now})
	if p != nil {
		return ed.problem(nil, "the document could not be read after the edit: "+p.What, "edit the file by hand")
	}
	ed.setDocument(now)
	return nil
}

// next returns the first change that is missing.
func (ed *editing) next() (splice, *schema.Problem) {
	at, rest, p := ed.walk()
	if p != nil {
		return splice{}, p
	}
	if len(rest) > 0 { // the field does not exist: create its parents with it
		if ed.made {
			return splice{}, ed.problem(at.node, "the edit cannot be made in place", "edit the file by hand")
		}
		ed.made = true
		v := ed.value
		for _, s := range slices.Backward(rest[1:]) {
			if s.Index > 0 {
				return splice{}, ed.problem(nil, "the path refers to a list that does not exist", "")
			}
			outer := &value{kind: yaml.SequenceNode, items: []*value{v}}
			if s.Index < 0 {
				outer = &value{kind: yaml.MappingNode, fields: map[string]*value{s.Name: v}, names: []string{s.Name}}
			}
			v = outer
		}
		return ed.insert(at, rest[0], v)
	}
	switch ed.edit.Op {
	case Rename:
		if at.key == nil {
			return splice{}, ed.problem(nil, "an element of a list has no name", "")
		}
		return splice{ed.src.startOf(at.key), ed.src.end(at.key, 0), keyText(ed.edit.To)}, nil
	case Remove:
		return ed.remove(at)
	}
	return ed.converge(at, ed.value)
}

// walk follows the path as far as there are nodes. Rest is what is left of it: at
// is what holds the first of that.
func (ed *editing) walk() (at held, rest []Step, p *schema.Problem) {
	at.node = ed.root
	for i, s := range ed.steps {
		if p := ed.mine(at.node); p != nil {
			return at, nil, p
		}
		found := held{parent: at.node, index: s.Index}
		switch n := at.node; {
		case s.Index >= 0 && n.Kind == yaml.SequenceNode && s.Index < len(n.Content):
			found.node = n.Content[s.Index]
		case s.Index < 0 && n.Kind == yaml.MappingNode:
			for j := 0; j+1 < len(n.Content); j += 2 {
				if Resolved(n.Content[j]).Value == s.Name {
					found.key, found.node = n.Content[j], n.Content[j+1]
				}
			}
			if found.node == nil {
				if _, merged := s.Find(n); merged != nil && (i < len(ed.steps)-1 || ed.edit.Op != Set) {
					return at, nil, ed.merged(s.Name, merged)
				}
			}
		}
		if found.node == nil {
			return at, ed.steps[i:], nil
		}
		at = found
	}
	return at, nil, nil
}

// mine rejects a node that is an alias, or that aliases refer to.
func (ed *editing) mine(n *yaml.Node) *schema.Problem {
	const remedy = "edit the file by hand, at the anchor"
	switch {
	case n.Kind == yaml.AliasNode:
		return ed.problem(n, fmt.Sprintf("it is an alias of the anchor &%s, which other values use", n.Value), remedy)
	case n.Anchor != "" && uses(ed.root, n) > 0:
		return ed.problem(n, fmt.Sprintf("it is part of the anchor &%s, which other values use", n.Anchor), remedy)
	case n.Style&yaml.TaggedStyle != 0:
		return ed.problem(n, "it has a tag", "edit the file by hand")
	}
	return nil
}

// uses counts the aliases of a node.
func uses(n, anchored *yaml.Node) int {
	count := 0
	if n.Kind == yaml.AliasNode && n.Alias == anchored {
		count++
	}
	for _, child := range n.Content {
		count += uses(child, anchored)
	}
	return count
}

// converge returns the first change that brings a node closer to the wanted value.
func (ed *editing) converge(at held, want *value) (splice, *schema.Problem) {
	n := at.node
	if n.Kind != yaml.AliasNode {
		if p := ed.mine(n); p != nil {
			return splice{}, p
		}
	}
	have := meaning(n)
	switch {
	case n.Kind != want.kind || want.empty() || have.empty() || n.Kind == yaml.ScalarNode:
		return ed.replace(at, want)
	case n.Kind == yaml.MappingNode:
		return ed.convergeFields(at, have, want)
	}
	first := 0
	for first < min(len(have.items), len(want.items)) && have.items[first].same(want.items[first]) {
		first++
	}
	switch {
	case len(have.items) > len(want.items):
		return ed.removeItem(held{node: n.Content[first], parent: n, index: first})
	case len(have.items) < len(want.items):
		return ed.insertItem(n, first, want.items[first])
	}
	return ed.converge(held{node: n.Content[first], parent: n, index: first}, want.items[first])
}

func (ed *editing) convergeFields(at held, have, want *value) (splice, *schema.Problem) {
	n := at.node
	own := map[string]bool{}
	var other *held
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, child := n.Content[i], n.Content[i+1]
		if IsMerge(key) {
			continue
		}
		name := Resolved(key).Value
		own[name] = true
		field := held{node: child, key: key, parent: n}
		switch is := want.fields[name]; {
		case is == nil && len(n.Content) == 2:
			other = &field // the last one goes when another is there
		case is == nil:
			return ed.removeField(field)
		case !meaning(child).same(is):
			return ed.converge(field, is)
		}
	}
	for _, name := range want.names {
		if !own[name] && !have.fields[name].same(want.fields[name]) {
			return ed.insertField(n, name, want.fields[name])
		}
	}
	if other != nil {
		return ed.removeField(*other)
	}
	for _, name := range have.names {
		if _, merged := (Step{Name: name, Index: -1}).Find(n); merged != nil && !own[name] && want.fields[name] == nil {
			return splice{}, ed.merged(name, merged)
		}
	}
	return splice{}, ed.problem(n, "a field comes from a merge (<<)", "edit the file by hand")
}

// merged rejects a change of a field that comes from a merge key, because other mappings
// may include it, too.
func (ed *editing) merged(name string, n *yaml.Node) *schema.Problem {
	return ed.problem(n, name+" comes from a merge (<<) that other values may use, too", "edit the file by hand, at the anchor")
}

// replace writes a value in the place of a whole node.
func (ed *editing) replace(at held, want *value) (splice, *schema.Problem) {
	n, s := at.node, ed.src
	if n.Anchor != "" {
		return splice{}, ed.problem(n, fmt.Sprintf("it has the anchor &%s", n.Anchor), "edit the file by hand")
	}
	flow := at.parent.Style&yaml.FlowStyle != 0
	switch {
	case isEmpty(n) && at.key == nil:
		return splice{}, ed.problem(n, "the element is empty", "edit the file by hand")
	case isEmpty(n) && !flow:
		behind := s.afterColon(at.key)
		text := want.block(at.key.Column-1+ed.indent(), ed.indent())
		if strings.HasPrefix(text, "\n") {
			behind = s.lineEnd(behind)
		}
		return splice{behind, behind, text}, nil
	case isEmpty(n):
		behind := s.afterColon(at.key)
		return splice{behind, behind, " " + want.inline(0)}, nil
	}
	margin := at.parent.Column - 1
	begin, end := s.startOf(n), s.end(n, margin)
	if block := n.Kind != yaml.ScalarNode && n.Kind != yaml.AliasNode && n.Style&yaml.FlowStyle == 0; block && at.key != nil {
		return splice{s.afterColon(at.key), end, " " + want.inline(0)}, nil
	}
	if n.Style&yaml.FlowStyle != 0 && !flow && at.key != nil && want.kind != yaml.ScalarNode && ed.src.lineEnd(end) == end && meaning(n).empty() {
		return splice{s.afterColon(at.key), end, want.block(at.key.Column-1+ed.indent(), ed.indent())}, nil
	}
	return splice{begin, end, want.inline(n.Style)}, nil
}

// indent returns by how many blanks the file indents a level.
func (ed *editing) indent() int {
	for i := 1; i < len(ed.root.Content); i += 2 {
		if n := ed.root.Content[i]; n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && n.Column > 1 && n.Column <= 9 {
			return n.Column - 1
		}
	}
	return 2
}

// insert adds a value at a step that at does not have.
func (ed *editing) insert(at held, s Step, v *value) (splice, *schema.Problem) {
	if ed.edit.Op != Set {
		return splice{}, ed.problem(at.node, "there is no such field", "")
	}
	one := &value{kind: yaml.MappingNode, fields: map[string]*value{s.Name: v}, names: []string{s.Name}}
	if s.Index >= 0 {
		one = &value{kind: yaml.SequenceNode, items: []*value{v}}
	}
	switch n := at.node; {
	case at.parent != nil && (IsNull(n) || meaning(n).empty()):
		return ed.replace(at, one)
	case n.Kind == yaml.MappingNode && s.Index < 0:
		return ed.insertField(n, s.Name, v)
	case n.Kind == yaml.SequenceNode && s.Index == len(n.Content):
		return ed.insertItem(n, s.Index, v)
	}
	return splice{}, ed.problem(at.node, "the path refers to a part that the value does not have", "")
}

// insertField adds a field after the last one of an object.
func (ed *editing) insertField(n *yaml.Node, name string, v *value) (splice, *schema.Problem) {
	s := ed.src
	if n.Style&yaml.FlowStyle != 0 {
		return ed.insertFlow(n, len(n.Content)-1, keyText(name)+": "+v.inline(0)), nil
	}
	margin := n.Column - 1
	if len(n.Content) > 0 {
		margin = n.Content[0].Column - 1
	}
	end := s.lineEnd(s.end(n, margin))
	return splice{end, end, "\n" + strings.Repeat(" ", margin) + keyText(name) + ":" + v.block(margin+ed.indent(), ed.indent())}, nil
}

// insertFlow adds a text after part i of an object or list in flow style, or as the first
// for -1.
func (ed *editing) insertFlow(n *yaml.Node, i int, text string) splice {
	s := ed.src
	if i < 0 {
		at := s.startOf(n)
		at += strings.IndexAny(s.text[at:], "[{") + 1
		if len(n.Content) > 0 {
			text += ", "
		}
		return splice{at, at, text}
	}
	at := s.end(n.Content[i], 0)
	if isEmpty(n.Content[i]) && n.Kind == yaml.MappingNode {
		at = s.end(n.Content[i-1], 0)
		if strings.HasPrefix(s.text[at:], ":") {
			at++
		}
	}
	return splice{at, at, ", " + text}
}

// insertItem adds an element to a list, before the one at index i or at the end.
func (ed *editing) insertItem(n *yaml.Node, i int, v *value) (splice, *schema.Problem) {
	s := ed.src
	if n.Style&yaml.FlowStyle != 0 {
		return ed.insertFlow(n, i-1, v.inline(0)), nil
	}
	margin := strings.Repeat(" ", n.Column-1)
	text := margin + "-" + v.behindDash(n.Column+1, ed.indent())
	if i == 0 {
		at := s.lineStart(s.startOf(n))
		return splice{at, at, text + "\n"}, nil
	}
	at := s.lineEnd(s.end(n.Content[i-1], n.Column-1))
	return splice{at, at, "\n" + text}, nil
}

// remove takes a node out of what holds it. The last one leaves {} or [].
func (ed *editing) remove(at held) (splice, *schema.Problem) {
	if p := ed.inAnchor(at.node); p != nil {
		return splice{}, p
	}
	last := at.key != nil && len(at.parent.Content) == 2 || at.key == nil && len(at.parent.Content) == 1
	switch {
	case last && len(ed.steps) < 2:
		return splice{}, ed.problem(at.node, "it is all that the document holds", "")
	case last:
		ed := &editing{edit: ed.edit, section: ed.section, steps: ed.steps[:len(ed.steps)-1], focus: ed.focus, now: ed.now, root: ed.root, src: ed.src}
		outer, _, p := ed.walk()
		if p != nil {
			return splice{}, p
		}
		return ed.replace(outer, &value{kind: at.parent.Kind})
	case at.key != nil:
		return ed.removeField(at)
	}
	return ed.removeItem(at)
}

// inAnchor rejects to remove a node that aliases refer to.
func (ed *editing) inAnchor(n *yaml.Node) *schema.Problem {
	if n.Anchor != "" && uses(ed.root, n) > 0 {
		return ed.mine(n)
	}
	if n.Kind != yaml.AliasNode {
		for _, child := range n.Content {
			if p := ed.inAnchor(child); p != nil {
				return p
			}
		}
	}
	return nil
}

func (ed *editing) removeField(at held) (splice, *schema.Problem) {
	s, n := ed.src, at.parent
	i := slices.Index(n.Content, at.key)
	begin, end := s.startOf(at.key), s.end(at.node, at.key.Column-1)
	if isEmpty(at.node) {
		end = s.afterColon(at.key)
	}
	if n.Style&yaml.FlowStyle != 0 {
		return ed.cutFlow(n, i, 2, begin, end), nil
	}
	if line := s.lineStart(begin); strings.TrimLeft(s.text[line:begin], " ") == "" {
		return splice{line, min(s.lineEnd(end)+1, len(s.text)), ""}, nil
	}
	if i+2 < len(n.Content) { // it follows the dash of a list
		return splice{begin, s.startOf(n.Content[i+2]), ""}, nil
	}
	return splice{}, ed.problem(at.key, "the field cannot be removed in place", "edit the file by hand")
}

func (ed *editing) removeItem(at held) (splice, *schema.Problem) {
	s, n := ed.src, at.parent
	begin, end := s.startOf(at.node), s.end(at.node, n.Column-1)
	if n.Style&yaml.FlowStyle != 0 {
		return ed.cutFlow(n, at.index, 1, begin, end), nil
	}
	line := s.lineStart(begin)
	if strings.TrimLeft(s.text[line:begin], " -") != "" {
		return splice{}, ed.problem(at.node, "the element cannot be removed in place", "edit the file by hand")
	}
	return splice{line, min(s.lineEnd(end)+1, len(s.text)), ""}, nil
}

// cutFlow cuts parts of an object or list in brackets with the comma that goes with
// them.
func (ed *editing) cutFlow(n *yaml.Node, i, parts, begin, end int) splice {
	s := ed.src
	if i+parts < len(n.Content) {
		return splice{begin, s.startOf(n.Content[i+parts]), ""}
	}
	if i > 0 {
		if comma := strings.LastIndexByte(s.text[:begin], ','); comma >= s.startOf(n) {
			begin = comma
		}
	}
	return splice{begin, end, ""}
}
