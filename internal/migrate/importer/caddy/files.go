package caddy

import (
	"path"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// folder is where the files of requests are: what the handlers before file_server have
// said.
type folder struct {
	root    string
	rootBy  *value
	spa     bool
	spaBy   *value
	unknown bool // paths are changed in a way that files do not have
}

// vars are variables, of which root names a folder.
func (w *walker) vars(h *value, c rules.Condition) {
	root := h.get("root")
	if !root.is() {
		w.t.sayValue(h, importer.Impossible, "there are no variables")
		return
	}
	words := strings.Fields(root.text)
	if len(words) == 0 {
		w.t.sayValue(h, importer.Impossible, "it names no folder")
		return
	}
	w.later = append(w.later, h)
	w.routable(h, c, func(o *result) { o.folder.root, o.folder.rootBy = words[len(words)-1], root })
}

// tryFiles is try_files with paths in place of a policy.
func (w *walker) tryFiles(h *value, c rules.Condition) {
	words := strings.Fields(h.get("arguments").text)
	last := len(words) - 1
	for i, word := range words {
		switch {
		case i < last && (word == "{path}" || word == "{path}/" || word == "{http.request.uri.path}"):
		case i == last && (word == "/index.html" || word == "index.html"):
		default:
			w.lost(h, "files try the path, and with spa: true the index file of the root; not "+word)
			w.routable(h, c, func(o *result) { o.folder.unknown = true })
			return
		}
	}
	w.later = append(w.later, h)
	w.routable(h, c, func(o *result) { o.folder.spa, o.folder.spaBy = true, h.get("arguments") })
}

// fileServer takes a handler file_server. Where it serves files is known when the handlers
// before it are.
func (w *walker) fileServer(h *value, c rules.Condition) {
	if h.get("pass_thru").text == "true" {
		w.noHandler(h, c, "files cannot be combined with another handler that answers for paths without a file")
		return
	}
	own := h.get("root")
	options := importer.NewObject()
	if names := h.get("index_names").texts(); len(names) > 0 {
		options.Set("index", names)
	}
	if codings := h.get("precompressed_order").texts(); len(codings) > 0 {
		options.Set("precompressed", slices.DeleteFunc(codings, func(name string) bool { return name != "br" && name != "zstd" && name != "gzip" }))
	}
	if b := h.get("browse"); b.is() || b.object {
		options.Set("listing", true)
	}
	w.routable(h, c, func(o *result) {
		root := own.text
		if root == "" {
			root = o.folder.root
		}
		if root == "" || strings.Contains(root, "{") || o.folder.unknown || o.rewrite.Len() > 0 {
			o.answer(fixedStatus(404))
			w.t.Check("%s:%d: the folder of file_server cannot be translated; its requests get 404", h.File, h.Line)
			return
		}
		files := importer.NewObject().Set("root", root).Merge(options)
		if o.folder.spa {
			files.Set("spa", true)
		}
		o.files = files
		o.filesBy = h
		o.over = true
	})
	w.later = append(w.later, h)
}

// setFiles sets the folder of a route. A path that was stripped before is not below the
// root; what the route's path has more is.
func (o *result) setFiles(out importer.Object, routePath string) {
	files := importer.NewObject().Merge(o.files)
	strip := o.strip != "" && rules.Below(routePath, o.strip)
	if more := strings.TrimPrefix(routePath, o.strip); strip && more != "" {
		files.Set("root", path.Join(files.Text("root"), more))
	}
	out.Set("files", files.Flow())
	if routePath != "" {
		out.Set("strip_prefix", strip)
	}
	field := out.Field("files")
	o.w.t.Became(o.filesBy.get("handler"), importer.Close, field, "files: names that begin with a dot are not served, except .well-known; /index.html does not redirect to /; Content-Type of unknown extensions is application/octet-stream, which Caddy leaves out")
	for _, by := range []*value{o.folder.rootBy, o.folder.spaBy} {
		if by != nil {
			o.w.t.Became(by, importer.Same, field, "files")
		}
	}
	for _, name := range []string{"root", "index_names", "browse", "precompressed_order"} {
		o.w.t.Became(o.filesBy.get(name), importer.Same, field, "files")
	}
}

// sayLater gives what no route has used its verdict.
func (w *walker) sayLater() {
	for _, h := range w.later {
		why := "no route that was imported serves these files"
		if h.get("upstreams").is() {
			why = "the root of the site says where the scripts are: write servers with an fcgi URL and fastcgi with the root"
		}
		w.t.sayValue(h, importer.Impossible, "%s", why)
	}
}

// fileServer is: file_server [browse] { root, index, browse, precompressed, pass_thru }.
func fileServer(b *block, d *directive, words []string) *value {
	h := handler(d, "file_server")
	if slices.Contains(words, "browse") {
		h.put(d, "browse", "true")
	}
	for _, o := range d.block {
		switch o.name() {
		case "root":
			h.put(o, "root", o.arg(0))
		case "index":
			h.set("index_names", texts(o, o.args()))
		case "browse":
			h.put(o, "browse", "true")
		case "precompressed":
			codings := o.args()
			if len(codings) == 0 {
				codings = []string{"br", "zstd", "gzip"}
			}
			h.set("precompressed_order", texts(o, codings))
		case "pass_thru":
			h.put(o, "pass_thru", "true")
		default:
			b.a.t.sayAll(o, importer.Impossible, "files have no such setting")
		}
	}
	return h
}
