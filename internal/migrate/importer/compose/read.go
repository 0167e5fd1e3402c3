package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/migrate/importer"
)

// The bounds of what is read.
const (
	maxFile     = 16 << 20
	maxFiles    = 200
	maxSettings = 200_000
	maxDepth    = 32 // of includes, extends and merges
)

// reader reads Compose files.
type reader struct {
	files   importer.Files
	project *Project
	docs    map[string]*yaml.Node
	open    []string // files that are being included
	count   int      // of settings
	filled  map[string]bool
}

// Read returns the services of Compose files, in their order, each with what it extends.
// Files that are included are read too, as is compose.override.yml beside a file with the
// usual name: Compose does both. What cannot be read is an error for the files that are
// named, and reported for the others.
func Read(names []string, files importer.Files) (*Project, error) {
	r := &reader{files: files.Bounded(maxFile, "more than a Compose file has"), project: &Project{}, docs: map[string]*yaml.Node{}, filled: map[string]bool{}}
	for _, name := range names {
		if err := r.file(name, names); err != nil {
			return nil, err
		}
	}
	return r.project, nil
}

// Is reports whether a document is a Compose file.
func Is(doc *yaml.Node) bool {
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return false
	}
	root := doc.Content[0]
	if services := field(root, "services"); services != nil {
		return services.Kind == yaml.MappingNode && field(root, "entryPoints") == nil
	}
	return field(root, "include") != nil && field(root, "http") == nil
}

func (r *reader) omit(file string, line int, what string, v importer.Omission, note string, args ...any) {
	if len(r.project.Entries) < maxSettings {
		r.project.Entries = append(r.project.Entries, importer.Entry{File: file, Line: line, Directive: what, Verdict: importer.Verdict(v), Note: fmt.Sprintf(note, args...)})
	}
}

func (r *reader) check(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.project.Check, text) && len(r.project.Check) < 1000 {
		r.project.Check = append(r.project.Check, text)
	}
}

