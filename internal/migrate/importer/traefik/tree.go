package traefik

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/migrate/importer"
)

// node is a place in a configuration, whatever its format: a value, a list or a map,
// with its file and line. Names of fields are compared without regard to case, as
// Traefik does.
type node struct {
	importer.Origin
	path string // as a person names it: http.routers.shop.rule

	value  string
	isList bool
	list   []*node
	keys   []string // in the order of the source, as they are written
	fields map[string]*node
}

func newNode(file string, line int, path string) *node {
	return &node{Origin: importer.Origin{File: file, Line: line}, path: path}
}

// get returns the node below names; an empty one if there is none, so that calls can be
// chained.
func (n *node) get(names ...string) *node {
	for _, name := range names {
		next := n.fields[strings.ToLower(name)]
		if next == nil {
			missing := newNode(n.File, n.Line, join(n.path, name))
			missing.Skip()
			return missing
		}
		n = next
	}
	return n
}

// is reports whether there is anything.
func (n *node) is() bool { return n.value != "" || n.isList || n.fields != nil || !n.Settled() }

// text returns the value.
func (n *node) text() string { return strings.TrimSpace(n.value) }

// on reports whether the value says true.
func (n *node) on() bool {
	b, err := strconv.ParseBool(n.text())
	return err == nil && b
}

// number returns the value as a number, otherwise if it is none.
func (n *node) number(otherwise int) int {
	if v, err := strconv.Atoi(n.text()); err == nil {
		return v
	}
	return otherwise
}

