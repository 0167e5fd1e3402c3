package traefik

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/compose"
)

// field returns a field of a map.
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

// readComposed finds the services of the Compose files, and reads the flags and variables
// of Traefik's own service, which are static configuration. Whether the labels of a
// service count is known when all files are read.
func (t *translator) readComposed(files importer.Files) (err error) {
	if len(t.composeFiles) == 0 {
		return nil
	}
	if t.project, err = compose.Read(t.composeFiles, files); err != nil {
		return err
	}
	for _, s := range t.project.Services {
		if err := t.command(s); err != nil {
			return err
		}
	}
	return nil
}

// readLabels adds the labels of all services to the tree.
func (t *translator) readLabels() error {
	if t.project == nil {
		return nil
	}
	for _, s := range t.project.Services {
		if err := t.labels(s); err != nil {
			return err
		}
	}
	return nil
}

// seen are the labels of a service that Traefik reads: in a swarm those of the service,
// else those of its containers.
func (t *translator) seen(s *compose.Service) []*compose.Setting {
	if !isTraefik(s.Deploy) {
		return s.Labels
	}
	swarm := t.root.get("providers", "swarm").is() || t.root.get("providers", "docker", "swarmMode").on()
	if swarm || !isTraefik(s.Labels) {
		return s.AllLabels()
	}
	t.ignored(s.Name, s.Deploy, "labels below deploy are those of a swarm, and Traefik has the provider docker")
	return s.Labels
}

func isTraefik(labels []*compose.Setting) bool {
	return slices.ContainsFunc(labels, func(l *compose.Setting) bool { return strings.HasPrefix(strings.ToLower(l.Key), "traefik.") })
}

// ignored reports labels that Traefik does not see.
func (t *translator) ignored(service string, labels []*compose.Setting, why string) {
	for _, l := range labels {
		if strings.HasPrefix(strings.ToLower(l.Key), "traefik.") {
			t.Report.Add(importer.Entry{File: l.File, Line: l.Line, Directive: service + ": " + shownLabel(l), Verdict: importer.Ignored, Note: why})
		}
	}
}

// hidden returns why Traefik does not see a service, "" if it does.
func (t *translator) hidden(labels []*compose.Setting) string {
	on := true
	for _, provider := range []string{"docker", "swarm"} {
		if v := t.root.get("providers", provider, "exposedByDefault"); v.is() && !v.on() {
			on = false
		}
	}
	why := "providers.docker.exposedByDefault is false, and the service has no traefik.enable=true"
	for _, l := range labels {
		if !strings.EqualFold(l.Key, "traefik.enable") {
			continue
		}
		if v, err := strconv.ParseBool(l.Value); err == nil {
			on, why = v, "traefik.enable is false, so Traefik does not see the service"
		}
	}
	if on {
		return ""
	}
	return why
}

// command reads flags such as --entryPoints.web.address=:80, and variables such as
// TRAEFIK_ENTRYPOINTS_WEB_ADDRESS.
func (t *translator) command(s *compose.Service) error {
	for _, e := range s.Env {
		if name, ok := strings.CutPrefix(e.Key, "TRAEFIK_"); ok && isStatic(strings.ReplaceAll(name, "_", ".")) {
			if err := t.build.label(t.root, strings.ReplaceAll(strings.ToLower(name), "_", "."), e.Value, e.File, e.Line); err != nil {
				return err
			}
		}
	}
	for _, arg := range s.Command {
		flag, value, given := strings.Cut(strings.TrimLeft(arg.Key, "-"), "=")
		if !isStatic(flag) {
			continue
		}
		if !given {
			value = "true"
		}
		if err := t.build.label(t.root, flag, value, arg.File, arg.Line); err != nil {
			return err
		}
	}
	return nil
}

// isStatic reports whether a flag is one of Traefik's static configuration.
func isStatic(flag string) bool {
	first, _, _ := strings.Cut(strings.ToLower(flag), ".")
	switch first {
	case "entrypoints", "certificatesresolvers", "providers", "api", "log", "accesslog", "metrics", "ping", "global", "serverstransport":
		return true
	}
	return false
}

// described is what the labels of one service describe.
type described struct {
	used     bool            // there is a label of a router, service or middleware
	services map[string]bool // as kind/name, in lower case
	routers  []string        // as kind.routers.name
}

// labels adds the labels of one service.
func (t *translator) labels(s *compose.Service) error {
	d := described{services: map[string]bool{}}
	all := t.seen(s)
	if why := t.hidden(all); why != "" {
		t.ignored(s.Name, all, why)
		return nil
	}
	for _, l := range all {
		if err := t.label(s.Name, l, &d); err != nil {
			return err
		}
	}
	if !d.used {
		return nil
	}
	if len(d.services) == 0 { // Traefik makes a service of the container's name
		d.services["http/"+strings.ToLower(s.Name)] = true
		t.build.count++
		t.root.below("http", s.File, s.Line).below("services", s.File, s.Line).below(s.Name, s.File, s.Line).Skip()
	}
	port := "80"
	if len(s.Ports) > 0 {
		port = s.Ports[0]
	}
	for id := range d.services {
		t.servers[id] = append(t.servers[id], fmt.Sprintf("%s:%s", s.Name, port))
	}
	t.onlyService(s.File, s.Line, &d)
	return nil
}

// plainLabel is a label that is no part of the tree.
type plainLabel struct {
	importer.Origin
	text string
}

func (l *plainLabel) Text() string { return l.text }

// label adds one label, or says why there is nothing to add.
func (t *translator) label(service string, l *compose.Setting, d *described) error {
	key, ok := strings.CutPrefix(strings.ToLower(l.Key), "traefik.")
	if !ok {
		return nil
	}
	rest := l.Key[len("traefik."):]
	at := &plainLabel{importer.Origin{File: l.File, Line: l.Line}, service + ": " + l.Key + "=" + l.Value}
	switch key {
	case "enable":
		t.Became(at, importer.Same, importer.ByItself(), "what is written is served")
		return nil
	case "docker.network", "swarm.network", "docker.lbswarm", "swarm.lbswarm":
		t.AddVerdict(at, importer.Ignored, "servers are named by their service; headgate has to be in the same network")
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
	return t.build.label(t.root, rest, l.Value, l.File, l.Line)
}

// shownLabel is a label without what may be a secret.
func shownLabel(l *compose.Setting) string {
	if strings.Contains(strings.ToLower(l.Key), "auth.") {
		return l.Key
	}
	return l.Key + "=" + l.Value
}

// onlyService assigns the only service to routers that name none.
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
				r.get("service").Skip()
			}
		}
	}
}
