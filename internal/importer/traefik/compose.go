package traefik

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/importer"
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
		if err := t.labels(name, key.Value, s, labels); err != nil {
			return err
		}
	}
	return nil
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

// labels adds the labels of one service.
func (t *translator) labels(name, service string, s, labels *yaml.Node) error {
	type label struct {
		key, value string
		line       int
	}
	var all []label
	switch {
	case labels == nil:
		return nil
	case labels.Kind == yaml.SequenceNode:
		for _, n := range labels.Content {
			key, value, _ := strings.Cut(n.Value, "=")
			all = append(all, label{key, value, n.Line})
		}
	case labels.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(labels.Content); i += 2 {
			all = append(all, label{labels.Content[i].Value, labels.Content[i+1].Value, labels.Content[i].Line})
		}
	}
	used, off := false, false
	own := map[string]bool{} // services that the labels describe
	var routers []string
	for _, l := range all {
		key, ok := strings.CutPrefix(strings.ToLower(l.key), "traefik.")
		if !ok {
			continue
		}
		rest := l.key[len("traefik."):]
		at := importer.Entry{File: name, Line: l.line, Directive: service + ": " + l.key + "=" + l.value, Verdict: importer.Same}
		switch key {
		case "enable":
			off = strings.EqualFold(l.value, "false")
			at.Note = "what is written is served"
			t.report.Add(at)
			continue
		case "docker.network", "swarm.network", "docker.lbswarm", "swarm.lbswarm":
			at.Verdict, at.Note = importer.Ignored, "servers are named by their service; headgate has to be in the same network"
			t.report.Add(at)
			continue
		}
		used = true
		if err := t.build.label(t.root, rest, l.value, name, l.line); err != nil {
			return err
		}
		parts := strings.Split(rest, ".")
		if len(parts) > 2 && strings.EqualFold(parts[1], "services") {
			own[strings.ToLower(parts[0]+"/"+parts[2])] = true
		}
		if len(parts) > 2 && strings.EqualFold(parts[1], "routers") {
			routers = append(routers, parts[0]+"."+parts[1]+"."+parts[2])
		}
	}
	if off || !used {
		return nil
	}
	if len(own) == 0 { // Traefik makes a service of the container's name
		own["http/"+strings.ToLower(service)] = true
		t.build.count++
		t.root.below("http", name, s.Line).below("services", name, s.Line).below(service, name, s.Line).done = true
	}
	port := firstPort(s)
	for id := range own {
		t.servers[id] = append(t.servers[id], fmt.Sprintf("%s:%s", service, port))
	}
	if len(own) == 1 {
		for id := range own {
			_, only, _ := strings.Cut(id, "/")
			for _, path := range routers {
				r := t.root.get(strings.Split(path, ".")...)
				if !r.get("service").is() {
					r.below("service", name, s.Line).value = only
					r.get("service").done = true
				}
			}
		}
	}
	return nil
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
