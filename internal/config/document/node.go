package document

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Step is one step of a path: a name, or an index of a list.
type Step struct {
	// Name is a key, "" for an index.
	Name string
	// Index is the place in a list, -1 for a name.
	Index int
}

// CutStep takes the first step off a path.
func CutStep(path string) (Step, string) {
	if path == "" {
		return Step{"", -1}, ""
	}
	if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(path, "[")); err == nil && path[0] == '[' {
		name, _ := strconv.Unquote(quoted)
		rest := strings.TrimPrefix(path[1+len(quoted):], "]")
		return Step{name, -1}, strings.TrimPrefix(rest, ".")
	}
	if path[0] == '[' {
		digits, rest, _ := strings.Cut(path[1:], "]")
		i, err := strconv.Atoi(digits)
		if err != nil {
			return Step{digits, -1}, ""
		}
		return Step{"", i}, strings.TrimPrefix(rest, ".")
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return Step{path, -1}, ""
	}
	return Step{path[:end], -1}, strings.TrimPrefix(path[end:], ".")
}

// Find returns the value that the step selects in n, and its key in a mapping.
func (s Step) Find(n *yaml.Node) (key, value *yaml.Node) {
	switch {
	case n.Kind == yaml.SequenceNode && s.Index >= 0 && s.Index < len(n.Content):
		return nil, n.Content[s.Index]
	case n.Kind == yaml.MappingNode && s.Index < 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == s.Name {
				return n.Content[i], n.Content[i+1]
			}
		}
		for _, merged := range Merged(n) {
			if key, value = s.Find(merged); value != nil {
				return key, value
			}
		}
	}
	return nil, nil
}

// Resolved returns the target of an alias, or n itself.
func Resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// IsMerge reports whether a key is the merge key <<.
func IsMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && key.Style&Quoted == 0
}

// Merged returns the mappings that << includes in n, the first of which has precedence.
// Other values of << are omitted.
func Merged(n *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !IsMerge(n.Content[i]) {
			continue
		}
		value := Resolved(n.Content[i+1])
		sources := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			sources = value.Content
		}
		for _, s := range sources {
			if s = Resolved(s); s.Kind == yaml.MappingNode {
				out = append(out, s)
			}
		}
	}
	return out
}

// IsNull reports whether a value is absent: nothing, ~ or null.
func IsNull(n *yaml.Node) bool {
	if n = Resolved(n); n.Kind != yaml.ScalarNode || n.Style&Quoted != 0 {
		return false
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return n.Tag == "!!null"
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// PlainTag reports whether a value has no explicit tag, or one that is redundant.
func PlainTag(n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle == 0 {
		return true
	}
	switch n.Kind {
	case yaml.MappingNode:
		return n.Tag == "!!map"
	case yaml.SequenceNode:
		return n.Tag == "!!seq"
	}
	return n.Tag == "!!str"
}

// number is what YAML takes for a number.
var number = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^0[xob][0-9a-fA-F_]+$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$`)

// Look is what a plain value looks like.
type Look uint8

// The looks.
const (
	// LooksText is anything else.
	LooksText Look = iota
	// LooksNumber is a number of any form.
	LooksNumber
	// LooksBool is true or false.
	LooksBool
)

// LookOf returns what a scalar that is not null looks like.
func LookOf(n *yaml.Node) Look {
	if n.Style&(Quoted|yaml.TaggedStyle) != 0 {
		return LooksText
	}
	switch n.Value {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return LooksBool
	}
	if c := n.Value[0]; (c < '0' || c > '9') && strings.IndexByte("+-.", c) < 0 {
		return LooksText
	}
	if number.MatchString(n.Value) {
		return LooksNumber
	}
	return LooksText
}
