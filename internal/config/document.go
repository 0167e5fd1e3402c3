package config

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/schema"
)

// Document is a file as it was read: it knows where each field stands. It is
// not changed and may be used by several goroutines at once.
type Document struct {
	name  string
	root  *yaml.Node
	notes []Problem
}

// Name returns the file's name, as it was given to Load.
func (d *Document) Name() string { return d.name }

// Notes returns what an operator should know of a configuration that Load had no
// problem with.
func (d *Document) Notes() []Problem { return d.notes }

// Report returns an empty report whose problems carry the file's name and the
// places of their fields. It is for checks after Load, as of plan.Compile.
func (d *Document) Report() *schema.Report { return schema.NewReport(d.name, d) }

// Position returns line and column, from 1, of the value of the field with this
// path: "proxies.shop.routes[0].path". For a field that is not in the file it
// is the place of the nearest object around it; 0, 0 in an empty file.
func (d *Document) Position(path string) (line, column int) {
	n := d.root
	if n == nil {
		return 0, 0
	}
	line, column = n.Line, n.Column
	for path != "" {
		var step pathStep
		step, path = cutStep(path)
		key, value := step.find(resolved(n))
		if value == nil {
			break
		}
		n = value
		if line, column = n.Line, n.Column; key != nil && resolved(n).Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle == 0 {
			line, column = key.Line, key.Column
		}
	}
	return line, column
}

// pathStep is one step of a path: a name, or an index of a list.
type pathStep struct {
	name  string
	index int
}

// cutStep takes the first step off a path.
func cutStep(path string) (pathStep, string) {
	if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(path, "[")); err == nil && path[0] == '[' {
		name, _ := strconv.Unquote(quoted)
		rest := strings.TrimPrefix(path[1+len(quoted):], "]")
		return pathStep{name, -1}, strings.TrimPrefix(rest, ".")
	}
	if path[0] == '[' {
		digits, rest, _ := strings.Cut(path[1:], "]")
		i, err := strconv.Atoi(digits)
		if err != nil {
			return pathStep{digits, -1}, ""
		}
		return pathStep{"", i}, strings.TrimPrefix(rest, ".")
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return pathStep{path, -1}, ""
	}
	return pathStep{path[:end], -1}, strings.TrimPrefix(path[end:], ".")
}

// find returns the value the step leads to in n, and its key in a mapping.
func (s pathStep) find(n *yaml.Node) (key, value *yaml.Node) {
	switch {
	case n.Kind == yaml.SequenceNode && s.index >= 0 && s.index < len(n.Content):
		return nil, n.Content[s.index]
	case n.Kind == yaml.MappingNode && s.index < 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == s.name {
				return n.Content[i], n.Content[i+1]
			}
		}
		for _, merged := range mergedMappings(n) {
			if key, value = s.find(merged); value != nil {
				return key, value
			}
		}
	}
	return nil, nil
}

// resolved returns what an alias stands for, or n itself.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// isMerge reports whether a key is the merge key <<.
func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && key.Style&quotedStyles == 0
}

// mergedMappings returns the mappings that << pulls into n, the first of which
// wins. Whatever else stands at << is left out.
func mergedMappings(n *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			continue
		}
		value := resolved(n.Content[i+1])
		sources := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			sources = value.Content
		}
		for _, s := range sources {
			if s = resolved(s); s.Kind == yaml.MappingNode {
				out = append(out, s)
			}
		}
	}
	return out
}