// doc returns the outermost map of a file.
func (r *reader) doc(name string) (*yaml.Node, error) {
	if n := r.docs[name]; n != nil {
		return n, nil
	}
	if len(r.docs) >= maxFiles {
		return nil, fmt.Errorf("%s: more than %d files", name, maxFiles)
	}
	data, err := r.files.Read(name)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	if err := (&flattener{seen: map[*yaml.Node]bool{}}).flatten(doc.Content[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.docs[name] = doc.Content[0]
	r.project.Files = append(r.project.Files, name)
	return doc.Content[0], nil
}

// usual are the names that Compose looks for, without their endings.
var usual = []string{"compose", "docker-compose"}

// file reads a file with what it includes. named are the files that the caller has
// named.
func (r *reader) file(name string, named []string) error {
	if slices.Contains(r.open, name) || len(r.open) >= maxDepth {
		return fmt.Errorf("%s: it includes itself, or files are included more than %d deep", name, maxDepth)
	}
	r.open = append(r.open, name)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	doc, err := r.doc(name)
	if err != nil {
		return err
	}
	services := field(doc, "services")
	included := field(doc, "include")
	if services == nil && included == nil || services != nil && services.Kind != yaml.MappingNode {
		return fmt.Errorf("%s: there are no services, so it is no Compose file", name)
	}
	r.include(name, included, named)
	if services != nil {
		if err := r.services(name, services); err != nil {
			return err
		}
	}
	return r.override(name, named)
}

// override reads compose.override.yml beside compose.yml.
func (r *reader) override(name string, named []string) error {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if !slices.Contains(usual, filepath.Base(stem)) {
		return nil
	}
	for _, end := range []string{".yml", ".yaml"} {
		beside := stem + ".override" + end
		if slices.Contains(named, beside) {
			return nil // it comes
		}
		_, err := r.files.Read(beside)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r.check("%s was read too, as Compose does", beside)
		return r.file(beside, named)
	}
	return nil
}

// services adds the services of a file. One of a file that overrides another adds to the
// service that is there, as do files beside each other with one service.
func (r *reader) services(name string, services *yaml.Node) error {
	for key, value := range pairs(services) {
		s, err := r.service(name, key, value, nil)
		if err != nil {
			return err
		}
		if value := field(value, "profiles"); value != nil && len(value.Content) > 0 {
			r.omit(name, value.Line, key.Value+": profiles", importer.Ignored, "the service is translated as if its profile was active; Compose starts it only then")
			r.check("%s:%d: service %s has profiles: remove its proxy if it does not run", name, value.Line, key.Value)
		}
		i := slices.IndexFunc(r.project.Services, func(o *Service) bool { return o.Name == s.Name && strings.Contains(name, ".override.") })
		if i >= 0 {
			r.project.Services[i] = merged(r.project.Services[i], s)
			continue
		}
		r.project.Services = append(r.project.Services, s)
	}
	return nil
}

// include reads the files of the element include.
func (r *reader) include(name string, list *yaml.Node, named []string) {
	if list == nil {
		return
	}
	for _, item := range list.Content {
		item = resolved(item)
		paths := texts(item)
		if item.Kind == yaml.MappingNode {
			paths = texts(field(item, "path"))
			for _, key := range []string{"project_directory", "env_file"} {
				if n := field(item, key); n != nil {
					r.omit(name, n.Line, "include: "+key+": "+strings.Join(texts(n), " "), importer.Impossible, "paths and variables are those of the files themselves here")
				}
			}
		}
		for _, p := range paths {
			p = r.fill(name, item.Line, p)
			what := "include: " + p
			if err := r.file(beside(name, p), named); err != nil {
				r.omit(name, item.Line, what, importer.Impossible, "%v", err)
				r.check("%s:%d: %s could not be read: %v", name, item.Line, what, err)
				continue
			}
			r.omit(name, item.Line, what, importer.Ignored, "its services were read")
		}
	}
}

// beside returns the name of a file that another one names.
func beside(name, other string) string {
	if strings.HasPrefix(other, "/") || filepath.IsAbs(other) {
		return other
	}
	return filepath.Join(filepath.Dir(name), other)
}

// service reads a service with what it extends. from are the services that extend it.
func (r *reader) service(file string, key, n *yaml.Node, from []string) (*Service, error) {
	s := &Service{Name: key.Value, Origin: importer.Origin{File: file, Line: key.Line}}
	s.Labels = r.settings(file, s.Name, field(n, "labels"))
	s.Deploy = r.settings(file, s.Name, field(field(n, "deploy"), "labels"))
	s.Env = with(r.envFiles(file, s.Name, field(n, "env_file")), r.settings(file, s.Name, field(n, "environment")))
	s.Command = r.command(file, s.Name, field(n, "command"))
	for _, list := range []string{"expose", "ports"} {
		for _, p := range elements(field(n, list)) {
			text := p.Value
			if target := field(p, "target"); target != nil {
				text = target.Value
			}
			text, _, _ = strings.Cut(r.fill(file, p.Line, text), "/")
			text, _, _ = strings.Cut(text[strings.LastIndexByte(text, ':')+1:], "-")
			if text != "" && !slices.Contains(s.Ports, text) {
				s.Ports = append(s.Ports, text)
			}
		}
	}
	if r.count > maxSettings {
		return nil, fmt.Errorf("%s: more than %d labels and variables", file, maxSettings)
	}
	if e := field(n, "extends"); e != nil {
		base, err := r.extended(file, s.Name, e, from)
		if err != nil {
			r.omit(file, e.Line, s.Name+": extends", importer.Impossible, "%v", err)
			r.check("%s:%d: what service %s extends could not be read: %v", file, e.Line, s.Name, err)
			return s, nil
		}
		r.omit(file, e.Line, s.Name+": extends "+base.Name, importer.Ignored, "its labels, variables and ports count too")
		return merged(base, s), nil
	}
	return s, nil
}

// extended returns the service that another one extends.
func (r *reader) extended(file, name string, n *yaml.Node, from []string) (*Service, error) {
	other, service := file, n.Value
	if n.Kind == yaml.MappingNode {
		if f := field(n, "file"); f != nil {
			other = beside(file, r.fill(file, n.Line, f.Value))
		}
		if s := field(n, "service"); s != nil {
			service = s.Value
		}
	}
	if at := other + " " + service; slices.Contains(from, at) || len(from) >= maxDepth {
		return nil, fmt.Errorf("service %s extends itself", service)
	}
	doc, err := r.doc(other)
	if err != nil {
		return nil, err
	}
	for key, value := range pairs(field(doc, "services")) {
		if key.Value == service {
			return r.service(other, key, value, append(from, file+" "+name, other+" "+service))
		}
	}
	return nil, fmt.Errorf("%s has no service %s", other, service)
}

// merged returns a service with what another one says in its place.
func merged(base, s *Service) *Service {
	out := *s
	for _, list := range [][]*Setting{base.Labels, base.Deploy, base.Env, base.Command} {
		for i := range list {
			list[i].Service = s.Name
		}
	}
	out.Labels, out.Deploy, out.Env = with(base.Labels, s.Labels), with(base.Deploy, s.Deploy), with(base.Env, s.Env)
	if len(s.Command) == 0 {
		out.Command = base.Command
	}
	out.Ports = slices.Concat(base.Ports, slices.DeleteFunc(slices.Clone(s.Ports), func(p string) bool { return slices.Contains(base.Ports, p) }))
	return &out
}

// with returns settings with others in the place of those with the same key.
func with(base, more []*Setting) []*Setting {
	at := map[string]int{}
	out := slices.Clone(base)
	for i, s := range out {
		at[s.Key] = i
	}
	for _, s := range more {
		if i, ok := at[s.Key]; ok {
			out[i] = s
			continue
		}
		at[s.Key] = len(out)
		out = append(out, s)
	}
	return out
}

// settings reads a list of KEY=VALUE, or a map.
func (r *reader) settings(file, service string, n *yaml.Node) (all []*Setting) {
	add := func(key, value string, line int) {
		if r.count++; r.count <= maxSettings {
			all = append(all, &Setting{Origin: importer.Origin{File: file, Line: line}, Service: service, Key: key, Value: r.fill(file, line, value)})
		}
	}
	for _, item := range elements(n) {
		key, value, given := strings.Cut(item.Value, "=")
		if !given {
			value = r.variable(file, key)
		}
		add(key, value, item.Line)
	}
	if n != nil && n.Kind == yaml.MappingNode {
		for key, value := range pairs(n) {
			add(key.Value, value.Value, key.Line)
		}
	}
	return with(nil, all)
}

// command reads the arguments of a command, a list or one text.
func (r *reader) command(file, service string, n *yaml.Node) (all []*Setting) {
	add := func(text string, line int) {
		if r.count++; r.count <= maxSettings {
			all = append(all, &Setting{Origin: importer.Origin{File: file, Line: line}, Service: service, Key: r.fill(file, line, text)})
		}
	}
	for _, item := range elements(n) {
		add(item.Value, item.Line)
	}
	if n != nil && n.Kind == yaml.ScalarNode {
		for _, word := range strings.Fields(n.Value) {
			add(strings.Trim(word, `"'`), n.Line)
		}
	}
	return all
}

// elements returns the elements of a list.
func elements(n *yaml.Node) (all []*yaml.Node) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range n.Content {
		all = append(all, resolved(item))
	}
	return all
}

// texts returns the texts of a list, or the one text in its place.
func texts(n *yaml.Node) (all []string) {
	for _, item := range elements(n) {
		all = append(all, item.Value)
	}
	if n != nil && n.Kind == yaml.ScalarNode && n.Value != "" {
		all = append(all, n.Value)
	}
	return all
}

// pairs returns keys and values of a map.
func pairs(n *yaml.Node) func(func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], resolved(n.Content[i+1])) {
				return
			}
		}
	}
}

