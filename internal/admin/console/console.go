// Package console serves the console: the pages for operators in a browser. They are built
// from web/ into dist by `make web`, and embedded if they exist when the program is
// compiled. Without them, a page explains that. New makes the handler.
//
// The pages use the API like any other client; this package serves files only.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed all:dist
var dist embed.FS

// nonceMark is replaced in index.html by the nonce of the response.
const nonceMark = "__NONCE__"

// Console is the handler of all pages and their assets. It is safe for concurrent use.
type Console struct {
	index []byte           // nil without a build
	files map[string]*file // by path, such as /assets/index-4f3a.js
	pages []string         // the first segments of the paths of pages
}

// file is one file of the build. It never changes.
type file struct {
	kind    string // the media type
	etag    string
	forever bool              // its name changes with its content
	plain   []byte            // nil if there is a form of coding gzip
	coded   map[string][]byte // by coding: br, gzip
}

// New returns the console that was built into the program.
func New() *Console {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		built = dist // the folder is there: it is embedded
	}
	return Of(built)
}

// Of returns the console of a build in a folder. A folder without index.html has none.
func Of(built fs.FS) *Console {
	c := &Console{files: map[string]*file{}}
	index, err := fs.ReadFile(built, "index.html")
	if err != nil {
		return c
	}
	var pages []string
	if text, err := fs.ReadFile(built, "pages.json"); err != nil || json.Unmarshal(text, &pages) != nil {
		return c
	}
	c.index, c.pages = index, pages
	_ = fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			c.add(built, name)
		}
		return nil
	})
	return c
}

// add adds a file of the build under the name of its uncompressed form. The build has the
// uncompressed form of small files only: others exist as .br and .gz, and a client that
// accepts neither gets the second one decompressed.
func (c *Console) add(built fs.FS, name string) {
	switch path.Ext(name) {
	case ".br", ".keep", ".html":
		return
	}
	name = strings.TrimSuffix(name, ".gz")
	if name == "pages.json" || c.files["/"+name] != nil {
		return
	}
	f := &file{kind: mime.TypeByExtension(path.Ext(name)), forever: strings.HasPrefix(name, "assets/"), coded: map[string][]byte{}}
	for coding, end := range map[string]string{"br": ".br", "gzip": ".gz"} {
		if data, err := fs.ReadFile(built, name+end); err == nil {
			f.coded[coding] = data
		}
	}
	content := f.coded["gzip"]
	if content == nil {
		var err error
		if f.plain, err = fs.ReadFile(built, name); err != nil {
			return
		}
		content = f.plain
	}
	sum := sha256.Sum256(content)
	f.etag = `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	switch path.Ext(name) { // do not depend on the machine's MIME tables
	case ".js":
		f.kind = "text/javascript; charset=utf-8"
	case ".woff2":
		f.kind = "font/woff2"
	case ".css":
		f.kind = "text/css; charset=utf-8"
	case ".svg":
		f.kind = "image/svg+xml"
	}
	c.files["/"+name] = f
}

// Built reports whether there is a build.
func (c *Console) Built() bool { return c.index != nil }

// ServeHTTP serves a file of the build, or the console's page if the path is one of its
// pages. Other paths are 404; a browser then gets the console, which shows that there is no
// such page.
func (c *Console) ServeHTTP(w http.ResponseWriter, rq *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if f := c.files[rq.URL.Path]; f != nil {
		f.serve(w, rq)
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(rq.URL.Path, "/"), "/")
	switch {
	case !c.Built() && first == "":
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		html(w, http.StatusOK, []byte(unbuilt))
	case slices.Contains(c.pages, first):
		c.page(w, http.StatusOK)
	case c.Built() && first != "api" && first != "assets" && strings.Contains(rq.Header.Get("Accept"), "text/html"):
		c.page(w, http.StatusNotFound)
	default:
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("there is no such page\n"))
	}
}

// page sends the console. Styles that it makes at run time carry a nonce: the library
// of its controls writes them for values that depend on the width of the screen. There
// is no inline script.
func (c *Console) page(w http.ResponseWriter, status int) {
	nonce := rand.Text()
	w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce+"'; "+
		"img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "+
		"frame-ancestors 'none'")
	html(w, status, bytes.ReplaceAll(c.index, []byte(nonceMark), []byte(nonce)))
}

func html(w http.ResponseWriter, status int, text []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client went away
}

// serve sends the file in the smallest form that the client takes.
func (f *file) serve(w http.ResponseWriter, rq *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.etag)
	h.Set("Cache-Control", "no-cache")
	if f.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if rq.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := []byte(nil)
	for _, coding := range []string{"br", "gzip"} {
		if data := f.coded[coding]; data != nil && accepts(rq.Header.Get("Accept-Encoding"), coding) {
			body = data
			h.Set("Content-Encoding", coding)
			break
		}
	}
	if body == nil {
		body = f.decompressed()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client went away
}

// decompressed returns the plain form. Nearly all clients accept a compressed one.
func (f *file) decompressed() []byte {
	data := f.coded["gzip"]
	if data == nil {
		return f.plain
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil // it was compressed by the build
	}
	plain, _ := io.ReadAll(r)
	return plain
}

// accepts reports whether Accept-Encoding names a coding, and not with q=0.
func accepts(field, coding string) bool {
	for part := range strings.SplitSeq(field, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}
		q, found := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		if !found {
			return true
		}
		n, err := strconv.ParseFloat(q, 64)
		return err == nil && n > 0
	}
	return false
}

// unbuilt is shown where the program was compiled without the console.
const unbuilt = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>headgate</title><meta name="viewport" content="width=device-width"></head>
<body><h1>headgate</h1>
<p>This program was compiled without the console. Everything else works.</p>
<p>To have it, install Node.js 20.19 or newer and run <code>make build</code> in the source tree: it builds the console from
<code>web/</code> and compiles it in. The released programs have it.</p>
<p>What else is here: <a href="/pages">the list of pages</a>.</p>
</body></html>
`
