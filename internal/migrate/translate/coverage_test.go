package translate

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate/internal/migrate/importer"
)

var update = flag.Bool("update", false, "write docs/reference/import.md again")

// documented is the documented settings of a source: testdata has an example of each.
type documented struct {
	kind, title, file string
	// around puts an example into a whole configuration.
	around func(block, example string) (name, text string)
	// shown is how the report calls the setting.
	shown func(example string) string
}

var sources = []documented{
	{"nginx", "nginx", "nginx.conf", aroundNginx, func(example string) string {
		head, _, block := strings.Cut(example, "{")
		if block {
			return strings.TrimSpace(head) + " { … }"
		}
		return example
	}},
	{"haproxy", "HAProxy", "haproxy.cfg", aroundHAProxy, func(example string) string { return example }},
	{"caddy", "Caddyfile", "Caddyfile", aroundCaddy, func(example string) string {
		head, _, _ := strings.Cut(example, " { ")
		return head
	}},
	{"traefik", "Traefik", "compose.yml", aroundTraefik, func(example string) string {
		name, _, _ := strings.Cut(example, "=")
		return strings.NewReplacer("[0]", ".0").Replace(name)
	}},
}

func aroundNginx(block, example string) (string, string) {
	at := func(name string) string {
		if name == block {
			return example
		}
		return ""
	}
	handler := "proxy_pass http://u;"
	switch firstWord(example) {
	case "alias", "root":
		handler = ""
	case "try_files", "gzip_static":
		handler = "root /srv;"
	}
	return "nginx.conf", at("main") + "\nevents { " + at("events") + " }\nhttp {\nlimit_req_zone $binary_remote_addr zone=r:1m rate=1r/s;\n" + at("http") + "\nupstream u { server 127.0.0.1:8; " + at("upstream") + " }\nserver {\nlisten 80;\n" + at("server") +
		"\nlocation / { " + handler + "\n" + at("location") + "\n}\nlocation = /auth { internal; proxy_pass http://127.0.0.1:7; }\nlocation = /mirror { internal; proxy_pass http://127.0.0.1:6; }\nlocation @fallback { proxy_pass http://127.0.0.1:5; }\n}\n}\nstream {\n" + at("stream") +
		"\nserver { listen 5000; proxy_pass 127.0.0.1:4;\n" + at("stream_server") + "\n}\n}\n"
}

func aroundHAProxy(block, example string) (string, string) {
	at := func(name string) string {
		if name == block {
			return " " + example + "\n"
		}
		return ""
	}
	uses := " default_backend b\n" // and what asks for the example
	switch {
	case strings.HasPrefix(example, "default_backend"):
		uses = ""
	case strings.HasPrefix(example, "acl a "):
		uses = " use_backend b if a\n http-request return status 404 if METH_GET\n"
	case strings.HasPrefix(example, "http-request set-var"):
		uses = " use_backend b if { var(txn.x) a.example.com }\n"
	}
	return "haproxy.cfg", "global\n" + at("global") + "defaults\n mode http\nfrontend f\n bind :80\n" + at("frontend") + uses + "backend b\n" + at("backend") + " server s 127.0.0.1:1 check\n"
}

func aroundCaddy(block, example string) (string, string) {
	example = strings.NewReplacer(" { ", " {\n", " }", "\n}").Replace(example)
	at := func(name string) string {
		if name == block {
			return example
		}
		return ""
	}
	handler := "reverse_proxy b:1 {\n" + at("proxy") + "\n}"
	switch firstWord(example) {
	case "root":
		handler = "file_server"
	case "try_files":
		handler = "root * /srv\nfile_server"
	case "file_server", "php_fastcgi":
		handler = "root * /srv"
	}
	return "Caddyfile", "{\n" + at("global") + "\n}\na.example.com {\n" + at("site") + "\n" + handler + "\n}\n"
}

func aroundTraefik(block, example string) (string, string) {
	labels := []string{"traefik.http.routers.r.rule=Host(`a.example.com`)", "traefik.http.services.s.loadbalancer.server.port=80", "traefik.http.routers.r.middlewares=m", "traefik.http.routers.r.entrypoints=web"}
	flags := []string{"--entrypoints.web.address=:80", "--entrypoints.tcp.address=:81", "--entrypoints.udp.address=:82/udp", "--certificatesresolvers.le.acme.email=a@b.c"}
	for kind, rest := range map[string]string{"tcp": "rule=HostSNI(`*`)", "udp": "entrypoints=udp"} {
		if strings.HasPrefix(example, kind+".") {
			labels = append(labels, "traefik."+kind+".routers.r."+rest, "traefik."+kind+".routers.r.entrypoints="+kind, "traefik."+kind+".routers.r.service=s", "traefik."+kind+".services.s.loadbalancer.server.port=80")
		}
	}
	drop := func(list []string, prefix string) []string {
		name, _, _ := strings.Cut(example, "=")
		return slices.DeleteFunc(list, func(s string) bool { return strings.HasPrefix(s, prefix+name+"=") })
	}
	if block == "static" {
		flags = append(drop(flags, "--"), "--"+example)
	} else {
		labels = append(drop(labels, "traefik."), "traefik."+example)
	}
	if strings.HasPrefix(example, "http.middlewares.m.") {
		parts := strings.SplitN(example, ".", 5)
		for _, needed := range map[string][]string{"redirectregex": {"regex=^http://a/(.*)", "replacement=http://b/$1"}, "replacepathregex": {"regex=^/a", "replacement=/b"}, "forwardauth": {"address=http://a/"}, "ratelimit": {"average=10"}}[strings.SplitN(parts[3], "=", 2)[0]] {
			label := "traefik.http.middlewares.m." + parts[3] + "." + needed
			if name, _, _ := strings.Cut(needed, "="); !strings.Contains(example, "."+name+"=") {
				labels = append(labels, label)
			}
		}
	}
	var b strings.Builder
	b.WriteString("services:\n  traefik:\n    command:\n")
	for _, f := range flags {
		fmt.Fprintf(&b, "      - %q\n", f)
	}
	b.WriteString("  s:\n    labels:\n")
	for _, l := range labels {
		fmt.Fprintf(&b, "      - %q\n", l)
	}
	return "compose.yml", b.String()
}

