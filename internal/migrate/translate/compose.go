package translate

import (
	"bytes"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/caddy"
	"headgate/internal/migrate/importer/compose"
	"headgate/internal/migrate/importer/traefik"
)

// composeFiles reads Compose files by the labels and variables that their services have.
func composeFiles(names []string, files importer.Files) ([]byte, *importer.Report, error) {
	project, err := compose.Read(names, files)
	if err != nil {
		return nil, nil, err
	}
	services := project.Services
	families := compose.Families(services)
	switch {
	case len(families) == 0:
		return nil, nil, misused("%s: no service has labels of Traefik or caddy-docker-proxy, or the variable VIRTUAL_HOST of nginx-proxy", strings.Join(names, ", "))
	case len(families) > 1:
		return nil, nil, misused("%s: the services have labels or variables of %s; one host would be served twice: take those of all but one out of a copy, and import that", strings.Join(names, ", "), strings.Join(families, " and "))
	case families[0] == compose.FamilyTraefik:
		return traefik.Import(names, files)
	}
	of := caddyLabels
	if families[0] == compose.FamilyNginxProxy {
		of = compose.NginxProxy
	}
	document, report, err := of(services, names)
	if err != nil {
		return nil, nil, err
	}
	before := report.Summary()
	project.AddTo(report)
	report.Finish(project.Files)
	return bytes.Replace(document, []byte(before), []byte(report.Summary()), 1), report, nil
}

// caddyLabels translates the Caddyfile that caddy-docker-proxy makes of labels.
func caddyLabels(services []*compose.Service, names []string) ([]byte, *importer.Report, error) {
	const name = "the labels of Caddy"
	var left []importer.Entry
	c := compose.CaddyfileOf(services, func(s *compose.Setting, why string) {
		left = append(left, importer.Entry{File: s.File, Line: s.Line, Directive: s.Text(), Verdict: importer.Impossible, Note: why})
	})
	document, report, err := caddy.Import([]string{name}, importer.Given(map[string][]byte{name: []byte(c.Text)}))
	if err != nil {
		return nil, nil, err
	}
	report.Source = "caddy-docker-proxy"
	c.Places(report)
	report.Entries = slices.Concat(report.Entries, left)
	report.Finish(names)
	return document, report, nil
}
