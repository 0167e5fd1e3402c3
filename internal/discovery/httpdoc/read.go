package httpdoc

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config"
	"headgate/internal/config/document"
	"headgate/internal/discovery"
	"headgate/internal/schema"
	"headgate/internal/setting/shown"
)

// read makes objects of a document. Those that are the same as before are the same pointers.
// If there are issues, nothing of the document may be used.
func (s *Source) read(data []byte, digest [sha256.Size]byte, before []*config.Discovered) ([]*config.Discovered, []discovery.Issue) {
	if issues := s.pinned(digest); issues != nil {
		return nil, issues
	}
	root, p := document.Tree("", data)
	if p != nil {
		return nil, []discovery.Issue{{Code: discovery.BadDocument, Message: notUsed + placed(p.Line, p.What), Hint: p.Remedy}}
	}
	r := &reader{origin: config.Origin{Via: config.ViaHTTP, Provider: s.name, Document: s.settings.Location()}, before: map[[2]string]*config.Discovered{}}
	for _, d := range before {
		r.before[[2]string{d.Kind, d.Name}] = d
	}
	r.document(root)
	return r.objects, r.issues
}

// placed puts a line in front of what is wrong in it.
func placed(line int, what string) string {
	if line == 0 {
		return what
	}
	return fmt.Sprintf("line %d: %s", line, what)
}

// reader reads one document.
type reader struct {
	origin  config.Origin
	before  map[[2]string]*config.Discovered
	objects []*config.Discovered
	issues  []discovery.Issue
}

// issue adds an issue of the document, or of one of its objects.
func (r *reader) issue(i discovery.Issue) {
	i.Code, i.Message = discovery.BadDocument, notUsed+i.Message
	if len(r.issues) < maxIssues {
		r.issues = append(r.issues, i)
	}
}

// The keys of a document that have objects.
var sections = []string{"proxies", "tcp_proxies", "udp_proxies"}

// document reads the sections.
func (r *reader) document(root *yaml.Node) {
	if root = document.Resolved(root); root.Kind != yaml.MappingNode || !document.PlainTag(root) {
		r.issue(discovery.Issue{Message: placed(root.Line, "it is no object with the keys "+strings.Join(sections, ", ")), Hint: "serve a document like a configuration file that has proxies only"})
		return
	}
	some := false
	r.entries(root, discovery.Issue{}, func(key string, line int, value *yaml.Node) {
		switch {
		case slices.Contains(sections, key):
			some = true
			r.section(key, value)
		case key == "version":
			if value.Value != "1" {
				r.issue(discovery.Issue{Message: placed(line, "the version is not 1"), Hint: "write version: 1, or remove it"})
			}
		default:
			r.issue(discovery.Issue{Message: placed(line, fmt.Sprintf("documents of providers cannot set %q", shortened(key))), Hint: "they can set " + strings.Join(sections, ", ")})
		}
	})
	if !some && len(r.issues) == 0 {
		r.issue(discovery.Issue{Message: "it has no proxies", Hint: "write proxies: {} if there are to be none"})
	}
}

// entries calls a function with each entry of a mapping.
func (r *reader) entries(n *yaml.Node, at discovery.Issue, do func(key string, line int, value *yaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content) && len(r.issues) < maxIssues; i += 2 {
		key := document.Resolved(n.Content[i])
		fault := ""
		switch {
		case document.IsMerge(n.Content[i]):
			fault = "documents of providers cannot have merge keys"
		case key.Kind != yaml.ScalarNode || !document.PlainTag(key) || key.Value == "" || strings.ContainsAny(key.Value, ".\x00"):
			fault = fmt.Sprintf("%q is no key", shortened(key.Value))
		case seen[key.Value]:
			fault = fmt.Sprintf("the key %q is there twice", shortened(key.Value))
		}
		if fault != "" {
			at.Message, at.Hint = placed(key.Line, fault), ""
			r.issue(at)
			continue
		}
		seen[key.Value] = true
		do(key.Value, key.Line, document.Resolved(n.Content[i+1]))
	}
}

// section reads the objects of a kind.
func (r *reader) section(kind string, n *yaml.Node) {
	if document.IsNull(n) {
		r.issue(discovery.Issue{Message: placed(n.Line, kind+" is empty"), Hint: fmt.Sprintf("write %s: {} if there are to be none", kind)})
		return
	}
	if n.Kind != yaml.MappingNode || !document.PlainTag(n) {
		r.issue(discovery.Issue{Message: placed(n.Line, kind+" is no object whose keys are names")})
		return
	}
	r.entries(n, discovery.Issue{Kind: kind}, func(name string, line int, value *yaml.Node) {
		if len(r.objects) == maxObjects {
			r.issue(discovery.Issue{Message: fmt.Sprintf("it has more than %d objects", maxObjects), Hint: "split it between several providers"})
			return
		}
		r.object(kind, name, line, value)
	})
}

// object reads an object, whose mistakes are those of the document.
func (r *reader) object(kind, name string, line int, n *yaml.Node) {
	d := &config.Discovered{Kind: kind, Name: name, Origin: r.origin, Written: true}
	f := &fields{reader: r, at: discovery.Issue{Kind: kind, Name: shortened(name)}}
	if n.Kind != yaml.MappingNode {
		f.at.Message = placed(line, "it is no object with fields")
		r.issue(f.at)
		return
	}
	before := len(r.issues)
	f.value(n, "", "")
	if d.Labels = f.labels; len(r.issues) > before {
		return
	}
	if was := r.before[[2]string{kind, name}]; was != nil && reflect.DeepEqual(was, d) {
		r.objects = append(r.objects, was)
		return
	}
	for _, p := range config.Find(d, nil).Problems {
		f.at.Label = ""
		if p.Label != nil {
			f.at.Label = p.Label.Name
		}
		what := p.What
		if p.Label == nil && p.Field != schema.JoinPath(kind, name) && p.Field != "" {
			what = p.Field + ": " + what
		}
		f.at.Message, f.at.Hint = what, p.Remedy
		r.issue(f.at)
	}
	r.objects = append(r.objects, d)
}

// fields makes labels of the fields of an object: each value becomes one, whose path is that
// of the field.
type fields struct {
	*reader
	at     discovery.Issue
	labels []config.Label
}

// value reads a value. Path has the form of labels, name that of messages.
func (f *fields) value(n *yaml.Node, path, name string) {
	n = document.Resolved(n)
	switch {
	case len(f.labels) > config.MaxLabels:
	case !document.PlainTag(n):
		f.at.Message, f.at.Label, f.at.Hint = placed(n.Line, "found the tag "+shortened(n.Tag)), name, "remove it"
		f.issue(f.at)
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		f.entries(n, f.at, func(key string, _ int, value *yaml.Node) {
			f.value(value, joined(path, key), joined(name, shortened(key)))
		})
	case n.Kind == yaml.SequenceNode:
		for i, e := range n.Content {
			f.value(e, joined(path, strconv.Itoa(i)), fmt.Sprintf("%s[%d]", name, i))
		}
	case n.Kind == yaml.MappingNode && path != "":
		f.labels = append(f.labels, config.Label{Path: path, Value: "true", Name: name}) // its defaults
	case n.Kind == yaml.ScalarNode && !document.IsNull(n):
		f.labels = append(f.labels, config.Label{Path: path, Value: n.Value, Name: name})
	}
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shortened makes a name of a document fit for messages.
func shortened(text string) string { return shown.Line(text, 100) }
