package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config/decode"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// The limits of the labels of one object.
const (
	// MaxLabels is the maximum number of labels of an object and its servers.
	MaxLabels = 2000
	// MaxLabelSize is the longest name or value of one, in bytes.
	MaxLabelSize = 16 << 10
	// maxLabelIndex is the largest index into a list.
	maxLabelIndex = 499
	// maxLabelProblems limits the problems of one object.
	maxLabelProblems = 20
)

// LabelFault is a kind of problem with a label.
type LabelFault string

// The kinds of faults.
const (
	// LabelUnknown is of a label that names no field.
	LabelUnknown LabelFault = "unknown"
	// LabelForbidden is of a field that labels may not set.
	LabelForbidden LabelFault = "forbidden"
	// LabelValue is of a value that is not possible.
	LabelValue LabelFault = "value"
	// LabelReference is a reference to an object that does not exist.
	LabelReference LabelFault = "reference"
)

// LabelProblem is a problem with a discovered object.
type LabelProblem struct {
	// Problem has no place in a file.
	Problem
	// Fault is its kind.
	Fault LabelFault
	// Label is the label with the problem, nil if it concerns the whole object.
	Label *Label
}

// Found is a discovered object with its decoded labels.
// It is not changed.
type Found struct {
	// Discovered is what it was made of.
	Discovered *Discovered
	// Object is a *Proxy, *TCPProxy or *UDPProxy; nil if there are Problems.
	Object Named
	// Problems are what is wrong with the labels by themselves.
	Problems []LabelProblem

	places labelPlaces
	// read is what could be read of it, whatever is wrong.
	read Named
}

// Read returns the decoded object, without the labels that have problems; nil if nothing
// could be decoded.
func (f *Found) Read() Named { return f.read }

// Find decodes the labels of an object. Ports are the ports of a proxy that specifies none.
// Whether the result is consistent with the rest of a configuration is checked by an Adder.
func Find(d *Discovered, ports []string) *Found {
	f := &Found{Discovered: d, places: labelPlaces{prefix: len(schema.JoinPath(d.Kind, d.Name)), by: map[string]int{}}}
	report := schema.NewReport("", &f.places)
	kind := KindOf(d.Kind)
	at := report.Root().Field(d.Kind).Field(d.Name).Called(kind.Noun, d.Name)
	if fault := decode.CheckName(d.Name); fault != nil {
		at.Problem(fault.What, fault.Remedy)
		f.addReport(report)
		return f
	}
	said := len(d.Labels)
	for i := range d.Servers {
		said += len(d.Servers[i].Labels)
	}
	switch {
	case said > MaxLabels:
		at.Problemf("remove some of the labels", "%d labels, more than the maximum of %d", said, MaxLabels)
	case d.Kind != "proxies" && len(d.Servers) == 0 && !d.Written:
		at.Problem("it has no server that can take connections", "")
	}
	if f.addReport(report); f.Problems != nil {
		return f
	}
	t := labelTree{found: f, decoder: newDecoder(nil), at: at}
	t.decoder.Labels = true
	root := t.read(kind.Schema(), d, ports)
	// Decode the valid part too, to report all problems at once.
	v := reflect.New(kind.Schema().Go)
	t.decoder.Object(root, kind.Schema(), v.Elem(), at)
	f.addReport(report)
	f.read = v.Interface().(Named)
	f.read.Info().Name = d.Name
	if f.Problems == nil {
		f.Object = f.read
		for _, i := range t.unserved {
			f.Object.(*Proxy).Routes[i].Unserved = true
		}
	}
	return f
}

// addReport adds the problems of a report, with their labels. Problems of a field that
// already has one, or below it, are omitted as consequences.
func (f *Found) addReport(report *schema.Report) {
	before := f.Problems
	for _, p := range report.Problems() {
		if slices.ContainsFunc(before, func(had LabelProblem) bool {
			below, inside := strings.CutPrefix(p.Field, had.Field)
			return inside && (below == "" || below[0] == '.' || below[0] == '[')
		}) {
			continue
		}
		fault := LabelValue
		if strings.HasPrefix(p.What, "there is no ") {
			fault = LabelReference
		}
		f.add(p, fault)
	}
}

