package nginx

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// mapping is a block map.
type mapping struct {
	d         *directive
	source    string
	exact     []*directive
	expr      []*directive
	otherwise *directive
	hostnames bool
	notes     []string // where its answers differ
}

// maxMapEntries bounds the map whose entries become routes.
const maxMapEntries = 2000

// mapBlock reads a map.
func (t *translator) mapBlock(d *directive) {
	m := &mapping{d: d, source: d.arg(0)}
	for _, e := range d.block {
		switch {
		case e.name == "hostnames" && len(e.args) == 0:
			m.hostnames = true
		case e.name == "volatile" && len(e.args) == 0:
		case e.name == "default":
			m.otherwise = e
		case e.name == "include":
		case strings.HasPrefix(e.name, "~"):
			m.expr = append(m.expr, e)
		default:
			m.exact = append(m.exact, e)
		}
	}
	if len(m.expr) == 0 { // conditions on all others are not needed
		m.exact = slices.DeleteFunc(m.exact, func(e *directive) bool { return m.otherwise != nil && e.arg(0) == m.otherwise.arg(0) })
	}
	t.maps[strings.TrimPrefix(d.arg(1), "$")] = m
}

// mapped returns the value of a map in the view.
func (v *view) mapped(m *mapping) (value string, ok bool) {
	if v.depth++; v.depth > maxDepth || len(m.exact)+len(m.expr) > maxMapEntries {
		return "", false
	}
	defer func() { v.depth-- }()
	s := v.source(m)
	for _, e := range slices.Concat(m.exact, m.expr) {
		c, groups := m.entry(s, e)
		if c.Problem != "" {
			return "", false
		}
		if !c.Within(v.region) {
			continue
		}
		return v.entryValue(e, groups), true
	}
	if m.otherwise == nil {
		return "", true
	}
	return v.entryValue(m.otherwise, nil), true
}

func (v *view) entryValue(e *directive, groups map[string]string) string {
	inner := *v
	inner.vars = map[string]string{}
	for name, value := range v.vars {
		inner.vars[name] = value
	}
	for name, value := range groups {
		inner.vars[name] = value
	}
	return inner.expand(e.arg(0))
}

// source is what a map compares.
func (v *view) source(m *mapping) subject {
	name, one := strings.CutPrefix(m.source, "$")
	if name = strings.Trim(name, "{}"); one && !strings.ContainsAny(name, "$ :/.") {
		return v.subject(name)
	}
	parts, why := v.partsOf(m.source)
	if why != "" {
		return subject{why: why}
	}
	text := ""
	for _, s := range parts {
		if !s.constant {
			return subject{parts: parts}
		}
		text += s.value
	}
	return constant(text)
}

// entry is when a line of a map holds.
func (m *mapping) entry(s subject, e *directive) (rules.Condition, map[string]string) {
	key := strings.TrimPrefix(e.name, `\`)
	switch {
	case strings.HasPrefix(e.name, "~*"):
		return s.compare("~*", e.name[2:])
	case strings.HasPrefix(e.name, "~"):
		return s.compare("~", e.name[1:])
	case m.hostnames && strings.ContainsAny(key[:min(1, len(key))]+key[max(0, len(key)-1):], "*."):
		return s.compare("~*", hostPattern(key))
	}
	return s.compare("fold", key)
}

// hostPattern makes an expression of a name with a wildcard: *.example.com,
// .example.com or www.example.*.
func hostPattern(name string) string {
	switch {
	case strings.HasPrefix(name, "*."):
		return `^.+` + regexp.QuoteMeta(name[1:]) + "$"
	case strings.HasPrefix(name, "."):
		return `^(.+\.)?` + regexp.QuoteMeta(name[1:]) + "$"
	case strings.HasSuffix(name, ".*"):
		return "^" + regexp.QuoteMeta(name[:len(name)-1]) + ".+$"
	}
	return "^" + regexp.QuoteMeta(name) + "$"
}

// sayMaps reports for each map whether it was used.
func (t *translator) sayMaps() {
	for name, m := range t.maps {
		if t.usedMaps[name] {
			verdict := importer.Same
			if len(m.notes) > 0 {
				verdict = importer.Close
			}
			t.Became(m.d, verdict, importer.Through(t.users(name)...), "%s", strings.Join(append([]string{"its values are written where the variable is used"}, m.notes...), "; "))
			for _, e := range m.d.block {
				t.Became(e, importer.Same, importer.Through(m.d), "")
			}
			continue
		}
		if isUpgradeMap(m.d) {
			t.Became(m.d, importer.Same, importer.ByItself(), "upgrades such as WebSocket are passed on by themselves")
			for _, e := range m.d.block {
				t.Became(e, importer.Same, importer.ByItself(), "")
			}
			continue
		}
		t.AddVerdict(m.d, importer.Ignored, "nothing that was translated uses the variable")
		for _, e := range m.d.block {
			t.AddVerdict(e, importer.Ignored, "nothing that was translated uses the variable")
		}
	}
}

// isUpgradeMap reports whether a map does nothing but set Connection for upgrades.
func isUpgradeMap(d *directive) bool {
	return d.arg(0) == "$http_upgrade" && len(d.block) <= 3
}

// gather collects the conditions of a block, so that every region of it can be
// evaluated.
func (v *view) gather(block []*directive, add func(*rules.Atom)) {
	for _, d := range block {
		switch d.name {
		case "location":
			continue
		case "if":
			if c, _ := v.condition(d); c.Problem == "" {
				c.Atoms(add)
			}
			v.gatherText(strings.Join(d.args, " "), add)
			v.gather(d.block, add)
			continue
		case "limit_except":
			exceptMethods(d).Atoms(add)
			continue
		case "proxy_set_header":
			if h := strings.ToLower(d.arg(0)); h == "connection" || h == "upgrade" {
				continue
			}
		case "proxy_pass", "grpc_pass", "return", "set", "add_header", "rewrite":
		case "proxy_cache_bypass", "proxy_no_cache":
			for _, a := range d.args {
				v.present(a).Atoms(add)
			}
			continue
		default:
			continue
		}
		v.gatherText(strings.Join(d.args, " "), add)
	}
}

// present tests whether a text of variables is neither empty nor 0.
func (v *view) present(text string) rules.Condition {
	name, ok := strings.CutPrefix(text, "$")
	if !ok {
		return rules.Condition{}
	}
	c, _ := v.subject(strings.Trim(name, "{}")).compare("", "")
	return c
}

var variable = regexp.MustCompile(`\$\{?([A-Za-z0-9_]+)`)

// gatherText collects the conditions of the maps of a text.
func (v *view) gatherText(text string, add func(*rules.Atom)) {
	for _, found := range variable.FindAllStringSubmatch(text, -1) {
		m := v.t.maps[found[1]]
		if m == nil || len(m.exact)+len(m.expr) > maxMapEntries {
			continue
		}
		v.t.usedMaps[found[1]] = true
		if v.depth++; v.depth > maxDepth {
			v.depth--
			continue
		}
		v.gathering = true
		s := v.source(m)
		v.gathering = false
		for _, e := range slices.Concat(m.exact, m.expr) {
			if c, _ := m.entry(s, e); c.Problem == "" {
				c.Atoms(add)
				for _, n := range c.Notes {
					if !slices.Contains(m.notes, n) {
						m.notes = append(m.notes, n)
					}
				}
			}
			v.gatherText(e.arg(0), add)
		}
		if m.otherwise != nil {
			v.gatherText(m.otherwise.arg(0), add)
		}
		v.gatherText(m.source, add)
		v.depth--
	}
}
