// Package caddy reads Caddyfiles and Caddy's JSON and writes what headgate makes of them:
// a document, and a report in which every directive or key has a verdict. Import is the
// way, and FromAPI asks a Caddy that runs.
//
// Of Caddyfiles parse.go reads the text with its snippets and imports, site.go goes
// through sites and their matchers, proxy.go has reverse_proxy, features.go the other
// directives. Of JSON json.go reads the text, jsonroutes.go makes a list of steps of the
// routes and their handlers, jsonproxy.go has reverse_proxy, and jsonserver.go makes
// routes that decide as the steps do. tables.go has what nobody looks at.
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
		list, err := r.file(name, 0)
		if err != nil {
			return nil, nil, err
		}
		r.define(list)
		if list, err = r.expand(slices.DeleteFunc(list, isSnippet), 0); err != nil {
			return nil, nil, err
		}
		t.top(list)
	}
	return t.finish()
}

func newTranslator(r *reader) *translator {
	return &translator{Translation: importer.NewTranslation("Caddy"), reader: r, http: "80", https: "443", pairs: map[[2]string]string{}}
}

// translator goes through Caddyfiles, and Caddy's JSON.
type translator struct {
	*importer.Translation
	reader      *reader
	all         []*directive
	http, https string // the numbers of the ports
	email, ca   string
	noHTTPS     bool // auto_https off
	noRedirects bool // auto_https disable_redirects
	wantACME    bool
	pairs       map[[2]string]string // names of certificates by their files
	sites       int
}

// Text is a directive without secrets: hashes of passwords and tokens of providers.
func (d *directive) Text() string {
	if strings.HasPrefix(d.arg(0), "$2") || strings.HasPrefix(d.arg(0), "$argon2") {
		return d.name() + " …"
	}
	if d.name() == "dns" || d.name() == "eab" {
		return d.name() + " " + d.arg(0) + " …"
	}
	text := strings.Join(d.words, " ")
	if d.open {
		text += " { … }"
	}
	return text
}

// sayAll gives a directive and all in its block one verdict.
func (t *translator) sayAll(d *directive, v importer.Verdict, note string, args ...any) {
	t.Say(d, v, note, args...)
	for _, c := range d.block {
		t.sayAll(c, v, note, args...)
	}
}

// top goes through global options and sites.
func (t *translator) top(list []*directive) {
	t.all = append(t.all, list...)
	var sites []*directive
	for _, d := range list {
		if d.name() == "" && d.open {
			t.global(d)
		} else if d.open {
			sites = append(sites, d)
		}
	}
	if len(sites) == 0 && len(list) > 0 && list[0].name() != "" && !list[0].open {
		// A file of one site may have no braces: the first line is its addresses.
		sites = append(sites, &directive{Origin: list[0].Origin, words: list[0].words, block: list[1:], open: true})
		list[0].Settle()
	}
	for _, d := range sites {
		t.site(d)
	}
}

// global goes through the global options.
func (t *translator) global(d *directive) {
	d.Settle()
	for _, o := range d.block {
		switch o.name() {
		case "email":
			t.email = o.arg(0)
			t.Say(o, importer.Same, "acme.main.email")
		case "acme_ca":
			t.ca = o.arg(0)
			t.Say(o, importer.Same, "acme.main.directory")
		case "http_port":
			t.http = o.arg(0)
			t.Say(o, importer.Same, "the port web")
		case "https_port":
			t.https = o.arg(0)
			t.Say(o, importer.Same, "the port websecure")
		case "auto_https":
			switch o.arg(0) {
			case "off":
				t.noHTTPS = true
			case "disable_redirects":
				t.noRedirects = true
			}
			t.Say(o, importer.Same, "")
		case "acme_dns":
			t.Say(o, importer.Close, "give acme.main.dns the provider and its credentials")
			t.Check("certificates came by DNS at %s: set acme.main.dns", o.arg(0))
		case "admin", "log", "debug", "grace_period", "shutdown_delay", "storage", "order", "persist_config", "metrics":
			t.sayAll(o, importer.Ignored, "about Caddy itself")
		case "servers":
			t.servers(o)
		}
	}
}

// servers reads who is trusted in front.
func (t *translator) servers(d *directive) {
	t.Say(d, importer.Same, "what is in it is told there")
	for _, o := range d.block {
		switch o.name() {
		case "trusted_proxies":
			t.Say(o, importer.Close, "client_ip: {trusted: […]} of the proxies")
			t.Check("trusted_proxies %s: name them in client_ip of the proxies, or in defaults", strings.Join(o.args(), " "))
		case "protocols", "timeouts", "max_header_size", "metrics", "keepalive_interval", "enable_full_duplex", "log_credentials", "name":
			t.sayAll(o, importer.Ignored, "ports have their own limits")
		}
	}
}

// finish writes the document.
func (t *translator) finish() ([]byte, *importer.Report, error) {
	if t.wantACME {
		entry := importer.NewObject().Set("directory", directoryOf(t.ca))
		if t.email != "" {
			entry.Set("email", t.email)
		}
		t.ACME.Set("main", entry)
	}
	t.rest(t.all)
	for _, d := range t.reader.unknown {
		t.Say(d, importer.Impossible, "there is no such snippet or file")
		t.Check("%s:%d: import %s: there is no such snippet or file", d.File, d.Line, d.arg(0))
	}
	if t.sites == 0 {
		return nil, nil, fmt.Errorf("%s: there is no site in it", strings.Join(t.reader.files, ", "))
	}
	return t.Finish("a configuration of Caddy", "directive", t.reader.files)
}

func directoryOf(ca string) string {
	switch {
	case ca == "", strings.Contains(ca, "acme-v02.api.letsencrypt.org"):
		return "letsencrypt"
	case strings.Contains(ca, "acme-staging-v02"):
		return "letsencrypt-staging"
	case strings.Contains(ca, "zerossl"):
		return "zerossl"
	}
	return ca
}

// rest gives a verdict to what nobody looked at.
func (t *translator) rest(list []*directive) {
	for _, d := range list {
		if !d.Settled() {
			for _, c := range d.block {
				if table[d.name()].Names != "" && !c.Settled() {
					t.sayAll(c, table[d.name()].Verdict, "%s", table[d.name()].Note)
				}
			}
			t.SayKnown(d, table, d.name())
			t.Say(d, importer.Impossible, "headgate does not know this directive here, or what it stands in could not be taken over")
		}
		t.rest(d.block)
	}
}
