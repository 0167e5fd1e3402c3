// Package caddy translates Caddyfiles and Caddy's JSON for headgate: into a document, and
// a report with a verdict for every directive or key. Import reads files, and FromAPI
// reads the configuration of a running Caddy.
//
// There is one translator, for JSON. json.go reads its text. Of Caddyfiles parse.go reads
// the text with its snippets and imports, and adapt.go and the files beside it make the JSON
// of it that "caddy adapt" makes, whose values know the directives that they come from.
//
// For JSON, walk.go makes a list of steps of the routes and their handlers for a host,
// jsonmatchers.go, jsonroutes.go and jsonproxy.go contain the matchers and handlers,
// decide.go makes routes with the same result as the steps, and jsonserver.go proxies of
// them. text.go writes texts with placeholders, tls.go finds the source of certificates,
// and tables.go lists what is not translated.
//
// It never applies anything, and opens no file but those that it is given and what they
// import.
package caddy

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// maxFile is the largest Caddyfile, in bytes.
const maxFile = 16 << 20

// Import reads Caddyfiles. An error has the place of what cannot be read; nothing is
// written then.
func Import(names []string, files importer.Files) ([]byte, *importer.Report, error) {
	files = files.Bounded(maxFile, "more than a Caddyfile has")
	return importWith(names, &reader{read: files.Read, glob: files.Glob, snippets: map[string]*directive{}})
}

func importWith(names []string, r *reader) ([]byte, *importer.Report, error) {
	t := newTranslator(r)
	for _, name := range names {
		data, err := r.read(name)
		if err != nil {
			return nil, nil, err
		}
		if looksLikeJSON(data) {
			r.files = append(r.files, name)
			if err := t.adapted(name, data); err != nil {
				return nil, nil, err
			}
			continue
		}
		list, err := r.file(name, outermost, 0)
		if err != nil {
			return nil, nil, err
		}
		r.define(list)
		if list, err = r.expand(slices.DeleteFunc(list, isSnippet), outermost, 0); err != nil {
			return nil, nil, err
		}
		t.top(list)
	}
	return t.finish()
}

func newTranslator(r *reader) *translator {
	t := &translator{Translation: importer.NewTranslation("Caddy"), reader: r, http: "80", https: "443", bind: []string{""}, pairs: map[[2]string]string{}, issued: map[string]*authority{}, entries: map[authority]string{}, redirected: map[string]string{}, onDemand: map[string][]importer.Part{}}
	t.adapter = newAdapter(t)
	return t
}

// translator goes through Caddy's JSON, and the tree that is made of Caddyfiles.
type translator struct {
	*importer.Translation
	reader      *reader
	adapter     *adapter
	all         []*directive
	http, https string // the numbers of the ports
	bind        []string
	email, ca   string
	dns         string // the provider of DNS, for certificates
	noHTTPS     bool   // auto_https off
	noRedirects bool   // auto_https disable_redirects
	noACME      bool   // auto_https disable_certs
	forwarding  *value // trusted_proxies of all servers; nil for none
	pairs       map[[2]string]string
	// issued has the authority of hosts that have one of their own, nil for those whose
	// certificates are not ordered.
	issued  map[string]*authority
	entries map[authority]string // names of ACME entries
	// authority has the global options about where certificates are ordered.
	authority []*directive
	// ask is the URL that allows hosts whose certificates are ordered on demand, "" without
	// one, and allowing what names it; onDemand has what orders them, by host.
	ask      string
	allowing []importer.Part
	onDemand map[string][]importer.Part
	// redirected has the servers of the hosts whose clients are sent to HTTPS.
	redirected map[string]string
	sites      int
}

// Text is a directive without secrets: hashes of passwords and tokens of providers.
func (d *directive) Text() string {
	if strings.HasPrefix(d.arg(0), "$2") || strings.HasPrefix(d.arg(0), "$argon2") {
		return d.name() + " …"
	}
	if d.name() == "dns" || d.name() == "eab" || d.name() == "acme_dns" {
		return d.name() + " " + d.arg(0) + " …"
	}
	text := strings.Join(d.words, " ")
	if d.open {
		text += " { … }"
	}
	return text
}

// sayAll gives a directive and all in its block one verdict, Ignored or Impossible.
func (t *translator) sayAll(d *directive, v importer.Omission, note string, args ...any) {
	t.worse(d, importer.Verdict(v), importer.Field{}, sprintf(note, args))
	for _, c := range d.block {
		t.sayAll(c, v, note, args...)
	}
}

