package importer

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Object is an object of the document that an importer writes. Its fields keep the
// order in which they were set.
type Object struct{ node *yaml.Node }

// NewObject returns an object without fields.
func NewObject() Object { return Object{&yaml.Node{Kind: yaml.MappingNode}} }

// Len returns how many fields the object has; the zero Object has none.
func (o Object) Len() int {
	if o.node == nil {
		return 0
	}
	return len(o.node.Content) / 2
}

// Set sets a field to a value: a string, an int, a bool, an Object, or a list of
// strings, ints or Objects. A field that was set is replaced in its place.
func (o Object) Set(name string, value any) Object {
	v := valueNode(value)
	for i := 0; i < len(o.node.Content); i += 2 {
		if o.node.Content[i].Value == name {
			o.node.Content[i+1] = v
			return o
		}
	}
	o.node.Content = append(o.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, v)
	return o
}

// Append adds an element to a field that is a list.
func (o Object) Append(name string, value any) {
	if list := o.get(name); list != nil {
		list.Content = append(list.Content, valueNode(value))
		return
	}
	o.Set(name, []Object{})
	list := o.get(name)
	list.Content = append(list.Content, valueNode(value))
}

// Has reports whether a field is set.
func (o Object) Has(name string) bool { return o.get(name) != nil }

// get returns the value of a field, nil if it is not set. Inlined, it makes the binary 90 kB
// larger.
//
//go:noinline
func (o Object) get(name string) *yaml.Node {
	for i := 0; i < len(o.node.Content); i += 2 {
		if o.node.Content[i].Value == name {
			return o.node.Content[i+1]
		}
	}
	return nil
}

// Names returns the names of the fields, in their order.
func (o Object) Names() []string {
	var names []string
	for i := 0; i < o.Len(); i++ {
		names = append(names, o.node.Content[2*i].Value)
	}
	return names
}

// Object returns a field that is an object, the zero Object if there is none.
func (o Object) Object(name string) Object {
	if n := o.get(name); n != nil && n.Kind == yaml.MappingNode {
		return Object{n}
	}
	return Object{}
}

// Text returns a field that is a single value as text, "" if there is none.
func (o Object) Text(name string) string {
	if n := o.get(name); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// Texts returns the elements of a field that is a list of single values.
func (o Object) Texts(name string) []string {
	var all []string
	if n := o.get(name); n != nil {
		for _, c := range n.Content {
			if c.Kind == yaml.ScalarNode {
				all = append(all, c.Value)
			}
		}
	}
	return all
}

// Objects returns the elements of a field that is a list of objects.
func (o Object) Objects(name string) []Object {
	var all []Object
	if n := o.get(name); n != nil {
		for _, c := range n.Content {
			if c.Kind == yaml.MappingNode {
				all = append(all, Object{c})
			}
		}
	}
	return all
}

// Merge sets all fields of another object and returns o.
func (o Object) Merge(other Object) Object {
	for i := 0; i+1 < len(other.node.Content); i += 2 {
		name := other.node.Content[i].Value
		o.Remove(name)
		o.node.Content = append(o.node.Content, other.node.Content[i], other.node.Content[i+1])
	}
	return o
}

// Remove removes a field.
func (o Object) Remove(name string) {
	for i := 0; i < len(o.node.Content); i += 2 {
		if o.node.Content[i].Value == name {
			o.node.Content = append(o.node.Content[:i], o.node.Content[i+2:]...)
			return
		}
	}
}

// Comment puts a comment above a field that was set.
func (o Object) Comment(name, text string) {
	for i := 0; i < len(o.node.Content); i += 2 {
		if key := o.node.Content[i]; key.Value == name {
			if key.HeadComment != "" {
				text = key.HeadComment + "\n" + text
			}
			key.HeadComment = text
		}
	}
}

// Flow writes the object on one line.
func (o Object) Flow() Object {
	o.node.Style = yaml.FlowStyle
	return o
}

func valueNode(value any) *yaml.Node {
	switch v := value.(type) {
	case Object:
		return v.node
	case []Object:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, o := range v {
			n.Content = append(n.Content, o.node)
		}
		return n
	case []int:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, i := range v {
			n.Content = append(n.Content, valueNode(i))
		}
		return n
	case []string:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, s := range v {
			n.Content = append(n.Content, valueNode(s))
		}
		return n
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
	case int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(v)}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	}
	panic(fmt.Sprintf("importer: a value of type %T", value))
}

// Key returns a text that equal objects have alike, to compare them by. It is no document.
func (o Object) Key() string {
	var b strings.Builder
	if o.node != nil {
		writeKey(&b, o.node)
	}
	return b.String()
}

func writeKey(b *strings.Builder, n *yaml.Node) {
	b.WriteByte(byte('0' + n.Kind))
	b.WriteString(strconv.Itoa(len(n.Value)))
	b.WriteByte(':')
	b.WriteString(n.Value)
	b.WriteByte('[')
	for _, c := range n.Content {
		writeKey(b, c)
	}
	b.WriteByte(']')
}

// Hoist moves the fields with these names that all routes have alike to their proxy.
func Hoist(proxy Object, routes []Object, names []string) {
	for _, name := range names {
		if len(routes) < 2 || !routes[0].Has(name) {
			continue
		}
		first := NewObject().CopyField(routes[0], name)
		key := first.Key()
		if slices.ContainsFunc(routes[1:], func(r Object) bool { return !r.Has(name) || NewObject().CopyField(r, name).Key() != key }) {
			continue
		}
		for _, r := range routes {
			r.Remove(name)
		}
		proxy.Merge(first)
	}
}

// Write returns the document with a comment at its head.
func (o Object) Write(head string) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	doc := &yaml.Node{Kind: yaml.DocumentNode, HeadComment: head, Content: []*yaml.Node{o.node}}
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	return b.Bytes(), e.Close()
}

// Empty reports whether o is the zero Object, which cannot be written to.
func (o Object) Empty() bool { return o.node == nil }

// CopyField sets a field to what another object has in it, and returns o.
func (o Object) CopyField(from Object, name string) Object {
	if n := from.get(name); n != nil {
		o.Remove(name)
		o.node.Content = append(o.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, n)
	}
	return o
}
