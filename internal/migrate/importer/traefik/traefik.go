// Package traefik reads configurations of Traefik, versions 2 and 3, and writes what
// headgate makes of them: a document, and a report in which every field has a verdict.
//
// Import accepts files in any order: static and dynamic configuration in YAML or TOML,
// Compose files whose services have labels, and acme.json. tree.go makes one tree of them,
// rule.go reads the rules of routers, static.go has entry points, certificate resolvers
// and certificates, routers.go the routers, services.go the services, and middlewares.go
// the middlewares. proxies.go makes routes with the same result as the routers by their
// priorities.
//
// Go templates, plugins and providers other than files and Docker are reported,
// not translated. It never applies anything.
package traefik

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v4"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/compose"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = 64 << 20

// Import reads configurations of Traefik. An error has the place of what cannot be
// read; nothing is written then.
func Import(names []string, files importer.Files) ([]byte, *importer.Report, error) {
	files = files.Bounded(maxFile, "more than a configuration has")
	t := newTranslator("Traefik")
	t.exists = func(name string) bool {
		_, err := files.Read(name)
		return !errors.Is(err, fs.ErrNotExist)
	}
	for _, name := range names {
		data, err := files.Read(name)
		if err != nil {
			return nil, nil, err
		}
		if err := t.read(name, data); err != nil {
			return nil, nil, err
		}
	}
	if err := t.readComposed(files); err != nil {
		return nil, nil, err
	}
	return t.translate()
}

// translator goes through one configuration.
type translator struct {
	*importer.Translation
	build builder
	files []string
	root  *node // static and dynamic configuration in one tree
	// servers are the addresses of containers, by the name of the service that
	// Traefik makes of their labels.
	servers map[string][]string
	// composeFiles are Compose files, project what they say.
	composeFiles []string
	project      *compose.Project

	entries    map[string]*entry
	names      []string // of entries, in order
	routers    []*router
	keys       []keyPair
	exists     func(name string) bool   // of files; nil where nothing is known of them
	tls        importer.Object          // of the https ports whose routers name no TLS options
	used       map[*node]bool           // routers that some request goes to
	ruled      map[*node]importer.Field // what the rules of routers became
	redirected map[string]bool          // hosts whose http is sent to https
}

func newTranslator(source string) *translator {
	t := &translator{Translation: importer.NewTranslation(source), root: &node{}, servers: map[string][]string{}, entries: map[string]*entry{}, redirected: map[string]bool{}, ruled: map[*node]importer.Field{}, tls: importer.NewObject(), used: map[*node]bool{}}
	return t
}

