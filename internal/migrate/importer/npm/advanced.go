package npm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/nginx"
)

// written is the configuration that Nginx Proxy Manager has nginx serve for one host with
// lines of its own, as far as it decides what becomes of these.
type written struct {
	text  strings.Builder
	files map[string][]byte // the lines of people, by names of their own
	where map[string]string // what they belong to, by the same
}

// host is the name of the file that Nginx Proxy Manager writes.
const host = "the host"

// serverBlockHead writes the server block up to its locations.
func serverBlockHead(r *record) *written {
	w := &written{files: map[string][]byte{}, where: map[string]string{}}
	fmt.Fprintf(&w.text, "server {\nlisten 80;\nserver_name %s;\nclient_max_body_size 2000m;\n", strings.Join(r.domains(), " "))
	w.lines("advanced", r.text("advanced_config"))
	return w
}

// lines puts lines of people into the configuration.
func (w *written) lines(where, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	file := fmt.Sprint("lines-", len(w.files))
	w.files[file], w.where[file] = []byte(text), where
	fmt.Fprintf(&w.text, "include %q;\n", file)
}

// fields are those that every location sends to its server.
const fields = `proxy_set_header Host $http_host;
proxy_set_header X-Forwarded-Scheme $scheme;
proxy_set_header X-Forwarded-Proto $scheme;
proxy_set_header X-Forwarded-For $remote_addr;
proxy_set_header X-Real-IP $remote_addr;
`

// advanced reports whether people have added lines to a host or a location of it.
func advanced(r *record) bool {
	var list []location
	return strings.TrimSpace(r.text("advanced_config")) != "" ||
		r.into("locations", &list) == nil && slices.ContainsFunc(list, func(l location) bool { return strings.TrimSpace(l.AdvancedConfig) != "" })
}

// asWritten makes a host of the nginx configuration as a whole: the lines that Nginx Proxy
// Manager writes, and the user's among them. main is the content of the location / and
// locations are the others, by their routes.
func (t *translator) asWritten(r *record, p importer.Object, main string, locations []custom) {
	if !advanced(r) {
		return
	}
	r.seen["advanced_config"] = true
	w := serverBlockHead(r)
	for _, l := range locations {
		fmt.Fprintf(&w.text, "location %s {\n", l.of.Path)
		w.lines("location "+l.of.Path+": advanced", l.of.AdvancedConfig)
		fmt.Fprintf(&w.text, "%s%sproxy_pass %s;\n}\n", fields, secured(p), l.server)
	}
	if !hasRoot(w.files) {
		fmt.Fprintf(&w.text, "location / {\n%s%s}\n", secured(p), main)
	}
	w.text.WriteString("}\n")
	inner, err := nginx.Proxies([]string{host}, importer.Files{Read: w.read, Glob: func(string) ([]string, error) { return nil, nil }})
	if err != nil {
		t.omit(r, "advanced_config", importer.Impossible, "its lines of nginx cannot be read, so the host does not work in nginx either: %v", err)
		t.Check("%s: its lines of nginx were left out: %v", r.title(), err)
		return
	}
	made, ok := t.joined(r, inner.Proxies)
	if !ok {
		t.omit(r, "advanced_config", importer.Impossible, "its lines of nginx want several proxies for one host; headgate import nginx reads the file that Nginx Proxy Manager has written, data/nginx/%s/%d.conf", r.table, r.id)
		t.Check("%s: its lines of nginx were left out", r.title())
		return
	}
	t.mergeProxy(p, made)
	t.tellLines(r, p, w, inner)
}

// secured is the line for HSTS, which is in every location that Nginx Proxy Manager
// writes: there nginx sends no field of the server block then.
func secured(p importer.Object) string {
	for _, h := range p.Objects("headers") {
		if name := h.Text("name"); name == "Strict-Transport-Security" {
			return fmt.Sprintf("add_header %s %q always;\n", name, h.Text("value"))
		}
	}
	return ""
}

// rootOf reports whether the lines of a host have a location / of their own.
func rootOf(r *record) bool { return hasRoot(serverBlockHead(r).files) }

