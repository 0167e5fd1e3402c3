package traefik

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/cutover/importer"
)

// isCompose reports whether a document is a Compose file.
func isCompose(doc *yaml.Node) bool {
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return false
	}
	services := field(doc.Content[0], "services")
	return services != nil && services.Kind == yaml.MappingNode && field(doc.Content[0], "entryPoints") == nil
}

func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			if v := n.Content[i+1]; v.Kind == yaml.AliasNode {
				return v.Alias
			}
			return n.Content[i+1]
		}
	}
	return nil
}

// readCompose takes the labels of a Compose file's services, and the flags of Traefik's
// own service, which are static configuration.
func (t *translator) readCompose(name string, doc *yaml.Node) error {
	services := field(doc.Content[0], "services")
	for i := 0; i+1 < len(services.Content); i += 2 {
		key, s := services.Content[i], services.Content[i+1]
		if s.Kind == yaml.AliasNode {
			s = s.Alias
		}
		labels := field(s, "labels")
		if deploy := field(field(s, "deploy"), "labels"); deploy != nil {
			labels = deploy
		}
		if err := t.command(name, field(s, "command")); err != nil {
			return err
		}
		t.composed = append(t.composed, composed{name, key.Value, s, labels})
	}
	return nil
}

// composed is a service of a Compose file. Whether its labels count is known when all
// files are read.
type composed struct {
	file, service string
	s, labels     *yaml.Node
}

// readLabels takes the labels of all services into the tree.
func (t *translator) readLabels() error {
	for _, c := range t.composed {
		if err := t.labels(c.file, c.service, c.s, c.labels); err != nil {
			return err
		}
	}
	return nil
}

// hidden tells why Traefik does not see a service, "" if it does.
func (t *translator) hidden(labels []label) string {
	on := true
	for _, provider := range []string{"docker", "swarm"} {
		if v := t.root.get("providers", provider, "exposedByDefault"); v.is() && !v.on() {
			on = false
		}
	}
	why := "providers.docker.exposedByDefault is false, and the service has no traefik.enable=true"
	for _, l := range labels {
		if !strings.EqualFold(l.key, "traefik.enable") {
			continue
		}
		if v, err := strconv.ParseBool(l.value); err == nil {
			on, why = v, "traefik.enable is false, so Traefik does not see the service"
		}
	}
	if on {
		return ""
	}
	return why
}

// command reads flags such as --entryPoints.web.address=:80.
func (t *translator) command(name string, n *yaml.Node) error {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, arg := range n.Content {
		flag, value, given := strings.Cut(strings.TrimLeft(arg.Value, "-"), "=")
		first, _, _ := strings.Cut(strings.ToLower(flag), ".")
		switch first {
		case "entrypoints", "certificatesresolvers", "providers", "api", "log", "accesslog", "metrics", "ping", "global", "serverstransport":
		default:
			continue
		}
		if !given {
			value = "true"
		}
		if err := t.build.label(t.root, flag, value, name, arg.Line); err != nil {
			return err
		}
	}
	return nil
}

// label is a label of a service in either form of Compose.
type label struct {
	key, value string
	line       int
}

// labelsOf returns the labels of a list or a map, in their order.
func labelsOf(n *yaml.Node) (all []label) {
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			key, value, _ := strings.Cut(item.Value, "=")
			all = append(all, label{key, value, item.Line})
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			all = append(all, label{n.Content[i].Value, n.Content[i+1].Value, n.Content[i].Line})
		}
	}
	return all
}

// described is what the labels of one service describe.
type described struct {
	used     bool            // there is a label of a router, service or middleware
	services map[string]bool // as kind/name, in lower case
	routers  []string        // as kind.routers.name
}

// labels adds the labels of one service.
func (t *translator) labels(name, service string, s, labels *yaml.Node) error {
	d := described{services: map[string]bool{}}
	all := labelsOf(labels)
	if why := t.hidden(all); why != "" {
		for _, l := range all {
			if strings.HasPrefix(strings.ToLower(l.key), "traefik.") {
				t.Report.Add(importer.Entry{File: name, Line: l.line, Directive: service + ": " + shownLabel(l), Verdict: importer.Ignored, Note: why})
			}
		}
		return nil
	}
	for _, l := range all {
		if err := t.label(name, service, l, &d); err != nil {
			return err
		}
	}
	if !d.used {
		return nil
	}
	if len(d.services) == 0 { // Traefik makes a service of the container's name
		d.services["http/"+strings.ToLower(service)] = true
		t.build.count++
		t.root.below("http", name, s.Line).below("services", name, s.Line).below(service, name, s.Line).Settle()
	}
	port := firstPort(s)
	for id := range d.services {
		t.servers[id] = append(t.servers[id], fmt.Sprintf("%s:%s", service, port))
	}
	t.onlyService(name, s.Line, &d)
	return nil
}

// label adds one label, or says why there is nothing to add.
func (t *translator) label(name, service string, l label, d *described) error {
	key, ok := strings.CutPrefix(strings.ToLower(l.key), "traefik.")
	if !ok {
		return nil
	}
	rest := l.key[len("traefik."):]
	at := importer.Entry{File: name, Line: l.line, Directive: service + ": " + l.key + "=" + l.value, Verdict: importer.Same}
	switch key {
	case "enable":
		at.Note = "what is written is served"
		t.Report.Add(at)
		return nil
	case "docker.network", "swarm.network", "docker.lbswarm", "swarm.lbswarm":
		at.Verdict, at.Note = importer.Ignored, "servers are named by their service; headgate has to be in the same network"
		t.Report.Add(at)
		return nil
	}
	d.used = true
	if parts := strings.Split(rest, "."); len(parts) > 2 {
		switch strings.ToLower(parts[1]) {
		case "services":
			d.services[strings.ToLower(parts[0]+"/"+parts[2])] = true
		case "routers":
			d.routers = append(d.routers, strings.Join(parts[:3], "."))
		}
	}
	return t.build.label(t.root, rest, l.value, name, l.line)
}

// shownLabel is a label without what may be a secret.
func shownLabel(l label) string {
	if strings.Contains(strings.ToLower(l.key), "auth.") {
		return l.key
	}
	return l.key + "=" + l.value
}

// onlyService gives routers that name no service the only one that there is.
func (t *translator) onlyService(name string, line int, d *described) {
	if len(d.services) != 1 {
		return
	}
	for id := range d.services {
		_, only, _ := strings.Cut(id, "/")
		for _, path := range d.routers {
			r := t.root.get(strings.Split(path, ".")...)
			if !r.get("service").is() {
				r.below("service", name, line).value = only
				r.get("service").Settle()
			}
		}
	}
}

// firstPort is the port that a container says it listens on: by expose, else inside of
// its first ports. Without one it is 80.
func firstPort(s *yaml.Node) string {
	for _, name := range []string{"expose", "ports"} {
		if list := field(s, name); list != nil && list.Kind == yaml.SequenceNode && len(list.Content) > 0 {
			text := list.Content[0].Value
			if target := field(list.Content[0], "target"); target != nil {
				text = target.Value
			}
			text, _, _ = strings.Cut(text, "/")
			return text[strings.LastIndexByte(text, ':')+1:]
		}
	}
	return "80"
}
