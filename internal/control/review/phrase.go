package review

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// describe describes every object in the difference.
func (r *reviewer) describe() {
	for i := range r.Difference.Objects {
		o := &r.Difference.Objects[i]
		at := Address{o.Kind, o.Name}
		r.object(at).Change = o.Change
		switch o.Change {
		case diff.Added:
			r.addSentence(at, Sentence{Severity: Info, Text: " is added" + r.outline(r.After, at)})
		case diff.Removed:
			r.addSentence(at, Sentence{Severity: Info, Text: " is removed" + r.outline(r.Before, at)})
		default:
			kind := config.KindOf(o.Kind)
			for j := range o.Fields {
				f := &o.Fields[j]
				r.addSentence(at, Sentence{Severity: Info, Path: f.Path, Text: place(kind.Schema(), f).sentence(f)})
			}
		}
	}
}

// spot is the position of a field in its object.
type spot struct {
	// subject are the parts of the object around the field, in words: "route /api",
	// "server http://10.0.0.7:3000". Where it is empty the object itself is.
	subject []string
	// leaf are the fields from there to the one that changed, which is the last.
	leaf []*schema.Field
	// element is the name of the element of the list that came or went, where the
	// field is a list and changed in one.
	element string
	isOne   bool
}

// place finds a field with its path, and describes the parts around it.
func place(o *schema.Object, f *diff.FieldChange) spot {
	var s spot
	steps := fold(o, split(f.Path))
	lists := calledLists(o, steps)
	within := f.Within
	for i, step := range steps {
		field := o.Field(step.name)
		if field == nil {
			break
		}
		s.leaf = append(s.leaf, field)
		o = field.Type.Innermost().Object
		if !step.indexed {
			continue
		}
		lists--
		called := field.Called + " #" + strconv.Itoa(step.index+1)
		if field.Called != "" {
			called, within = cut(within, lists, o, steps[i+1:])
		}
		if i == len(steps)-1 {
			s.element, s.isOne = called, true
			break
		}
		for _, outer := range s.leaf[:len(s.leaf)-1] {
			s.subject = append(s.subject, plain(outer.Name))
		}
		s.subject, s.leaf = append(s.subject, called), nil
	}
	if s.isOne {
		for _, outer := range s.leaf[:len(s.leaf)-1] {
			s.subject = append(s.subject, plain(outer.Name))
		}
		s.leaf = s.leaf[len(s.leaf)-1:]
	}
	return s
}

// step is one step of a path: a field, and an index if it goes on to an element.
type step struct {
	name    string
	index   int
	indexed bool
}

// split splits a path of fields and indices.
func split(path string) []step {
	var out []step
	for path != "" {
		var s document.Step
		if s, path = document.CutStep(path); s.Index >= 0 && len(out) > 0 {
			last := &out[len(out)-1]
			last.index, last.indexed = s.Index, true
			continue
		}
		out = append(out, step{name: s.Name})
	}
	return out
}

// fold makes one step of a map of objects and the key in it, as of a list and an index.
func fold(o *schema.Object, steps []step) []step {
	out := make([]step, 0, len(steps))
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		if o != nil {
			f := o.Field(s.name)
			if o = nil; f != nil {
				o = f.Type.Innermost().Object
				if f.Type.Kind == schema.Map && o != nil && i+1 < len(steps) {
					s.indexed = true
					i++
				}
			}
		}
		out = append(out, s)
	}
	return out
}

// calledLists counts the lists with elements that have a name on the way.
func calledLists(o *schema.Object, steps []step) int {
	n := 0
	for _, s := range steps {
		f := o.Field(s.name)
		if f == nil {
			return n
		}
		if s.indexed {
			n++
		}
		o = f.Type.Innermost().Object
		if o == nil {
			return n
		}
	}
	return n
}

// cut removes the description of the first part from that of all parts. Descriptions can
// contain commas, so the next one is searched with its noun.
func cut(within string, left int, o *schema.Object, steps []step) (first, rest string) {
	if left == 0 {
		return within, ""
	}
	for _, s := range steps {
		f := o.Field(s.name)
		if f == nil {
			break
		}
		if s.indexed {
			if i := strings.Index(within, ", "+f.Called+" "); i >= 0 {
				return within[:i], within[i+2:]
			}
			break
		}
		if o = f.Type.Innermost().Object; o == nil {
			break
		}
	}
	return within, ""
}

// sentence is what became of the field, as it goes on after the object's title.
func (s spot) sentence(f *diff.FieldChange) string {
	subject := " "
	if len(s.subject) > 0 {
		subject = ": " + strings.Join(s.subject, ", ") + " "
	}
	if len(s.leaf) == 0 {
		return subject + "changes"
	}
	field := s.leaf[len(s.leaf)-1]
	if s.isOne {
		return subject + s.one(field, f)
	}
	names := make([]string, len(s.leaf))
	for i, l := range s.leaf {
		names[i] = plainOf(l)
	}
	if strings.HasSuffix(field.Called, " matcher") {
		names = names[len(names)-1:]
	}
	if field.Type.Kind == schema.Bool && (field.Name == "enabled" || field.Name == "active") {
		if names = names[:len(names)-1]; len(names) == 0 {
			return subject + "is switched " + value(nil, nil, f.After, "")
		}
	}
	return subject + predicate(field, strings.Join(names, " "), f)
}

