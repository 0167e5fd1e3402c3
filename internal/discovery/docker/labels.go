package docker

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/schema"
)

// prefix is the prefix of labels for headgate. Other labels are ignored.
const prefix = "headgate."

// Limits of the labels of one container that start with prefix. A container that
// exceeds them becomes an issue.
const (
	maxLabels = 500
	maxKey    = 512
	maxValue  = 64 << 10
)

// The labels of Docker that are read: who belongs together.
const (
	composeProject = "com.docker.compose.project"
	composeService = "com.docker.compose.service"
	composeOneOff  = "com.docker.compose.oneoff"
	swarmService   = "com.docker.swarm.service.name"
)

// kinds are the kinds of objects in full labels: headgate.http.NAME.FIELD.
var kinds = map[string]string{"http": "proxies", "tcp": "tcp_proxies", "udp": "udp_proxies"}

// shortLabels are the labels without a name, in the order of the reference.
var shortLabels = []string{"enable", "host", "path", "port", "scheme", "network", "ports", "acme"}

// serverWords are the fields of full labels that are about the container as a server of
// its object.
var serverWords = []string{"weight", "max_requests", "backup", "tls"}

// said is a value with its label; Label is "" for a default.
type said struct{ value, label string }

// ask contains the objects that the labels of one container define.
type ask struct {
	// container is the name of the container, which a rename changes.
	container string
	// any is whether there is a label of headgate at all.
	any bool
	// enable is "true", "false" or "" for not said.
	enable string
	// defaults hold for all objects that say nothing else.
	defaults target
	objects  []*wanted
	issues   []discovery.Issue
}

// target is what labels say about how a container is reached.
type target struct{ port, scheme, network, basePath said }

// wanted is an object that the labels of a container define.
type wanted struct {
	kind, name string
	// form is http, tcp or udp; "" of the labels without a name.
	form string
	// label is what made it an object.
	label string
	// fields are the object's, server those of the container as a server of it.
	fields, server []config.Label
	target         target
}

// keepOurs drops labels that are not used, to save memory.
func (c *container) keepOurs() {
	for key := range c.Labels {
		switch key {
		case composeProject, composeService, composeOneOff, swarmService:
		default:
			if !ours(key) {
				delete(c.Labels, key)
			}
		}
	}
}

// ours reports whether a label is for headgate.
func ours(key string) bool {
	return len(key) >= len(prefix) && strings.EqualFold(key[:len(prefix)], prefix)
}

// service returns what the replicas of a service have in common, "" for a container
// that is none; and how people call the service.
func (c *container) service() (id, name string) {
	if s := c.Labels[swarmService]; s != "" {
		return "swarm/" + s, s
	}
	p, s := c.Labels[composeProject], c.Labels[composeService]
	if p != "" && s != "" {
		return "compose/" + p + "/" + s, p + "-" + s
	}
	return "", ""
}

// read parses the labels of a container.
func (c *container) read() *ask {
	a := &ask{}
	labels := a.sorted(c)
	full := map[string]*wanted{}
	short := map[string]said{}
	for _, l := range labels {
		key, value := strings.ToLower(l.label)[len(prefix):], l.value
		kind, rest, dotted := strings.Cut(key, ".")
		switch {
		case kinds[kind] != "" && dotted:
			a.full(c, full, kind, rest, said{value, l.label})
		case slices.Contains(shortLabels, key):
			short[key] = said{value, l.label}
		default:
			a.addIssue(c, discovery.UnknownLabel, l.label, "unknown label", nearLabel(key))
		}
	}
	a.setEnable(c, short["enable"])
	a.defaults = target{port: short["port"], scheme: short["scheme"], network: short["network"]}
	a.short(c, short)
	for _, w := range a.objects {
		w.target.inherit(a.defaults)
	}
	return a
}

// sorted returns the labels of headgate in the order of their names, within bounds.
func (a *ask) sorted(c *container) []said {
	var out []said
	seen := map[string]string{}
	for key, value := range c.Labels {
		if !ours(key) {
			continue
		}
		a.any = true
		switch folded := strings.ToLower(key); {
		case len(key) > maxKey:
			a.addIssue(c, discovery.TooMany, oneLine(key)[:60]+"…", fmt.Sprintf("the name of the label has %d bytes, more than %d", len(key), maxKey), "shorten it")
		case len(value) > maxValue:
			a.addIssue(c, discovery.TooMany, key, fmt.Sprintf("the value has %d bytes, more than %d", len(value), maxValue), "shorten it")
		case seen[folded] != "":
			a.addIssue(c, discovery.BadValue, max(key, seen[folded]), "the label is there twice, in upper and lower case", "remove one of them")
		default:
			seen[folded] = key
			out = append(out, said{value, oneLine(key)})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].label < out[j].label })
	if len(out) > maxLabels {
		a.addIssue(c, discovery.TooMany, "", fmt.Sprintf("the container has more than %d labels of headgate", maxLabels), "leave out what is not needed")
		return nil
	}
	return out
}