// add adds a problem, whose line is the number of its label.
func (f *Found) add(p Problem, fault LabelFault) {
	if len(f.Problems) < maxLabelProblems {
		f.Problems = append(f.Problems, f.problem(p, fault))
	}
}

func (f *Found) problem(p Problem, fault LabelFault) LabelProblem {
	var label *Label
	if p.Line > 0 {
		label = f.places.labels[p.Line-1]
	}
	p.File, p.Line, p.Column = "", 0, 0
	return LabelProblem{Problem: p, Fault: fault, Label: label}
}

// LabelOf returns the label that sets the field with this path, such as
// "proxies.shop.routes[0].path", or the object around it; nil if there is none.
func (f *Found) LabelOf(path string) *Label {
	if line, _ := f.places.Position(path); line > 0 {
		return f.places.labels[line-1]
	}
	return nil
}

// labelPlaces maps fields to labels. It counts labels as lines.
type labelPlaces struct {
	labels []*Label
	by     map[string]int // line by the path in the object
	prefix int            // of paths, which names the object
}

// Position returns the line of the label that sets a field, or the object around it.
func (p *labelPlaces) Position(path string) (line, column int) {
	if len(path) <= p.prefix {
		return 0, 0
	}
	for path = path[p.prefix:]; path != ""; {
		if line := p.by[strings.TrimPrefix(path, ".")]; line > 0 {
			return line, 1
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0, 0
}

// File returns "".
func (p *labelPlaces) File(string) string { return "" }

// labelTree makes a tree of YAML of labels, so that what reads documents reads them.
type labelTree struct {
	found   *Found
	decoder *decode.Decoder
	at      schema.Place
	// unserved are the routes that no server was found for.
	unserved []int
}

// branch is one level of the tree: its value, and the branches below it.
type branch struct {
	line   int // of the label that sets it, or the first below it
	value  *string
	fields map[string]*branch
	list   map[int]*branch
}

// read returns the tree of an object.
func (t *labelTree) read(o *schema.Object, d *Discovered, ports []string) *yaml.Node {
	root := t.branch(o, d.Labels, "")
	if d.Kind == "proxies" && len(ports) > 0 && root.fields["ports"] == nil {
		text := strings.Join(ports, ",")
		root.field("ports").value = &text
	}
	node := t.node(&schema.Type{Kind: schema.Struct, Object: o}, root, "")
	if d.Written {
		return node
	}
	if d.Kind != "proxies" {
		setEntry(node, "servers", t.servers(o.Field("servers").Type.Elem, d.Servers, "address", "servers"))
		return node
	}
	routes := value(node, "routes")
	if routes == nil {
		routes = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
		setEntry(node, "routes", routes)
	}
	for i, route := range routes.Content {
		switch {
		case route.Kind != yaml.MappingNode || value(route, "fixed_response") != nil:
		case len(d.Servers) == 0:
			setEntry(route, "fixed_response", unavailable())
			t.unserved = append(t.unserved, i)
		default:
			setEntry(route, "servers", t.servers(model().route.Field("servers").Type.Elem, d.Servers, "url", fmt.Sprintf("routes[%d].servers", i)))
		}
	}
	return node
}

// unavailable is what a route without a server answers.
func unavailable() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	setEntry(n, "status", &yaml.Node{Kind: yaml.ScalarNode, Value: "503"})
	return n
}

// servers returns the list of servers that a route or a stream has.
func (t *labelTree) servers(elem *schema.Type, servers []DiscoveredServer, address, path string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range servers {
		s := &servers[i]
		below := fmt.Sprintf("%s[%d]", path, i)
		n := t.node(&schema.Type{Kind: schema.Struct, Object: elem.Object}, t.branch(elem.Object, s.Labels, below), below)
		setEntry(n, address, &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: s.Address})
		list.Content = append(list.Content, n)
	}
	return list
}

