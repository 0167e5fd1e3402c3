package nginx

import (
	"path"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// handlers are the directives by which a location answers with something other than files.
var handlers = []string{"proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass", "content_by_lua_block", "content_by_lua_file", "js_content", "perl", "stub_status", "empty_gif", "mp4", "flv", "dav_methods"}

// scripts are the directives by which files are run instead of sent.
var scripts = []string{"fastcgi_pass", "uwsgi_pass", "scgi_pass"}

// otherFiles is the type of files whose extension headgate does not know.
const otherFiles = "application/octet-stream"

// files makes the route serve the files that nginx would: those below root or alias. If the
// server also runs scripts that cannot be translated, nothing is served, because their source
// would be sent.
func (c *content) files() bool {
	l := c.location
	if c.byServer || l != nil && (l.kind == byExpr || l.kind == byName || len(l.d.find(handlers...)) > 0) {
		return false
	}
	if c.runsScripts() {
		return c.php()
	}
	d, root, strip := c.root()
	if d == nil || strings.Contains(root, "$") {
		return false
	}
	files := importer.NewObject().Set("root", c.t.path(root))
	index := c.index(files)
	tries, spa, note := c.tries(index)
	if spa {
		files.Set("spa", true)
	}
	for name, field := range map[string]string{"gzip_static": "gzip", "brotli_static": "br"} {
		if static := c.scope.last(name); static != nil && static.arg(0) == "on" {
			files.Append("precompressed", field)
		}
	}
	listing := c.scope.last("autoindex")
	if listing != nil && listing.arg(0) == "on" {
		files.Set("listing", true)
	}
	c.o.Set("files", files.Flow())
	if c.path != "" {
		c.o.Set("strip_prefix", strip)
	}
	const differs = "names that begin with a dot are not served, except .well-known; Content-Type comes from headgate's table of extensions, not from types and default_type"
	c.became(d, importer.Close, "files", differs)
	if d := c.scope.last("default_type"); d != nil {
		if d.arg(0) == otherFiles {
			c.became(d, importer.Same, "files", "")
		} else {
			c.t.AddVerdict(d, importer.Impossible, "files of unknown extensions are sent as %s", otherFiles)
		}
	}
	if tries != nil {
		c.became(tries, verdictOf(note), "files", note)
	}
	for _, name := range []string{"index", "autoindex", "gzip_static", "brotli_static"} {
		if d := c.scope.last(name); d != nil {
			c.became(d, importer.Same, "files", "")
		}
	}
	return true
}

// runsScripts reports whether the server runs files, or sends requests for them elsewhere.
func (c *content) runsScripts() bool {
	runs := within(c.site.s.d, scripts)
	every(c.locations, func(l *location) {
		runs = runs || l.kind == byExpr && (strings.Contains(l.path, "php") || strings.Contains(l.path, "cgi"))
	})
	return runs
}

// root returns the directive that says where the files of the route are, the folder for the
// paths below the route, and whether the path of the route is stripped for it.
func (c *content) root() (d *directive, root string, strip bool) {
	if l := c.location; l != nil {
		if all := l.d.find("alias"); len(all) > 0 {
			d, to := all[0], strings.TrimSuffix(all[0].arg(0), "/")
			if l.kind == byExact { // it names a file
				root, ok := strings.CutSuffix(to, l.path)
				if !ok || root == "" {
					return nil, "", false
				}
				return d, root, false
			}
			return d, path.Clean(to + strings.TrimPrefix(c.path, l.clean())), true
		}
	}
	if d = c.scope.last("root"); d == nil {
		return nil, "", false
	}
	return d, d.arg(0), false
}

// index sets the index files, and returns them.
func (c *content) index(files importer.Object) []string {
	index := []string{}
	if d := c.scope.last("index"); d != nil {
		for _, name := range d.args {
			if !strings.ContainsAny(name, "/$") && !strings.HasPrefix(name, ".") && !slices.Contains(index, name) {
				index = append(index, name)
			}
		}
	}
	if len(index) == 0 || slices.Equal(index, []string{"index.html"}) {
		return []string{"index.html"}
	}
	files.Set("index", index)
	return index
}

// tries returns the try_files of the route, whether it leads to the index file of the root,
// and what of it is not done.
func (c *content) tries(index []string) (d *directive, spa bool, note string) {
	if d = c.scope.last("try_files"); d == nil {
		return nil, false, ""
	}
	last := len(d.args) - 1
	for i, arg := range d.args {
		switch {
		case i < last && (arg == "$uri" || arg == "$uri/"):
		case i < last:
			note = join(note, arg+" is not tried")
		case arg == "/"+index[0], arg == "$uri" && i == 0:
			spa = arg != "$uri"
		case arg == "=404":
		default:
			note = join(note, "paths without a file get 404 instead of "+arg)
		}
	}
	return d, spa, note
}

// within reports whether a block or one in it has a directive with one of the names.
func within(d *directive, names []string) bool {
	return len(d.find(names...)) > 0 || slices.ContainsFunc(d.block, func(b *directive) bool { return within(b, names) })
}
