// Package nginx reads configurations of nginx and writes what headgate makes of them:
// a document, and a report in which every directive has a verdict. Import is the way.
//
// parse.go reads the text, servers.go the listen and server_name directives. sites.go splits
// servers by their conditions on the host and the scheme. location.go finds the location of a path
// as nginx does, and locations.go makes the routes of a site: for each path, and for each region of
// methods, headers and parameters that its conditions distinguish. view.go runs the rewrite
// directives in such a region, where each condition has one value; conditions.go, maps.go and
// variables.go evaluate it. content.go, pages.go and upstream.go translate responses, features.go,
// access.go and headers.go other features, and stream.go the block stream. tables.go has the
// verdicts of directives that are independent of others.
//
// It never applies anything, and opens no file but those that it is given and what they
// include.
package nginx

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// Files is how files are read.
type Files = importer.Files

// Import reads configurations, or the output of nginx -T, and returns the document of
// headgate that does the same and the report. The error has the place of what cannot be
// read: nothing is written then.
func Import(names []string, files Files) ([]byte, *importer.Report, error) {
	t, err := read(names, files)
	if err != nil {
		return nil, nil, err
	}
	return t.finish()
}

// Proxies is Import for what another program has nginx do: it returns the parts of the
// document, and the report, before they are written.
func Proxies(names []string, files Files) (*importer.Translation, error) {
	t, err := read(names, files)
	if err != nil {
		return nil, err
	}
	t.complete()
	return t.Translation, nil
}

func read(names []string, files Files) (*translator, error) {
	files = files.Bounded(maxFileSize, "more than a configuration has")
	t := &translator{Translation: importer.NewTranslation("nginx"), read: files.Read, upstreams: map[string]*directive{}, zones: map[string]*directive{}, pairs: map[[2]string]string{}, portNames: map[string]string{},
		maps: map[string]*mapping{}, usedMaps: map[string]bool{}, geo: map[string]*addressed{}, geoBlocks: map[string]*directive{}, usedGeo: map[string]bool{}, set: map[string]bool{}, held: map[*directive]bool{}, routed: map[*directive]bool{}, routes: map[*directive][]importer.Object{}}
	for _, name := range names {
		tree, err := t.parse(name, files)
		if err != nil {
			return nil, err
		}
		t.top(tree)
	}
	return t, t.whole()
}

// whole returns an error for what is only a part of a configuration, such as a snippet
// that others include.
func (t *translator) whole() error {
	for _, d := range t.all {
		if slices.Contains([]string{"http", "server", "stream", "upstream", "map"}, d.name) {
			return nil
		}
	}
	for _, d := range t.all {
		if d.name == "location" {
			return fmt.Errorf("%s:%d: %s is outside of a server: the file is a part that others include; import the configuration that includes it, or the output of nginx -T", d.File, d.Line, strings.TrimSuffix(d.Text(), " { … }"))
		}
	}
	return nil
}

// parse reads one configuration with what it includes.
func (t *translator) parse(name string, files Files) ([]*directive, error) {
	r := &reader{read: files.Read, glob: files.Glob, root: filepath.Dir(name)}
	data, err := files.Read(name)
	if err != nil {
		return nil, err
	}
	if parts := dump(data); len(parts) > 0 {
		given := importer.Given(parts)
		r.read, r.glob = given.Read, given.Glob
		name = firstFile(data)
		r.root = filepath.Dir(name)
	}
	tree, err := r.file(name)
	for _, d := range r.missing {
		t.AddVerdict(d, importer.Impossible, "the file does not exist; pass it too, or use the output of nginx -T")
		t.Check("%s:%d: %s: the file does not exist, and nothing of it was translated; pass it too, or use the output of nginx -T", d.File, d.Line, d.Text())
	}
	t.files = append(t.files, r.files...)
	t.dir = r.root
	return tree, err
}

func firstFile(data []byte) string {
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "# configuration file "); ok {
			return strings.TrimSuffix(strings.TrimSpace(rest), ":")
		}
	}
	return ""
}

// translator goes through one configuration.
type translator struct {
	*importer.Translation
	files     []string
	dir       string
	read      func(string) ([]byte, error)
	upstreams map[string]*directive
	zones     map[string]*directive // of limit_req_zone, by name
	portNames map[string]string     // by address and protocol
	maps      map[string]*mapping   // by their variables
	usedMaps  map[string]bool
	geo       map[string]*addressed // by their variables
	geoBlocks map[string]*directive
	usedGeo   map[string]bool
	// addressFiles are the files that were read, and whether they have addresses alone.
	addressFiles map[string]bool
	set          map[string]bool                  // variables that a directive sets
	held         map[*directive]bool              // conditions that some request meets
	routed       map[*directive]bool              // locations of which a route was made
	routes       map[*directive][]importer.Object // of a location
	uses         map[string][]*directive          // of a variable, by its name; see users
	all          []*directive                     // for directives without a verdict
	servers      []*server
	writers      []*writer
	http         *directive
	stream       *directive           // the block stream
	pairs        map[[2]string]string // certificates that are there, by their files
}