// branch parses labels into a tree for an object.
func (t *labelTree) branch(o *schema.Object, labels []Label, path string) *branch {
	root := &branch{}
	sorted := make([]*Label, len(labels))
	for i := range labels {
		sorted[i] = &labels[i]
	}
	slices.SortFunc(sorted, func(a, b *Label) int {
		return strings.Compare(a.Path+"\x00"+a.Name+"\x00"+a.Container, b.Path+"\x00"+b.Name+"\x00"+b.Container)
	})
	for _, l := range sorted {
		t.found.places.labels = append(t.found.places.labels, l)
		t.label(o, root, l, path)
	}
	return root
}

// label puts one label into the tree.
func (t *labelTree) label(o *schema.Object, at *branch, l *Label, path string) {
	line := len(t.found.places.labels)
	problem := func(fault LabelFault, what, remedy string) {
		t.found.add(Problem{Line: line, Object: t.at.Object(), Field: t.at.Path() + "." + path, What: what, Remedy: remedy}, fault)
	}
	if len(l.Path) > MaxLabelSize || len(l.Value) > MaxLabelSize {
		problem(LabelValue, fmt.Sprintf("the label is longer than %d bytes", MaxLabelSize), "shorten it")
		return
	}
	typ := &schema.Type{Kind: schema.Struct, Object: o}
	for step := range strings.SplitSeq(strings.ToLower(l.Path), ".") {
		switch {
		case typ.Kind == schema.Struct:
			f := typ.Object.Field(step)
			if f == nil {
				t.unknown(typ.Object, step, path, line)
				return
			}
			if path = join(path, step); !f.Label && !(t.found.Discovered.Written && namesServer(f)) {
				problem(LabelForbidden, t.found.Discovered.Writer()+" cannot set "+path, "set it in the configuration; "+t.found.Discovered.Writer()+" can set "+strings.Join(typ.Object.LabelNames(), ", "))
				return
			}
			typ, at = f.Type, at.field(step)
		case typ.Kind == schema.List:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i > maxLabelIndex {
				problem(LabelUnknown, fmt.Sprintf("%s is a list, and %q is not the number of an element", path, decode.Shorten(step)), "write a number from 0, such as "+path+".0")
				return
			}
			typ, at, path = typ.Elem, at.element(i), fmt.Sprintf("%s[%d]", path, i)
		default:
			problem(LabelUnknown, fmt.Sprintf("%s has no fields", path), "remove ."+decode.Shorten(step))
			return
		}
		if at.line == 0 {
			at.line = line
		}
		if t.found.places.by[path] == 0 {
			t.found.places.by[path] = line
		}
	}
	if at.value != nil && *at.value != l.Value {
		problem(LabelValue, path+" is set twice with different values", "remove one of the labels")
		return
	}
	at.value, at.line = &l.Value, line
	t.found.places.by[path] = line
}

// namesServer reports whether a field names servers, which a document can set and labels
// cannot.
func namesServer(f *schema.Field) bool {
	switch f.Owner {
	case reflect.TypeFor[Route](), reflect.TypeFor[TCPProxy](), reflect.TypeFor[UDPProxy]():
		return f.Name == "servers"
	case reflect.TypeFor[Server]():
		return f.Name == "url"
	case reflect.TypeFor[StreamServer]():
		return f.Name == "address"
	}
	return false
}

// unknown reports an unknown field.
func (t *labelTree) unknown(o *schema.Object, name, path string, line int) {
	report := schema.NewReport("", nil)
	t.decoder.Unknown(&yaml.Node{Value: decode.Shorten(name), Line: line}, o, report.Root())
	for _, p := range report.Problems() {
		p.Field = t.at.Path() + "." + join(path, p.Field)
		p.Object = t.at.Object()
		t.found.add(p, LabelUnknown)
	}
}

func (b *branch) field(name string) *branch {
	if b.fields == nil {
		b.fields = map[string]*branch{}
	}
	if b.fields[name] == nil {
		b.fields[name] = &branch{}
	}
	return b.fields[name]
}