// read adds a file to the tree.
func (t *translator) read(name string, data []byte) error {
	t.files = append(t.files, name)
	if bytes.IndexByte(data, 0) >= 0 {
		return fmt.Errorf("%s: not a text", name)
	}
	if i := bytes.Index(data, []byte("{{")); i >= 0 && templated(data) {
		return fmt.Errorf("%s:%d: a Go template, which is not evaluated here; give the file that it makes (Traefik shows the result at /api/rawdata)", name, 1+bytes.Count(data[:i], []byte("\n")))
	}
	switch {
	case filepath.Base(name) == "acme.json":
		return t.readStorage(name, data)
	case strings.EqualFold(filepath.Ext(name), ".toml"):
		if line := tooDeep(string(data)); line > 0 {
			return fmt.Errorf("%s:%d: nested too deep for a configuration", name, line)
		}
		var value map[string]any
		if _, err := toml.Decode(string(data), &value); err != nil {
			var at toml.ParseError
			if errors.As(err, &at) {
				return fmt.Errorf("%s:%d: %s", name, at.Position.Line, at.Message)
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		t.root.File = name
		return t.build.fromTOML(t.root, value, tomlLines(string(data)), 0)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if compose.Is(&doc) {
		t.composeFiles = append(t.composeFiles, name)
		return nil
	}
	t.root.File = name
	return t.build.fromYAML(t.root, &doc, 0)
}

// maxBrackets limits how deep lists and tables of TOML are nested, and the number of parts
// of a key: the time of its decoder grows with the square of it.
const maxBrackets = 200

// tooDeep returns the line of a text in TOML at which that is exceeded, 0 if it is not.
// Brackets and dots in texts count too, which no configuration has so many of on a line.
func tooDeep(text string) int {
	line, depth, dots := 1, 0, 0
	for i := range len(text) {
		switch text[i] {
		case '\n':
			line, dots = line+1, 0
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '=', '"', '\'', ' ':
			dots = 0
		case '.':
			dots++
		}
		if depth > maxBrackets || dots > maxBrackets {
			return line
		}
	}
	return 0
}

// templated distinguishes a Go template from rules with braces, such as
// HostRegexp(`{sub:[a-z]+}.example`).
func templated(data []byte) bool {
	for _, word := range []string{"{{ ", "{{- ", "{{range", "{{if", "{{end", "{{env", "{{."} {
		if bytes.Contains(data, []byte(word)) {
			return true
		}
	}
	return false
}

func (t *translator) translate() ([]byte, *importer.Report, error) {
	if err := t.readLabels(); err != nil {
		return nil, nil, err
	}
	known := func(n *node) bool { return slices.Contains(sections, strings.ToLower(n.name())) }
	switch {
	case t.root.get("apiVersion").is() && t.root.get("kind").is():
		return nil, nil, fmt.Errorf("%s:%d: an object of Kubernetes, which is not read: give the address of Traefik's API, which has the routers that it makes of such objects", t.root.get("kind").File, t.root.get("kind").Line)
	case !slices.ContainsFunc(t.root.children(), known) && len(t.keys) == 0 && !t.firstVersion():
		return nil, nil, fmt.Errorf("%s: nothing of Traefik is in it: no entryPoints, http, tcp, udp, tls and no labels that start with traefik", strings.Join(t.files, ", "))
	}
	t.static()
	t.httpRouters()
	t.writeProxies()
	t.tcpRouters()
	t.udpRouters()
	t.unusedParts()
	t.rest()
	if t.project != nil {
		t.project.AddTo(t.Report)
		t.files = slices.Concat(slices.DeleteFunc(t.files, func(name string) bool { return slices.Contains(t.project.Files, name) }), t.project.Files)
	}
	return t.Finish("a configuration of "+t.Report.Source, "field", t.files)
}

// sections are the parts of a configuration from which something comes.
var sections = []string{"entrypoints", "http", "tcp", "udp", "tls", "certificatesresolvers"}

// firstVersion reports whether there are labels of Traefik 1, which have a verdict each.
func (t *translator) firstVersion() bool {
	return t.root.get("frontend").is() || t.root.get("backend").is() || t.root.get("port").is()
}

// unusedParts adds a verdict to middlewares and services that no router uses.
func (t *translator) unusedParts() {
	for _, part := range []string{"middlewares", "services"} {
		for _, n := range t.root.get("http", part).children() {
			if !t.isUsed(part, n.name()) {
				t.sayAll(n, importer.Ignored, "no router uses it")
			}
		}
	}
}

// isUsed reports whether a router, an entry point or another part names a part.
func (t *translator) isUsed(part, name string) bool {
	used := false
	named := func(n *node) {
		for _, text := range n.texts() {
			text, _, _ = strings.Cut(text, "@")
			used = used || strings.EqualFold(text, name)
		}
	}
	for _, r := range t.root.get("http", "routers").children() {
		r.leaves(named)
		named(r.get("middlewares"))
		used = used || part == "services" && !r.get("service").is() // the one beside it in labels
	}
	for _, e := range t.root.get("entryPoints").children() {
		named(e.get("http", "middlewares"))
	}
	for _, other := range t.root.get("http", part).children() {
		if other.name() != name {
			other.leaves(named)
		}
	}
	return used
}

// sayAll gives all values below a node their verdict.
func (t *translator) sayAll(n *node, v importer.Omission, note string, args ...any) {
	n.leaves(func(leaf *node) { t.AddVerdict(leaf, v, note, args...) })
}

// becameAll gives all values below a node a verdict with what they became.
func (t *translator) becameAll(n *node, v importer.Verdict, f importer.Field, note string, args ...any) {
	n.leaves(func(leaf *node) { t.Became(leaf, v, f, note, args...) })
}

// through returns the Field of a value that names other parts: what their values became.
func through(parts ...*node) importer.Field {
	var leaves []*node
	for _, n := range parts {
		n.leaves(func(leaf *node) { leaves = append(leaves, leaf) })
	}
	return importer.Through(leaves...)
}

// Text is the field with its value, but for secrets.
func (n *node) Text() string {
	path := strings.ToLower(n.path)
	for _, secret := range []string{"basicauth.users", "digestauth.users", "hmac", "certificate.key"} {
		if strings.Contains(path, secret) {
			return n.path + ": …"
		}
	}
	return n.path + ": " + n.value
}

// rest adds a verdict to what has none.
func (t *translator) rest() {
	t.root.leaves(func(n *node) {
		if n.Settled() || n.value == "" && n.fields == nil && !n.isList {
			n.Skip()
			return
		}
		if note, ok := nothingToDo(n.path); ok {
			t.AddVerdict(n, importer.Ignored, note)
			return
		}
		if i := slices.IndexFunc(leftOut, func(l left) bool { return l.path.MatchString(n.path) }); i >= 0 {
			t.AddVerdict(n, leftOut[i].verdict, leftOut[i].note)
			return
		}
		t.AddVerdict(n, importer.Impossible, "headgate does not know this field here, or what it belongs to could not be translated")
	})
}