// full reads a label of the form headgate.http.NAME.FIELD.
func (a *ask) full(c *container, all map[string]*wanted, kind, rest string, s said) {
	name, field, _ := strings.Cut(rest, ".")
	if name == "" || field == "" {
		a.addIssue(c, discovery.UnknownLabel, s.label, "the label names no field", fmt.Sprintf("write it as headgate.%s.NAME.FIELD, such as %s", kind, exampleOf(kind)))
		return
	}
	if !objectName.MatchString(name) {
		a.addIssue(c, discovery.BadValue, s.label, fmt.Sprintf("the name %s in the label contains an invalid character, or is too long", quoted(name)), "use letters, digits, hyphens and underscores, a letter or digit first")
		return
	}
	w := all[kind+"."+name]
	if w == nil {
		w = &wanted{kind: kinds[kind], form: kind, name: name, label: s.label}
		all[kind+"."+name] = w
		a.objects = append(a.objects, w)
	}
	w.set(kind, field, c, s)
}

// objectName is the form of the name in a full label.
var objectName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,127}$`)

// set notes what a label says of an object.
func (w *wanted) set(kind, field string, c *container, s said) {
	first, _, _ := strings.Cut(field, ".")
	l := config.Label{Path: field, Value: s.value, Container: c.name, Name: s.label}
	switch {
	case field == "port":
		w.target.port = s
	case field == "network":
		w.target.network = s
	case field == "scheme" && kind == "http":
		w.target.scheme = s
	case field == "base_path" && kind == "http":
		w.target.basePath = s
	case field == "ports" && kind == "tcp":
		// The port of headgate, as opposed to port, which is the container's.
		l.Path = "port"
		w.fields = append(w.fields, l)
	case slices.Contains(serverWords, first):
		w.server = append(w.server, l)
	default:
		w.fields = append(w.fields, l)
	}
}

// inherit adds missing settings from the container's short labels.
func (t *target) inherit(from target) {
	for _, p := range []struct{ own, from *said }{{&t.port, &from.port}, {&t.scheme, &from.scheme}, {&t.network, &from.network}} {
		if p.own.label == "" {
			*p.own = *p.from
		}
	}
}

// shortFields are the fields of a proxy that short labels mean.
var shortFields = []struct{ label, path string }{
	{"host", "virtual_hosts"}, {"path", "routes.0.path"}, {"ports", "ports"}, {"acme", "acme"},
}

// short makes the object of the labels without a name. It exists if a host is set, or
// if there is no other object: then the merge reports that the host is missing.
func (a *ask) short(c *container, short map[string]said) {
	if short["host"].label == "" && len(a.objects) > 0 {
		for _, name := range []string{"path", "ports", "acme"} {
			if s := short[name]; s.label != "" {
				a.addIssue(c, discovery.MisplacedLabels, s.label, "the label has no effect without headgate.host", fmt.Sprintf("write headgate.http.NAME.%s, or add headgate.host", fieldOf(name)))
			}
		}
		return
	}
	_, name := c.service()
	if name == "" {
		name = c.name
	}
	w := &wanted{kind: "proxies", name: name, label: short["host"].label}
	for _, f := range shortFields {
		if s := short[f.label]; s.label != "" {
			w.fields = append(w.fields, config.Label{Path: f.path, Value: s.value, Container: c.name, Name: s.label})
		}
	}
	a.objects = append(a.objects, w)
}

// fieldOf returns the field of a proxy that a short label means.
func fieldOf(short string) string {
	for _, f := range shortFields {
		if f.label == short {
			return f.path
		}
	}
	return short
}

// setEnable reads headgate.enable.
func (a *ask) setEnable(c *container, s said) {
	switch text := strings.ToLower(strings.TrimSpace(s.value)); {
	case s.label == "":
	case text == "true" || text == "false":
		a.enable = text
	default:
		a.enable = "false" // nothing is proxied by a mistake
		a.addIssue(c, discovery.BadValue, s.label, fmt.Sprintf("found %s, expected true or false", quoted(s.value)), "write true or false")
	}
}

// addIssue notes an issue of a label.
func (a *ask) addIssue(c *container, code discovery.Code, label, message, hint string) {
	a.issues = append(a.issues, discovery.Issue{Container: c.name, Label: oneLine(label), Code: code, Message: message, Hint: hint})
}

// nearLabel returns what may have been meant by a label that there is not.
func nearLabel(key string) string {
	first, rest, _ := strings.Cut(key, ".")
	if f := config.KindOf("proxies").Schema().Field(first); f != nil {
		return fmt.Sprintf("write headgate.http.NAME.%s, with a name for the service", oneLine(key))
	}
	if near := schema.Nearest(key, shortLabels); near != "" {
		return fmt.Sprintf("did you mean %q?", prefix+near)
	}
	if near := schema.Nearest(first, []string{"http", "tcp", "udp"}); near != "" && rest != "" {
		return fmt.Sprintf("did you mean %q?", prefix+near+"."+oneLine(rest))
	}
	return "known are headgate." + strings.Join(shortLabels, ", ") + " and headgate.http.NAME.FIELD, headgate.tcp.NAME.FIELD, headgate.udp.NAME.FIELD"
}

// exampleOf returns a label of a kind.
func exampleOf(kind string) string {
	switch kind {
	case "tcp":
		return "headgate.tcp.db.sni=db.example.com"
	case "udp":
		return "headgate.udp.dns.address=0.0.0.0:53"
	}
	return "headgate.http.shop.virtual_hosts=shop.example.com"
}
