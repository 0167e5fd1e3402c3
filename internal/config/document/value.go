package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// value is the meaning of a node: aliases and merge keys are resolved, comments and style
// ignored.
type value struct {
	kind   yaml.Kind
	text   string // of a scalar, in the form in which JSON writes it
	look   Look
	null   bool
	items  []*value
	fields map[string]*value
	names  []string // of fields, in their order
}

// meaning returns what a node means. N is within the bounds of Parse.
func meaning(n *yaml.Node) *value {
	n = Resolved(n)
	v := &value{kind: n.Kind}
	switch n.Kind {
	case yaml.ScalarNode:
		if v.null = IsNull(n); !v.null {
			v.text, v.look = n.Value, LookOf(n)
		}
	case yaml.SequenceNode:
		for _, child := range n.Content {
			v.items = append(v.items, meaning(child))
		}
	case yaml.MappingNode:
		v.fields = map[string]*value{}
		eachField(n, func(key, child *yaml.Node) {
			if !IsMerge(key) {
				v.put(Resolved(key).Value, meaning(child))
			}
		})
		for _, merged := range Merged(n) {
			from := meaning(merged)
			for _, name := range from.names {
				if v.fields[name] == nil {
					v.put(name, from.fields[name])
				}
			}
		}
	}
	return v
}

func (v *value) put(name string, child *value) {
	if v.fields[name] == nil {
		v.names = append(v.names, name)
	}
	v.fields[name] = child
}

// same reports whether two values are equal.
func (v *value) same(w *value) bool {
	if v == nil || w == nil {
		return v == w
	}
	return v.kind == w.kind && v.text == w.text && v.look == w.look && v.null == w.null &&
		slices.EqualFunc(v.items, w.items, (*value).same) && maps.EqualFunc(v.fields, w.fields, (*value).same)
}

// empty reports whether v is an object or a list without anything in it.
func (v *value) empty() bool { return len(v.items) == 0 && len(v.fields) == 0 }

// parseValue reads the value of an edit: JSON, whose objects keep their order.
// Fields that are null are left out.
func parseValue(data []byte) (*value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := readValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("there is more than one value")
	}
	return v, nil
}

func readValue(dec *json.Decoder, depth int) (*value, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("lists and objects are nested more than %d levels deep", maxDepth)
	}
	switch t := token.(type) {
	case json.Delim:
		v := &value{kind: yaml.SequenceNode}
		if t == '{' {
			v = &value{kind: yaml.MappingNode, fields: map[string]*value{}}
		}
		for dec.More() {
			name := ""
			if t == '{' {
				key, err := dec.Token()
				if err != nil {
					return nil, err
				}
				if name, _ = key.(string); v.fields[name] != nil {
					return nil, fmt.Errorf("duplicate field %q", name)
				}
			}
			child, err := readValue(dec, depth+1)
			switch {
			case err != nil:
				return nil, err
			case t == '[':
				v.items = append(v.items, child)
			case !child.null:
				v.put(name, child)
			}
		}
		_, err := dec.Token()
		return v, err
	case string:
		return &value{kind: yaml.ScalarNode, text: t}, nil
	case bool:
		return &value{kind: yaml.ScalarNode, text: strconv.FormatBool(t), look: LooksBool}, nil
	case json.Number:
		return &value{kind: yaml.ScalarNode, text: t.String(), look: LooksNumber}, nil
	}
	return &value{kind: yaml.ScalarNode, null: true}, nil
}

// plainScalar is a text that needs no quotes wherever it stands.
var plainScalar = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)

// inline returns v on one line, in a form that is valid anywhere. Style is that of the
// replaced scalar, 0 for none.
func (v *value) inline(style yaml.Style) string {
	switch v.kind {
	case yaml.SequenceNode:
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			parts[i] = item.inline(0)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yaml.MappingNode:
		parts := make([]string, len(v.names))
		for i, name := range v.names {
			parts[i] = keyText(name) + ": " + v.fields[name].inline(0)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	switch {
	case v.null:
		return "null"
	case v.look != LooksText:
		return v.text
	case style&yaml.SingleQuotedStyle != 0 && plainText(v.text):
		return "'" + strings.ReplaceAll(v.text, "'", "''") + "'"
	case style&Quoted == 0 && plain(v.text):
		return v.text
	}
	return quote(v.text)
}

func plain(text string) bool {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	return plainScalar.MatchString(text) && !IsNull(n) && LookOf(n) == LooksText
}

// quote returns a text in double quotes, as YAML and JSON both have it.
func quote(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can be written
	return strings.TrimSuffix(b.String(), "\n")
}

func keyText(name string) string {
	if plain(name) || plainKey.MatchString(name) {
		return name
	}
	return quote(name)
}

// plainKey is a name that needs no quotes as a key.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// block returns v as it follows a colon or dash, in lines with this indentation, or on one
// line if it fits.
func (v *value) block(indent, step int) string {
	if v.kind == yaml.ScalarNode || v.empty() || !slices.ContainsFunc(v.items, func(i *value) bool { return i.kind != yaml.ScalarNode }) && v.kind == yaml.SequenceNode {
		return " " + v.inline(0)
	}
	var b strings.Builder
	margin := "\n" + strings.Repeat(" ", indent)
	for _, name := range v.names {
		b.WriteString(margin + keyText(name) + ":" + v.fields[name].block(indent+step, step))
	}
	for _, item := range v.items {
		b.WriteString(margin + "-" + item.behindDash(indent+2, step))
	}
	return b.String()
}

// behindDash is block for an element of a list, whose first field is on the line of its
// dash.
func (v *value) behindDash(indent, step int) string {
	text := v.block(indent, step)
	if strings.HasPrefix(text, "\n") {
		return " " + strings.TrimLeft(text, "\n ")
	}
	return text
}