// setting is a documented setting with what becomes of its example.
type setting struct {
	block, example string
	verdict        importer.Verdict
	note           string
}

// settingsOf imports the example of each documented setting of a source.
func settingsOf(t *testing.T, d documented) (all []setting) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + d.kind + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		s := setting{example: line}
		if d.kind != "traefik" || strings.HasPrefix(line, "static ") {
			s.block, s.example, _ = strings.Cut(line, " ")
		}
		name, text := d.around(s.block, s.example)
		_, report, err := readers[d.kind].files([]string{name}, importer.Given(map[string][]byte{
			name: []byte(text), "users": []byte("anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n"), "mime.types": {}, "/x.pem": {},
		}))
		if err != nil {
			t.Errorf("%s: %s: %v\n%s", d.title, line, err, text)
			continue
		}
		shown := d.shown(s.example)
		i := slices.IndexFunc(report.Entries, func(e importer.Entry) bool {
			return strings.EqualFold(e.Directive, shown) || len(e.Directive) > len(shown) && strings.EqualFold(e.Directive[:len(shown)], shown) && strings.ContainsRune(" :;.", rune(e.Directive[len(shown)]))
		})
		if i < 0 {
			i = slices.IndexFunc(report.Entries, func(e importer.Entry) bool {
				return strings.Contains(strings.ToLower(e.Directive), strings.ToLower(shown)) || strings.HasPrefix(shown, firstWord(e.Directive)) && firstWord(e.Directive) == firstWord(shown)
			})
		}
		if i < 0 {
			t.Errorf("%s: %s has no verdict in\n%s%v", d.title, line, text, report.Entries)
			continue
		}
		if slices.Contains(namesFields, d.kind) {
			for _, e := range report.Entries {
				if (e.Verdict == importer.Same || e.Verdict == importer.Close) && len(e.Became) == 0 {
					t.Errorf("%s: %s: %s is %s and names no field", d.title, line, e.Directive, e.Verdict)
				}
			}
		}
		s.verdict, s.note = report.Entries[i].Verdict, report.Entries[i].Note
		if strings.Contains(s.note, "does not know") {
			t.Errorf("%s: %s is not known (%s)", d.title, line, report.Entries[i].Directive)
		}
		all = append(all, s)
	}
	return all
}

// namesFields are the sources of which every verdict "same" and "close" names the field
// that it became.
var namesFields = []string{"nginx"}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// TestDocumentedSettingsAreKnown holds that no documented setting of a source is unknown,
// and that the page of the reference tells what becomes of each.
func TestDocumentedSettingsAreKnown(t *testing.T) {
	var b, tables strings.Builder
	b.WriteString("<!-- Generated by go test ./internal/migrate/translate -update. Do not edit. -->\n\n# Import: what becomes of which setting\n\n" +
		"What `headgate import` makes of the documented settings of other proxies. Each was imported in an\n" +
		"example; what becomes of yours, with its file and line, is in the report of your own import, since it may depend\n" +
		"on the arguments and on what stands around. How an import is made is told in\n[Coming from another proxy](../guides/coming-from.md).\n\n" +
		"- **same**: headgate does the same.\n- **close**: it does nearly the same; the difference is told.\n- **ignored**: nothing has to be done.\n- **not possible**: headgate cannot do it.\n\n" +
		"| source | settings | same | close | ignored | not possible |\n|---|---|---|---|---|---|\n")
	tell := func(title string, all []setting) {
		counts := map[importer.Verdict]int{}
		fmt.Fprintf(&tables, "\n## %s\n\n| where | setting | verdict | why |\n|---|---|---|---|\n", title)
		for _, s := range all {
			counts[s.verdict]++
			escape := strings.NewReplacer("|", `\|`, "\n", " ").Replace
			fmt.Fprintf(&tables, "| %s | `%s` | %s | %s |\n", s.block, escape(s.example), strings.ReplaceAll(string(s.verdict), "_", " "), escape(strings.ReplaceAll(s.note, "<", "&lt;")))
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %d | %d | %d | %d | %d |\n", title, strings.ReplaceAll(strings.ToLower(title), " ", "-"), len(all), counts[importer.Same], counts[importer.Close], counts[importer.Ignored], counts[importer.Impossible])
		t.Logf("%s: %d settings, %v", title, len(all), counts)
	}
	for _, d := range sources {
		tell(d.title, settingsOf(t, d))
	}
	tell("Nginx Proxy Manager", settingsOfNPM(t))
	const page = "../../../docs/reference/import.md"
	text := b.String() + tables.String()
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("go test ./internal/migrate/translate -update writes the page again (-want +got):\n%s", diff)
	}
}
