// Package compose reads Compose files whose services say by labels or variables how
// another proxy is to serve them: caddy-docker-proxy (caddy.go) and nginx-proxy with its
// ACME companion (nginxproxy.go). Labels of
// Traefik are translated by importer/traefik, which finds the services by Read, too.
//
// Read finds the services with what their files include, extend and fill in (read.go,
// fill.go); Families returns whose labels there are.
package compose

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// Setting is a label or a variable of a service, or an argument of its command.
type Setting struct {
	importer.Origin
	Service    string
	Key, Value string
}

// Text is the setting as the report shows it.
func (s *Setting) Text() string { return s.Service + ": " + s.Key + "=" + s.Value }

// Service is a service of a Compose file, with what it extends and includes.
type Service struct {
	Name string
	// Origin is where it is defined.
	importer.Origin
	Labels []*Setting
	// Deploy are the labels of a service in a swarm, which its containers do not have.
	Deploy []*Setting
	Env    []*Setting
	// Command are the arguments that its container is started with; they have a Key
	// alone.
	Command []*Setting
	// Ports are those that its container listens on, as far as the file shows.
	Ports []string
}

// AllLabels are the labels of the service: those of its containers, and those that only
// the service of a swarm has. Where both have a label, that of the swarm counts.
func (s *Service) AllLabels() []*Setting { return with(s.Labels, s.Deploy) }

// Project is what Compose files say.
type Project struct {
	Services []*Service
	// Entries are the verdicts of what the files say besides of services, such as what
	// they include.
	Entries []importer.Entry
	// Check is what a person should look at.
	Check []string
	// Files are those that were read, in their order.
	Files []string

	env map[string]map[string]string // variables by files .env
}

// AddTo adds to a report what the files say besides of services. The report is to be
// finished behind it.
func (p *Project) AddTo(r *importer.Report) {
	r.Entries = append(r.Entries, p.Entries...)
	r.Check = append(r.Check, p.Check...)
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
		for _, l := range s.AllLabels() {
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
