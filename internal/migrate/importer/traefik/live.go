package traefik

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/migrate/importer"
)

// FromAPI reads the configuration that Traefik itself has made of files, labels and
// templates, from its API at address, such as http://127.0.0.1:8080. The response
// contains nothing of its static configuration except entry points.
func FromAPI(ctx context.Context, client *http.Client, address, token string) ([]byte, *importer.Report, error) {
	base, err := importer.Base(address, "Traefik", "http://127.0.0.1:8080")
	if err != nil {
		return nil, nil, err
	}
	t := newTranslator("Traefik")
	for _, q := range []struct {
		path string
		take func(string, *yaml.Node) error
	}{{"/api/entrypoints", t.liveEntries}, {"/api/rawdata", t.liveData}} {
		data, err := importer.Fetch(ctx, client, base+q.path, token)
		if err != nil {
			return nil, nil, err
		}
		var lines bytes.Buffer // so that a line of the report is a place
		if err := json.Indent(&lines, data, "", "  "); err != nil {
			return nil, nil, fmt.Errorf("%s: the answer is not JSON: %w", base+q.path, err)
		}
		var doc yaml.Node // JSON is YAML
		if err := yaml.Unmarshal(lines.Bytes(), &doc); err != nil || len(doc.Content) == 0 {
			return nil, nil, fmt.Errorf("%s: the answer cannot be read: %v", base+q.path, err)
		}
		t.files = append(t.files, base+q.path)
		if err := q.take(base+q.path, doc.Content[0]); err != nil {
			return nil, nil, err
		}
	}
	t.Check("certificates, and what certResolvers need, are not part of Traefik's answer: give acme.json and the static file as files too, or set acme by hand")
	return t.translate()
}

// liveEntries translates the entry points, except that of Traefik's own
// pages.
func (t *translator) liveEntries(name string, list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return fmt.Errorf("%s: the answer is no list of entry points", name)
	}
	for _, item := range list.Content {
		own := field(item, "name")
		if own == nil || own.Value == "" {
			continue
		}
		if own.Value == "traefik" {
			t.Report.Add(importer.Entry{File: name, Line: item.Line, Directive: "entryPoints.traefik", Verdict: importer.Ignored, Note: "it is for Traefik's own pages"})
			continue
		}
		n := t.root.below("entryPoints", name, list.Line).below(own.Value, name, item.Line)
		if err := t.build.fromYAML(n, item, 0); err != nil {
			return err
		}
		if h := n.get("http"); len(h.keys) == 0 {
			t.sayAll(h, importer.Ignored, "there is nothing in it")
		}
		for _, told := range []string{"name", "transport", "http2", "udp", "proxyProtocol", "observability"} {
			t.sayAll(n.get(told), importer.Ignored, "Traefik returns its defaults too; timeouts of a port are set at the port")
		}
	}
	return nil
}

// The parts of the answer, by the places that they have in files.
var rawParts = []struct{ name, kind, part string }{
	{"routers", "http", "routers"}, {"middlewares", "http", "middlewares"}, {"services", "http", "services"},
	{"tcpRouters", "tcp", "routers"}, {"tcpMiddlewares", "tcp", "middlewares"}, {"tcpServices", "tcp", "services"},
	{"udpRouters", "udp", "routers"}, {"udpServices", "udp", "services"},
}

// liveData translates routers, middlewares and services.
func (t *translator) liveData(name string, doc *yaml.Node) error {
	for _, p := range rawParts {
		objects := field(doc, p.name)
		if objects == nil || objects.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(objects.Content); i += 2 {
			key := objects.Content[i]
			short, provider, _ := strings.Cut(key.Value, "@")
			if provider == "internal" {
				t.Report.Add(importer.Entry{File: name, Line: key.Line, Directive: p.kind + "." + p.part + "." + key.Value, Verdict: importer.Ignored, Note: "it is part of Traefik itself"})
				continue
			}
			parent := t.root.below(p.kind, name, key.Line).below(p.part, name, key.Line)
			if parent.get(short).is() {
				t.Check("%s %s is there from two providers; only the first was translated", strings.TrimSuffix(p.part, "s"), short)
				continue
			}
			n := parent.below(short, name, key.Line)
			if err := t.build.fromYAML(n, objects.Content[i+1], 0); err != nil {
				return err
			}
			for _, state := range []string{"status", "using", "usedBy", "serverStatus", "error"} {
				t.sayAll(n.get(state), importer.Ignored, "how Traefik finds it, and no setting")
			}
		}
	}
	return nil
}