func (b *branch) element(i int) *branch {
	if b.list == nil {
		b.list = map[int]*branch{}
	}
	if b.list[i] == nil {
		b.list[i] = &branch{}
	}
	return b.list[i]
}

// node returns the YAML node for a value of a type.
func (t *labelTree) node(typ *schema.Type, b *branch, path string) *yaml.Node {
	problem := func(what, remedy string) *yaml.Node {
		t.found.add(Problem{Line: b.line, Object: t.at.Object(), Field: t.at.Path() + "." + path, What: what, Remedy: remedy}, LabelValue)
		return &yaml.Node{Kind: yaml.MappingNode, Line: b.line, Column: 1}
	}
	switch {
	case typ.Kind == schema.List && b.value != nil && len(b.list) > 0:
		return problem(path+" is set both as a whole and by element", "write all elements with commas, or each with its number")
	case typ.Kind == schema.List && b.value != nil:
		n := &yaml.Node{Kind: yaml.SequenceNode, Line: b.line, Column: 1}
		if typ.Elem.Kind == schema.Struct {
			return problem(path+" is a list of objects", "name the fields of each element, such as "+path+".0."+first(typ.Elem.Object.LabelNames()))
		}
		for text := range strings.SplitSeq(*b.value, ",") {
			if text = strings.TrimSpace(text); text != "" {
				n.Content = append(n.Content, scalar(typ.Elem, text, b.line))
			}
		}
		return n
	case typ.Kind == schema.List:
		n := &yaml.Node{Kind: yaml.SequenceNode, Line: b.line, Column: 1}
		for i := range len(b.list) {
			e := b.list[i]
			if e == nil {
				return problem(fmt.Sprintf("%s has %d elements, and none has the number %d", path, len(b.list), i), "number the elements from 0 without a gap")
			}
			n.Content = append(n.Content, t.node(typ.Elem, e, fmt.Sprintf("%s[%d]", path, i)))
		}
		return n
	case typ.Kind == schema.Struct:
		return t.object(typ.Object, b, path, problem)
	case b.value == nil:
		return &yaml.Node{Kind: yaml.MappingNode} // reported as an unknown field
	}
	return scalar(typ, *b.value, b.line)
}

// object returns the YAML node of an object: its fields, or true for its defaults.
func (t *labelTree) object(o *schema.Object, b *branch, path string, problem func(what, remedy string) *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Line: b.line, Column: 1}
	if b.value != nil {
		enabled := o.Field("enabled")
		switch text := strings.ToLower(strings.TrimSpace(*b.value)); {
		case text == "true":
		case text == "false" && len(b.fields) == 0 && enabled != nil && enabled.Label:
			setEntry(n, "enabled", scalar(enabled.Type, text, b.line))
			return n
		default:
			return problem(fmt.Sprintf("%s is an object, and found the value %q", path, decode.Shorten(*b.value)), "name one of its fields: "+strings.Join(o.LabelNames(), ", "))
		}
	}
	for _, f := range o.Fields {
		if c := b.fields[f.Name]; c != nil {
			setEntry(n, f.Name, t.node(f.Type, c, join(path, f.Name)))
			n.Content[len(n.Content)-2].Line = c.line
		}
	}
	return n
}

// scalar returns a value as it would be written in a document.
func scalar(typ *schema.Type, text string, line int) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: line, Column: 1}
	if typ.Kind == schema.Text {
		n.Style = yaml.DoubleQuotedStyle
	} else {
		n.Value = strings.TrimSpace(text)
	}
	if typ.Kind == schema.Bool {
		n.Value = strings.ToLower(n.Value)
	}
	if document.IsNull(n) {
		n.Style = yaml.DoubleQuotedStyle // a label with an empty value is wrong, not absent
	}
	return n
}

// setEntry adds an entry to a mapping.
func setEntry(n *yaml.Node, key string, value *yaml.Node) {
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
}

// value returns the value of a key in a mapping, nil if it has none.
func value(n *yaml.Node, key string) *yaml.Node {
	_, v := (document.Step{Name: key, Index: -1}).Find(n)
	return v
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