// one describes an element that was added or removed.
func (s spot) one(field *schema.Field, f *diff.FieldChange) string {
	element := s.element
	if element == "" {
		element = "one of its " + plain(field.Name)
	}
	element = shorten(element)
	if f.Change == diff.Removed {
		return "loses " + element
	}
	if details := value(field, field.Type.Elem, f.After, field.CalledBy); details != "" {
		return "gets " + element + ", " + details
	}
	return "gets " + element
}

// predicate describes a field that is called name.
func predicate(field *schema.Field, name string, f *diff.FieldChange) string {
	switch {
	case f.Change == diff.Moved:
		return "changes the order of its " + name
	case field.Name == "address" && f.Change == diff.Changed:
		if before, after := text(f.Before), text(f.After); before != "" && after != "" {
			from, to := apart(before, after)
			return "moves from " + from + " to " + to
		}
	case field.Name == "password_hash":
		return "gets another password"
	case hidden(field, f):
		return hiddenPredicate(name, f.Change)
	case field.Type.Kind == schema.Bool || isSwitch(field):
		return switched(name, f)
	case field.Type.Kind == schema.List && field.Type.Elem.Kind != schema.Struct:
		if words := listChange(name, f); words != "" {
			return words
		}
	}
	before, after := value(field, field.Type, f.Before, ""), value(field, field.Type, f.After, "")
	if f.Secret && before == after {
		return "gets another " + name + " from outside the document"
	}
	return valuePredicate(field, name, f.Change, before, after)
}

// valuePredicate describes a field with its values.
func valuePredicate(field *schema.Field, name string, change diff.Verb, before, after string) string {
	isObject := field.Type.Kind == schema.Struct
	isList := field.Type.Kind == schema.List
	switch {
	case isList && change == diff.Added && after != "" && after != "none":
		return "gets " + after
	case isList && change == diff.Added:
		return "gets an empty list of " + name + ", and takes none over"
	case isList && change == diff.Removed:
		return "loses all " + name
	case change == diff.Removed && (isObject || before == ""):
		return "loses its " + name
	case change == diff.Removed:
		return "loses its " + name + ", which was " + before
	case change == diff.Added && isObject && after == "":
		return "gets " + article(name) + " with its defaults"
	case change == diff.Added && isObject:
		return "gets " + article(name) + ": " + after
	case change == diff.Added && after == "":
		return "gets an empty " + name
	case before == after && before != "":
		return "changes its " + name
	case after == "":
		return "clears its " + name + ", which was " + before
	case before == "":
		return "sets " + name + " to " + after
	}
	return "sets " + name + " to " + after + " (was " + before + ")"
}

// switched describes a field that is on or off.
func switched(name string, f *diff.FieldChange) string {
	switch {
	case f.Change == diff.Removed:
		return "no longer says whether " + name + " is on"
	case string(f.After) == "true":
		return "switches " + name + " on"
	case string(f.After) == "false":
		return "switches " + name + " off"
	}
	return "sets " + name + " to " + value(nil, nil, f.After, "")
}

// hiddenPredicate describes a field whose value is secret.
func hiddenPredicate(name string, change diff.Verb) string {
	switch change {
	case diff.Added:
		return "gets " + article(name)
	case diff.Removed:
		return "loses its " + name
	}
	return "gets another " + name
}

// listChange describes what was added to a list of plain values and removed from it; "" if
// that is not possible.
func listChange(name string, f *diff.FieldChange) string {
	var before, after []string
	if len(f.Before) > 0 && json.Unmarshal(f.Before, &before) != nil || len(f.After) > 0 && json.Unmarshal(f.After, &after) != nil {
		return ""
	}
	came, left := missing(after, before), missing(before, after)
	switch {
	case len(after) == 0 && f.Change == diff.Removed:
		return "loses all " + name + ": " + listed(shortened(before))
	case len(came) == 0 && len(left) == 0:
		return "changes the order of its " + name
	case len(left) == 0:
		return "adds to " + name + ": " + listed(shortened(came))
	case len(came) == 0:
		return "removes from " + name + ": " + listed(shortened(left))
	}
	return "adds to " + name + ": " + listed(shortened(came)) + "; removes: " + listed(shortened(left))
}

// missing returns what is in a and not in b.
func missing(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, text := range b {
		in[text] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(text string) bool { return in[text] })
}

// apart shortens two addresses with the same host to the part that differs.
func apart(before, after string) (string, string) {
	i, j := strings.LastIndexByte(before, ':'), strings.LastIndexByte(after, ':')
	if i >= 0 && j >= 0 && before[:i] == after[:j] {
		return before[i:], after[j:]
	}
	return before, after
}

// article puts an article before a name, except before a plural.
func article(name string) string {
	switch {
	case strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ss") || uncounted[name]:
		return name
	case strings.HasPrefix(name, "IP") || strings.HasPrefix(name, "HMAC") || strings.HasPrefix(name, "HTTP"):
		return "an " + name
	case strings.ContainsRune("aeio", rune(name[0])):
		return "an " + name
	}
	return "a " + name
}
