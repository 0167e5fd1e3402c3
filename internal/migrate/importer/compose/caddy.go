package compose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// caddyKey is a label of caddy-docker-proxy: caddy, or caddy_1 for another site.
var caddyKey = regexp.MustCompile(`^caddy(?:_\d+)?(?:\.|$)`)

func isCaddy(key string) bool { return caddyKey.MatchString(key) }

// Caddyfile is what caddy-docker-proxy makes of labels.
type Caddyfile struct {
	Text string
	// From has for each line of the text the label that it was made of.
	From []*Setting
}

// line is a directive with what its labels say below it.
type line struct {
	name, value string
	order       int
	from        *Setting
	inner       []*line
}

// order is the number before a name: 1_respond comes before 2_respond.
var order = regexp.MustCompile(`^(\d+)_(.+)$`)

func (l *line) below(segment string, from *Setting) *line {
	i := slices.IndexFunc(l.inner, func(c *line) bool { return c.name == segment })
	if i < 0 {
		l.inner = append(l.inner, &line{name: segment, from: from, order: 1 << 30})
		i = len(l.inner) - 1
		if m := order.FindStringSubmatch(segment); m != nil {
			l.inner[i].order, _ = strconv.Atoi(m[1])
		}
	}
	return l.inner[i]
}

// maxSegments bounds how deep a label reaches.
const maxSegments = 32

// CaddyfileOf makes the Caddyfile of labels. Of a template only upstreams is known; with
// another one the label is left out, and say is called with the reason.
func CaddyfileOf(services []*Service, say func(*Setting, string)) Caddyfile {
	var sites []*line
	for _, s := range services {
		own := &line{}
		for _, l := range s.AllLabels() {
			if !isCaddy(l.Key) {
				continue
			}
			value, problem := s.evaluate(l.Value)
			parts := strings.Split(l.Key, ".")
			if problem == "" && len(parts) > maxSegments {
				problem = "the label is nested too deep"
			}
			if problem != "" || strings.ContainsAny(l.Key, "\n{}\" ") {
				say(l, cmp.Or(problem, "the key of the label cannot be read"))
				continue
			}
			at := own
			for _, part := range parts {
				at = at.below(part, l)
			}
			at.value, at.from = value, l
		}
		sites = append(sites, own.inner...)
	}
	var c Caddyfile
	c.write(join(sites), 0)
	return c
}

// join puts what several services say of one site into one: each adds its servers.
func join(sites []*line) (out []*line) {
	slices.SortStableFunc(sites, func(a, b *line) int { // options for all come first
		return cmp.Compare(min(len(a.value), 1), min(len(b.value), 1))
	})
	for _, s := range sites {
		i := slices.IndexFunc(out, func(o *line) bool { return o.value == s.value })
		if i < 0 {
			out = append(out, s)
			continue
		}
		for _, c := range s.inner {
			same := slices.IndexFunc(out[i].inner, func(o *line) bool { return o.name == c.name })
			if same >= 0 && strings.HasSuffix(c.name, "reverse_proxy") && len(c.inner) == 0 {
				out[i].inner[same].value += " " + c.value
			} else {
				out[i].inner = append(out[i].inner, c)
			}
		}
	}
	return out
}

func (c *Caddyfile) write(list []*line, depth int) {
	if depth > 0 {
		slices.SortStableFunc(list, func(a, b *line) int { return cmp.Compare(a.order, b.order) })
	}
	for _, l := range list {
		text := l.value
		if depth > 0 {
			name := l.name
			if m := order.FindStringSubmatch(name); m != nil {
				name = m[2]
			}
			text = strings.TrimSpace(name + " " + l.value)
		}
		if len(l.inner) == 0 && depth > 0 {
			c.add(depth, text, l.from)
			continue
		}
		c.add(depth, strings.TrimSpace(text+" {"), l.from)
		c.write(l.inner, depth+1)
		c.add(depth, "}", l.from)
	}
}

func (c *Caddyfile) add(depth int, text string, from *Setting) {
	for one := range strings.SplitSeq(text, "\n") { // a value may have several lines
		c.Text += strings.Repeat("\t", depth) + one + "\n"
		c.From = append(c.From, from)
	}
}

var template = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)

// evaluate puts servers in the place of {{upstreams}}, {{upstreams 8080}} and
// {{upstreams https 8443}}.
func (s *Service) evaluate(value string) (text, problem string) {
	text = template.ReplaceAllStringFunc(value, func(found string) string {
		words := strings.Fields(template.FindStringSubmatch(found)[1])
		if len(words) == 0 || words[0] != "upstreams" || len(words) > 3 {
			problem = "the template " + found + " is not known; upstreams is"
			return ""
		}
		scheme, port := "", ""
		for _, w := range words[1:] {
			if _, err := strconv.ParseUint(w, 10, 16); err == nil {
				port = w
			} else {
				scheme = w + "://"
			}
		}
		return fmt.Sprintf("%s%s:%s", scheme, s.Name, s.port(port))
	})
	return text, problem
}

// Places gives the entries of a report the places and texts of the labels that the lines
// of the Caddyfile were made of.
func (c *Caddyfile) Places(r *importer.Report) {
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Line >= 1 && e.Line <= len(c.From) {
			from := c.From[e.Line-1]
			e.File, e.Line, e.Directive = from.File, from.Line, from.Service+": "+from.Key+" ("+e.Directive+")"
		}
	}
}