// texts returns the values of a list; one value with commas is a list in a label.
func (n *node) texts() []string {
	var out []string
	for _, c := range n.list {
		out = append(out, c.text())
	}
	if len(out) == 0 && n.text() != "" {
		for _, part := range strings.Split(n.value, ",") {
			out = append(out, strings.TrimSpace(part))
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// children returns the fields in the order of the source, with their names.
func (n *node) children() []*node {
	var out []*node
	for _, key := range n.keys {
		out = append(out, n.fields[strings.ToLower(key)])
	}
	return out
}

// name is the last part of the path.
func (n *node) name() string { return n.path[strings.LastIndexByte(n.path, '.')+1:] }

// leaves calls each with every value below, and with what holds nothing.
func (n *node) leaves(each func(*node)) {
	if n.fields == nil && !n.isList {
		each(n)
		return
	}
	if len(n.keys)+len(n.list) == 0 {
		each(n)
	}
	for _, c := range n.children() {
		c.leaves(each)
	}
	for _, c := range n.list {
		c.leaves(each)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// below returns the field of a name, made if it is not there.
func (n *node) below(name, file string, line int) *node {
	key := strings.ToLower(name)
	if c := n.fields[key]; c != nil {
		return c
	}
	if n.fields == nil {
		n.fields = map[string]*node{}
	}
	c := newNode(file, line, join(n.path, name))
	n.fields[key] = c
	n.keys = append(n.keys, name)
	return c
}

// The bounds of what is read.
const (
	maxDepth = 32
	maxNodes = 500_000
)

// builder makes nodes and counts them.
type builder struct{ count int }

// fromYAML adds what a YAML node holds to n.
func (b *builder) fromYAML(n *node, y *yaml.Node, depth int) error {
	if b.count++; b.count > maxNodes || depth > maxDepth {
		return fmt.Errorf("%s:%d: nested too deep, or too much for one configuration", n.File, y.Line)
	}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 0 {
			return nil
		}
		return b.fromYAML(n, y.Content[0], depth)
	case yaml.AliasNode:
		return b.fromYAML(n, y.Alias, depth+1)
	case yaml.ScalarNode:
		if y.Tag != "!!null" {
			n.value = y.Value
		}
	case yaml.SequenceNode:
		n.isList = true
		for i, item := range y.Content {
			c := newNode(n.File, item.Line, join(n.path, strconv.Itoa(i)))
			n.list = append(n.list, c)
			if err := b.fromYAML(c, item, depth+1); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		if n.fields == nil {
			n.fields = map[string]*node{}
		}
		for i := 0; i+1 < len(y.Content); i += 2 {
			key, value := y.Content[i], y.Content[i+1]
			if key.Value == "<<" && key.Tag == "!!merge" {
				if err := b.merge(n, value, depth); err != nil {
					return err
				}
				continue
			}
			if err := b.fromYAML(n.below(key.Value, n.File, key.Line), value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// merge adds the fields of a merge key that are not there.
func (b *builder) merge(n *node, y *yaml.Node, depth int) error {
	if y.Kind == yaml.SequenceNode {
		for _, one := range y.Content {
			if err := b.merge(n, one, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	other := newNode(n.File, 0, n.path)
	if err := b.fromYAML(other, y, depth+1); err != nil {
		return err
	}
	for _, key := range other.keys {
		lower := strings.ToLower(key)
		if n.fields[lower] == nil {
			n.fields[lower] = other.fields[lower]
			n.keys = append(n.keys, key)
		}
	}
	return nil
}

// fromTOML adds what a decoded TOML document holds. lines has the lines of keys by their paths.
func (b *builder) fromTOML(n *node, value any, lines map[string]int, depth int) error {
	if b.count++; b.count > maxNodes || depth > maxDepth {
		return fmt.Errorf("%s: nested too deep, or too much for one configuration", n.File)
	}
	switch v := value.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		if n.fields == nil {
			n.fields = map[string]*node{}
		}
		for _, name := range names {
			c := n.below(name, n.File, cmp.Or(lines[strings.ToLower(join(n.path, name))], n.Line, 1))
			if err := b.fromTOML(c, v[name], lines, depth+1); err != nil {
				return err
			}
		}
	case []map[string]any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = v[i]
		}
		return b.fromTOML(n, items, lines, depth)
	case []any:
		n.isList = true
		for i, item := range v {
			path := join(n.path, strconv.Itoa(i))
			c := newNode(n.File, cmp.Or(lines[strings.ToLower(path)], n.Line, 1), path)
			n.list = append(n.list, c)
			if err := b.fromTOML(c, item, lines, depth+1); err != nil {
				return err
			}
		}
	default:
		n.value = fmt.Sprint(v)
	}
	return nil
}

// tomlLines returns the lines of the keys and tables of a text in TOML, by their paths in
// lower case. The content of an inline table has the line of its key.
func tomlLines(text string) map[string]int {
	lines, table, count := map[string]int{}, "", map[string]int{}
	put := func(path string, line int) {
		for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
			if lines[p] == 0 {
				lines[p] = line
			}
		}
	}
	line := 0
	for one := range strings.SplitSeq(text, "\n") {
		line++
		one = strings.TrimSpace(one)
		inner, isTable := strings.CutPrefix(one, "[")
		head, several := strings.CutPrefix(inner, "[")
		end := strings.IndexByte(head, ']')
		key, _, isKey := strings.Cut(one, "=")
		switch {
		case isTable && end > 0 && !strings.Contains(head[:end], ","):
			if table = tomlPath(head[:end], count); several {
				n := count[table]
				count[table]++
				table += "." + strconv.Itoa(n)
			}
			put(table, line)
		case isKey && !strings.HasPrefix(one, "#"):
			put(strings.TrimPrefix(table+"."+tomlPath(key, nil), "."), line)
		}
	}
	return lines
}

// tomlPath writes a key as a path, with the last element of each list of tables that it
// goes through.
func tomlPath(key string, count map[string]int) (path string) {
	parts := tomlParts.FindAllString(key, -1)
	for i, part := range parts {
		path = strings.TrimPrefix(path+"."+strings.ToLower(strings.Trim(part, `"'`)), ".")
		if n := count[path]; n > 0 && i+1 < len(parts) {
			path += "." + strconv.Itoa(n-1)
		}
	}
	return path
}

var tomlParts = regexp.MustCompile(`"[^"]*"|'[^']*'|[^."'\s]+`)

// label adds a label such as traefik.http.routers.shop.rule. An index is in
// brackets: servers[0].url.
func (b *builder) label(root *node, name, value, file string, line int) error {
	if b.count++; b.count > maxNodes {
		return fmt.Errorf("%s:%d: too many labels", file, line)
	}
	n := root
	parts := strings.Split(name, ".")
	if len(parts) > maxDepth {
		return fmt.Errorf("%s:%d: label %s is nested too deep", file, line, name)
	}
	for _, part := range parts {
		part, index, indexed := strings.Cut(part, "[")
		n = n.below(part, file, line)
		if !indexed {
			continue
		}
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || i < 0 || i > 1000 {
			return fmt.Errorf("%s:%d: label %s: invalid index", file, line, name)
		}
		n.isList = true
		for len(n.list) <= i {
			n.list = append(n.list, newNode(file, line, join(n.path, strconv.Itoa(len(n.list)))))
		}
		n = n.list[i]
	}
	n.value, n.File, n.Line = value, file, line
	return nil
}