// top goes through the outermost directives.
func (t *translator) top(tree []*directive) {
	t.all = append(t.all, tree...)
	bare := false
	for _, d := range tree {
		switch d.name {
		case "http":
			t.Became(d, importer.Same, importer.Through(d.block...), "")
			t.httpBlock(d)
		case "stream":
			t.Became(d, importer.Same, importer.Through(d.block...), "")
			t.streamBlock(d)
		case "server", "upstream":
			bare = true
		default:
			t.known(d)
		}
	}
	if bare { // a file of sites-enabled is part of http
		around := &directive{Origin: tree[0].Origin, name: "http", block: tree, is: true}
		around.Skip()
		t.httpBlock(around)
	}
}

// known gives a directive the verdict of the table, where there is one.
func (t *translator) known(d *directive) { t.SayKnown(d, table, d.name) }

// users returns the directives that name a variable.
func (t *translator) users(name string) []*directive {
	if t.uses == nil {
		t.uses = map[string][]*directive{}
		var visit func([]*directive)
		visit = func(list []*directive) {
			for _, d := range list {
				args := d.args
				switch d.name {
				case "set", "set_escape_uri", "auth_request_set":
					args = args[min(1, len(args)):]
				case "map": // the values are those of its entries
					args = args[:min(1, len(args))]
				case "geo":
					args = args[:max(0, len(args)-1)]
				}
				for _, found := range variable.FindAllStringSubmatch(strings.Join(args, " "), -1) {
					if all := t.uses[found[1]]; len(all) == 0 || all[len(all)-1] != d {
						t.uses[found[1]] = append(all, d)
					}
				}
				visit(d.block)
			}
		}
		visit(t.all)
	}
	return t.uses[name]
}

// finish writes the document, and adds a verdict to directives without one.
func (t *translator) finish() ([]byte, *importer.Report, error) {
	t.complete()
	return t.Finish("a configuration of nginx", "directive", t.files)
}

// complete makes the proxies, and adds a verdict to every directive.
func (t *translator) complete() {
	t.writeServers()
	t.sayZones()
	t.sayGeo()
	t.unusedUpstreams(t.all)
	t.rest(t.all, false)
}

// unusedUpstreams adds a verdict to unused upstreams.
func (t *translator) unusedUpstreams(list []*directive) {
	for _, d := range list {
		if d.name == "upstream" && !d.Settled() {
			ignoreAll(t, []*directive{d}, "nothing that was translated uses it")
		}
		t.unusedUpstreams(d.block)
	}
}

// sayZones adds verdicts to the zones of limit_req.
func (t *translator) sayZones() {
	for name, zone := range t.zones {
		var users []*directive
		var visit func([]*directive)
		visit = func(list []*directive) {
			for _, d := range list {
				if d.name == "limit_req" && slices.Contains(d.args, "zone="+name) {
					users = append(users, d)
				}
				visit(d.block)
			}
		}
		if visit(t.all); len(users) == 0 {
			t.AddVerdict(zone, importer.Ignored, "no limit_req uses it")
			continue
		}
		t.Became(zone, importer.Same, importer.Through(users...), "the rate is that of each route that uses the zone")
	}
}

// guards are the directives for access control.
var guards = []string{"deny", "allow", "auth_basic", "auth_request", "auth_jwt", "satisfy", "ssl_verify_client", "internal", "limit_req"}

// protects reports whether a block has access control.
func protects(d *directive) bool {
	return slices.ContainsFunc(d.block, func(c *directive) bool {
		return slices.Contains(guards, c.name) || c.name == "return" && strings.HasPrefix(c.arg(0), "4") || protects(c)
	})
}

// rest adds a verdict to all directives without one: whatever is unknown is reported. lost
// means that the block around could not be translated.
func (t *translator) rest(list []*directive, lost bool) {
	for _, d := range list {
		if d.left() && protects(d) {
			t.Check("%s:%d: %s could not be translated, and what it protects is served by other routes: protect it before the cutover", d.File, d.Line, strings.TrimSuffix(d.Text(), " { … }"))
		}
		if t.known(d); !d.Settled() && !lost {
			t.SayKnown(d, inherited, d.name)
		}
		switch {
		case lost:
			t.AddVerdict(d, importer.Impossible, "the block around it could not be translated")
		default:
			t.AddVerdict(d, importer.Impossible, "headgate does not know this directive here")
		}
		t.rest(d.block, lost || d.left())
	}
}

// path is a name of the configuration relative to the base of its names.
func (t *translator) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(t.dir, name)
}
