// Package compose reads Compose files whose services say by labels or variables how
// another proxy is to serve them: caddy-docker-proxy (caddy.go) and nginx-proxy with its
// ACME companion (nginxproxy.go). Labels of Traefik are read by importer/traefik.
//
// Read finds the services, Families tells whose labels there are.
package compose

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/cutover/importer"
)

// The bounds of what is read.
const (
	maxFile     = 16 << 20
	maxSettings = 200_000
)

// Setting is a label or a variable of a service.
type Setting struct {
	importer.Origin
	Service    string
	Key, Value string
}

// Text is the setting as the report shows it.
func (s *Setting) Text() string { return s.Service + ": " + s.Key + "=" + s.Value }

// Service is a service of a Compose file.
type Service struct {
	Name   string
	Labels []*Setting
	Env    []*Setting
	// Ports are those that its container listens on, as far as the file tells.
	Ports []string
}

// Read returns the services of Compose files, in their order.
func Read(names []string, files importer.Files) ([]*Service, error) {
	files = files.Bounded(maxFile, "more than a Compose file has")
	var out []*Service
	count := 0
	for _, name := range names {
		data, err := files.Read(name)
		if err != nil {
			return nil, err
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(doc.Content) == 0 {
			return nil, fmt.Errorf("%s: the file is empty", name)
		}
		services := field(doc.Content[0], "services")
		if services == nil || services.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s: there are no services, so it is no Compose file", name)
		}
		for i := 0; i+1 < len(services.Content); i += 2 {
			s := service(name, services.Content[i].Value, resolved(services.Content[i+1]))
			if count += len(s.Labels) + len(s.Env); count > maxSettings {
				return nil, fmt.Errorf("%s: more than %d labels and variables", name, maxSettings)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

func service(file, name string, n *yaml.Node) *Service {
	s := &Service{Name: name}
	labels := field(n, "labels")
	if deploy := field(field(n, "deploy"), "labels"); deploy != nil {
		labels = deploy
	}
	s.Labels = settings(file, name, labels)
	s.Env = settings(file, name, field(n, "environment"))
	for _, list := range []string{"expose", "ports"} {
		ports := field(n, list)
		if ports == nil || ports.Kind != yaml.SequenceNode {
			continue
		}
		for _, p := range ports.Content {
			text := p.Value
			if target := field(p, "target"); target != nil {
				text = target.Value
			}
			text, _, _ = strings.Cut(text, "/")
			if text = text[strings.LastIndexByte(text, ':')+1:]; text != "" && !slices.Contains(s.Ports, text) {
				s.Ports = append(s.Ports, text)
			}
		}
	}
	return s
}

// settings reads a list of KEY=VALUE, or a map.
func settings(file, service string, n *yaml.Node) (all []*Setting) {
	add := func(key, value string, line int) {
		all = append(all, &Setting{Origin: importer.Origin{File: file, Line: line}, Service: service, Key: key, Value: value})
	}
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			key, value, _ := strings.Cut(item.Value, "=")
			add(key, value, item.Line)
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Tag == "!!merge" {
				all = append(all, settings(file, service, resolved(n.Content[i+1]))...)
			} else {
				add(key.Value, resolved(n.Content[i+1]).Value, key.Line)
			}
		}
	}
	return all
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// field returns a field of a map, or of one that is merged into it.
func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch key := n.Content[i]; {
		case key.Value == name:
			return resolved(n.Content[i+1])
		case key.Tag == "!!merge":
			if from := resolved(n.Content[i+1]); from.Kind == yaml.MappingNode {
				for j := 0; j+1 < len(from.Content); j += 2 {
					if from.Content[j].Value == name {
						merged = resolved(from.Content[j+1])
					}
				}
			}
		}
	}
	return merged
}

// The families of labels and variables.
const (
	FamilyTraefik    = "traefik"
	FamilyCaddy      = "caddy"
	FamilyNginxProxy = "nginx-proxy"
)

// Families returns whose labels and variables the services have.
func Families(services []*Service) (all []string) {
	add := func(family string) {
		if !slices.Contains(all, family) {
			all = append(all, family)
		}
	}
	for _, s := range services {
		for _, l := range s.Labels {
			switch {
			case strings.HasPrefix(strings.ToLower(l.Key), "traefik."):
				add(FamilyTraefik)
			case isCaddy(l.Key):
				add(FamilyCaddy)
			}
		}
		for _, e := range s.Env {
			if e.Key == "VIRTUAL_HOST" || e.Key == "VIRTUAL_HOST_MULTIPORTS" {
				add(FamilyNginxProxy)
			}
		}
	}
	return all
}

// port is the port that requests go to: the one that is named, else the only one that the
// container has, else 80.
func (s *Service) port(named string) string {
	switch {
	case named != "":
		return named
	case len(s.Ports) == 1:
		return s.Ports[0]
	}
	return "80"
}