func sprintf(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// worse gives a directive a verdict, unless it has a worse one: it is made into several
// values, and used in several places.
func (t *translator) worse(d *directive, v importer.Verdict, f importer.Field, note string) {
	if d.of != nil {
		d = d.of
	}
	had := d.Verdict()
	d.Reopen()
	t.Translation.Became(d, v, f, "%s", note)
	if had == v && note != "" {
		t.Amend(d, v, note)
	}
}

// top goes through global options and sites.
func (t *translator) top(list []*directive) {
	t.all = append(t.all, list...)
	var sites []*directive
	for _, d := range list {
		switch {
		case d.name() == "" && d.open:
			t.global(d)
		case d.open:
			sites = append(sites, d)
		default:
			t.leaveOut(d, "it is no site")
		}
	}
	var blocks []*siteBlock
	for _, d := range sites {
		blocks = append(blocks, t.newSite(d))
	}
	t.servers(t.adaptSites(blocks))
}

// servers makes proxies of the servers of a configuration.
func (t *translator) servers(servers *value) {
	plain := map[string]bool{}
	for _, name := range servers.keys {
		for _, l := range servers.fields[name].get("listen").list {
			if strings.HasSuffix(l.text, ":"+t.http) {
				for _, h := range hostsOf(servers.fields[name].get("routes"), nil) {
					plain[h] = true
				}
			}
		}
	}
	for _, name := range servers.keys {
		t.jsonServer(name, servers.fields[name], plain)
	}
}

// global goes through the global options.
func (t *translator) global(d *directive) {
	d.Skip()
	for _, o := range d.block {
		switch o.name() {
		case "email":
			t.email = o.arg(0)
			t.authority = append(t.authority, o)
		case "acme_ca":
			t.ca = o.arg(0)
			t.authority = append(t.authority, o)
		case "http_port":
			t.http = o.arg(0)
			t.Became(o, importer.Same, importer.ByItself(), "the address of the port")
		case "https_port":
			t.https = o.arg(0)
			t.Became(o, importer.Same, importer.ByItself(), "the address of the port")
		case "default_bind":
			t.bind = bindOf(o)
			t.Became(o, importer.Same, importer.ByItself(), "the addresses of the ports")
		case "order":
			t.adapter.reorder(o)
		case "auto_https":
			t.automatic(o)
		case "local_certs":
			t.noACME = true
			t.Became(o, importer.Close, importer.ByItself(), "the self-signed certificate of headgate")
		case "acme_dns":
			t.dns = o.arg(0)
			t.Check("certificates came by DNS at %s: set acme.main.dns", o.arg(0))
		case "on_demand_tls":
			t.allowedBy(o)
		case "servers":
			t.serverOptions(o)
		}
	}
}

// automatic translates Caddy's automatic HTTPS.
func (t *translator) automatic(o *directive) {
	for _, word := range o.args() {
		switch word {
		case "off":
			t.noHTTPS = true
		case "disable_redirects":
			t.noRedirects = true
		case "disable_certs":
			t.noACME = true
		}
	}
	if slices.ContainsFunc(o.args(), func(word string) bool { return word == "off" || word == "disable_certs" }) {
		t.Became(o, importer.Close, importer.ByItself(), "no acme entry; clients of hosts without a certificate get the self-signed one of headgate, where Caddy ends the handshake")
		return
	}
	t.Became(o, importer.Same, importer.ByItself(), "acme and redirect_http_to_https of the proxies")
}

// serverOptions reads who is trusted in front.
func (t *translator) serverOptions(d *directive) {
	t.AddVerdict(d, importer.Ignored, "its options have the verdict")
	for _, o := range d.block {
		if o.name() == "trusted_proxies" {
			v := object(o).put(o, "source", o.arg(0))
			t.forwarding = v.set("ranges", texts(o, o.args()[min(1, len(o.args())):]))
		}
		for _, c := range o.block {
			if o.name() == "listener_wrappers" && c.name() == "http_redirect" {
				t.AddVerdict(c, importer.Impossible, "plain HTTP at an https port gets 400, and no redirect")
			}
		}
	}
}

// finish writes the document.
func (t *translator) finish() ([]byte, *importer.Report, error) {
	for _, d := range t.authority {
		if len(t.entries) == 0 {
			t.AddVerdict(d, importer.Ignored, "no certificate is ordered")
		}
		t.Became(d, importer.Same, importer.NewObject().Set("email", t.email).Field("email").Or(importer.NewObject().Set("directory", directoryOf(t.ca)).Field("directory")), "acme.main")
	}
	t.blocks(t.all)
	t.rest(t.all, false)
	for _, d := range t.reader.unknown {
		t.AddVerdict(d, importer.Impossible, "there is no such snippet or file")
		t.Check("%s:%d: import %s: there is no such snippet or file", d.File, d.Line, d.arg(0))
	}
	if t.sites == 0 {
		return nil, nil, fmt.Errorf("%s: there is no site in it", strings.Join(t.reader.files, ", "))
	}
	return t.Finish("a configuration of Caddy", "directive", t.reader.files)
}

// blocks gives a verdict to what acts through the directives in its block, such as handle.
func (t *translator) blocks(list []*directive) {
	for _, d := range list {
		t.blocks(d.block)
		if d.Settled() || d.Verdict() != "" || len(d.block) == 0 || table.Has(d.name()) {
			continue
		}
		acts, inner := false, false
		for _, c := range d.block {
			v := c.Verdict()
			acts = acts || v == importer.Same || v == importer.Close
			inner = inner || v != ""
		}
		switch {
		case acts:
			t.Became(d, importer.Same, importer.Through(d.block...), "")
		case inner:
			t.AddVerdict(d, importer.Ignored, "what is in it has the verdict")
		}
	}
}

// known gives a directive and all in its block the verdict of the table for its name.
func (t *translator) known(d *directive, name string) {
	for _, c := range d.block {
		t.known(c, name)
	}
	t.SayKnown(d, table, name)
}

// rest adds a verdict to directives without one. lost means that the directive around them
// could not be translated.
func (t *translator) rest(list []*directive, lost bool) {
	for _, d := range list {
		if !d.Settled() {
			if t.known(d, d.name()); lost {
				t.AddVerdict(d, importer.Impossible, "the directive around it could not be translated")
			}
			t.AddVerdict(d, importer.Impossible, "headgate does not know this directive here")
		}
		t.rest(d.block, lost || d.Verdict() == importer.Impossible)
	}
}