// hasRoot reports whether the lines have a location / of their own: Nginx Proxy Manager
// writes none then.
func hasRoot(files map[string][]byte) bool {
	for _, text := range files {
		words := strings.Fields(string(text))
		for i := range len(words) - 1 {
			if words[i] == "location" && (words[i+1] == "/" || words[i+1] == "/{") {
				return true
			}
		}
	}
	return false
}

// read returns the configuration and the lines; other included files are reported.
func (w *written) read(name string) ([]byte, error) {
	if name == host {
		return []byte(w.text.String()), nil
	}
	return w.files[name], nil
}

// joined makes one proxy of those of a host, which differ in the Host that servers get. It
// reports whether they are all for the same host.
func (t *translator) joined(r *record, proxies importer.Object) (made importer.Object, ok bool) {
	names := proxies.Names()
	for i, name := range names {
		o := proxies.Object(name)
		if i == 0 {
			made = o
			continue
		}
		hosts := func(o importer.Object) string { return importer.NewObject().CopyField(o, "virtual_hosts").Key() }
		if hosts(o) != hosts(made) {
			return made, false
		}
		t.Check("%s: nginx sends servers of some locations a Host other than the client's; here all get the client's", r.title())
		for _, route := range o.Objects("routes") {
			for _, feature := range o.Names() {
				if !slices.Contains([]string{"virtual_hosts", "ports", "routes", "host_header", "access_log"}, feature) && !route.Has(feature) {
					route.CopyField(o, feature)
				}
			}
			made.Append("routes", route)
		}
	}
	made.Remove("host_header")
	return made, len(names) > 0
}

// guarded are the directives that an access list has itself.
var guarded = []string{"allow", "deny", "satisfy", "auth_basic", "auth_basic_user_file"}

// mergeProxy puts what nginx makes of a host into its proxy.
func (t *translator) mergeProxy(p, made importer.Object) {
	p.Remove("headers")
	p.Remove("redirects")
	listed := p.Has("use")
	for _, o := range append(made.Objects("routes"), made) {
		if listed { // its policy has both
			o.Remove("ip_filter")
			o.Remove("basic_auth")
		}
		if o.Text("request_body_limit") == "2000MiB" { // that of Nginx Proxy Manager for all
			o.Remove("request_body_limit")
		}
		own := slices.DeleteFunc(o.Objects("headers"), func(h importer.Object) bool { return h.Text("name") == "X-Served-By" })
		if o.Has("headers") {
			o.Set("headers", own)
		}
		for _, s := range o.Objects("servers") {
			if strings.HasPrefix(s.Text("url"), "https:") && !s.Has("tls") {
				s.Set("tls", importer.NewObject().Set("insecure_skip_verify", true).Flow())
			}
		}
	}
	for _, name := range made.Names() {
		if name != "virtual_hosts" && name != "ports" {
			p.CopyField(made, name)
		}
	}
}

// tellLines adds the verdicts of the lines to the report, and says how many of them a
// person has to look at.
func (t *translator) tellLines(r *record, p importer.Object, w *written, inner *importer.Translation) {
	odd, all := map[string]int{}, map[string]int{}
	t.Adopt(inner, func(e *importer.Entry) bool {
		where, ok := w.where[e.File]
		if !ok {
			return false
		}
		word, _, _ := strings.Cut(strings.TrimSuffix(e.Directive, ";"), " ")
		switch {
		case word == "include":
			e.Verdict, e.Note = importer.Impossible, "the file is not read from here: review it, or import it with headgate import nginx"
		case p.Has("use") && slices.Contains(guarded, word):
			e.Verdict, e.Note = importer.Impossible, "the host has an access list, whose rules are in its locations, where nginx inherits none"
		}
		e.File, e.Directive = t.name+" advanced", fmt.Sprintf("%s: %s: %s", r.title(), where, e.Directive)
		if all[where]++; e.Verdict != importer.Same {
			odd[where]++
		}
		return true
	})
	for _, where := range slices.Sorted(maps.Values(w.where)) {
		if odd[where] > 0 {
			t.Check("%s, %s: %d of its %d lines of nginx are not the same; look at their verdicts", r.title(), where, odd[where], all[where])
		}
	}
	for _, text := range inner.Report.Check {
		if !strings.Contains(text, "unknown hosts") {
			t.Check("%s: %s", r.title(), text)
		}
	}
}
