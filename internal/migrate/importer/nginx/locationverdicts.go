package nginx

import (
	"cmp"
	"strings"

	"headgate/internal/migrate/importer"
)

// sayLocations adds verdicts to the locations, those first of which a route was made.
func (t *translator) sayLocations() {
	for _, w := range t.writers {
		every(w.locations, func(l *location) {
			if !l.d.Settled() && t.routed[l.d] && !w.unreached && !w.lost[l] && !l.internal() && l.kind != byName {
				w.sayTaken(l)
			}
		})
	}
	for _, w := range t.writers {
		w.sayOthers()
	}
}

// sayOthers adds verdicts to the locations of which no route was made.
func (w *writer) sayOthers() {
	every(w.locations, func(l *location) {
		d := l.d
		defer w.lookAt(l)
		defer w.sayBelow(l)
		switch {
		case d.Settled():
		case w.unreached:
			ignoreAll(w.t, []*directive{d}, "the server answers before a location is chosen")
		case l.kind == byName:
			w.t.AddVerdict(d, importer.Impossible, "no directive that was translated uses it")
		case l.internal():
			f := importer.Value("status", 404)
			for _, r := range w.t.routes[d] {
				f = f.Or(r.Field("fixed_response"))
			}
			w.t.Became(d, verdictOf(l.segments()), f, "%s", join("clients get 404", l.segments()))
			for _, c := range d.block {
				if c.name == "internal" {
					w.t.Became(c, importer.Same, f, "")
				}
				w.t.AddVerdict(c, importer.Ignored, "only subrequests use it, and nothing that was translated sends one")
			}
		case l.kind == byExact && l.path == "/":
			w.t.AddVerdict(d, importer.Impossible, "the path / alone: there are no exact paths, and the prefix / matches all")
		case l.kind == byExpr && len(l.prefixes) == 0:
			w.t.AddVerdict(d, importer.Impossible, "routes are prefixes of the path, and this expression is none; write a route for each prefix, or redirect rules")
		case w.lost[l]:
			w.t.AddVerdict(d, importer.Impossible, "nothing in it can be translated")
		default:
			w.t.AddVerdict(d, importer.Impossible, "nothing in it can be translated, or another location gets its requests")
		}
	})
}

// segments says if a route of whole segments matches fewer paths than the location.
func (l *location) segments() string {
	if l.kind == byExact || l.kind == byExpr || l.kind == byName || strings.HasSuffix(l.path, "/") {
		return ""
	}
	return "a path matches whole segments: " + l.clean() + "x is not below " + l.clean()
}

// sayBelow reports the additional paths of a route for an exact location.
func (w *writer) sayBelow(l *location) {
	if l.kind == byExact && l.d.Verdict() == importer.Same && len(w.t.routes[l.d]) > 0 {
		w.t.Amend(l.d, importer.Close, "there is no exact match; the route also matches paths below the path")
	}
}

// elsewhere are the directives by which a location answers in its own way.
var elsewhere = []string{"proxy_pass", "grpc_pass", "return", "rewrite", "try_files", "root", "alias", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass", "content_by_lua_block", "stub_status", "empty_gif", "mp4", "dav_methods"}

// lookAt adds a check by a person for a location that was lost: other routes get its
// requests.
func (w *writer) lookAt(l *location) {
	if l.kind == byName || l.d.Verdict() != importer.Impossible || protects(l.d) || len(l.d.find(elsewhere...)) == 0 {
		return
	}
	w.t.Check("%s:%d: %s could not be translated, and other routes of proxy %s get its requests", l.d.File, l.d.Line, strings.TrimSuffix(l.d.Text(), " { … }"), w.name)
}

func (w *writer) sayTaken(l *location) {
	clean := cmp.Or(l.clean(), "/")
	note := ""
	switch {
	case l.kind == byExact:
		note = "there is no exact match; the route also matches paths below the path"
		if found, _ := w.chosen(l.clean()); found != l {
			note = "a prefix matches the path, too, and gets its requests: there is no exact match"
		}
	case l.kind == byExpr:
		if l.anywhere {
			note = "the expression matches anywhere in the path, the route at its beginning"
			w.t.Check("%s:%d: %s matches anywhere in the path; the routes made of it match at its beginning", l.d.File, l.d.Line, strings.TrimSuffix(l.d.Text(), " { … }"))
		}
		for _, p := range l.prefixes {
			if note = join(note, p.Note); p.Lost {
				w.t.Check("%s:%d: %s: %s", l.d.File, l.d.Line, strings.TrimSuffix(l.d.Text(), " { … }"), p.Note)
			}
		}
	case clean == "/":
	case l.slash() && !w.has(clean):
		note = "requests for " + clean + " are redirected to " + clean + "/: Location is relative; nginx writes scheme, host and port in front"
		if len(l.scope(w.around).level("allow", "deny")) > 0 {
			note += ", and does not look at allow and deny there"
		}
	case strings.HasSuffix(l.path, "/"):
		note = "the route matches " + clean + " without the slash, too"
	case w.has(l.path + "/"):
		note = "another location has the path " + clean + "/, and its route matches both: a path matches whole segments"
	default:
		note = "a path matches whole segments: " + clean + "x is not below " + clean
	}
	f := importer.Field{}
	for _, r := range w.t.routes[l.d] {
		f = f.Or(r.As("routes"))
	}
	w.t.Became(l.d, verdictOf(note), f, "%s", note)
}