// field returns a field of a map.
func field(n *yaml.Node, name string) *yaml.Node {
	for key, value := range pairs(n) {
		if key.Value == name {
			return value
		}
	}
	return nil
}

// resolved returns what an alias refers to.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// flattener removes aliases and merges from a document.
type flattener struct {
	seen  map[*yaml.Node]bool // true once it is flat
	count int
}

// maxPairs bounds the fields of all maps of a document after merges.
const maxPairs = 1_000_000

var errTooMuch = errors.New("anchors and merges make too much of it")

// flatten makes n and what is below it flat. A map that is merged into itself gets nothing
// of itself.
func (f *flattener) flatten(n *yaml.Node) error {
	if _, seen := f.seen[n]; seen {
		return nil
	}
	f.seen[n] = false
	for i, c := range n.Content {
		n.Content[i] = resolved(c)
		if err := f.flatten(n.Content[i]); err != nil {
			return err
		}
	}
	defer func() { f.seen[n] = true }()
	if n.Kind != yaml.MappingNode {
		return nil
	}
	return f.merge(n)
}

// merge puts the fields of the maps that are merged into n among its own, which win.
func (f *flattener) merge(n *yaml.Node) error {
	at, before, own := map[string]int{}, []*yaml.Node(nil), []*yaml.Node(nil)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag != "!!merge" {
			own = append(own, key, value)
			continue
		}
		sources := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			sources = value.Content
		}
		for _, source := range sources {
			if source.Kind != yaml.MappingNode || !f.seen[source] {
				continue
			}
			for j := 0; j+1 < len(source.Content); j += 2 {
				if f.count++; f.count > maxPairs {
					return errTooMuch
				}
				if k := source.Content[j].Value; !has(at, k) {
					at[k] = len(before)
					before = append(before, source.Content[j], source.Content[j+1])
				}
			}
		}
	}
	if len(before) == 0 {
		return nil
	}
	for i := 0; i < len(own); i += 2 {
		if k := own[i].Value; has(at, k) {
			before[at[k]], before[at[k]+1] = own[i], own[i+1]
		} else {
			before = append(before, own[i], own[i+1])
		}
	}
	n.Content = before
	return nil
}

func has(m map[string]int, key string) bool {
	_, ok := m[key]
	return ok
}
