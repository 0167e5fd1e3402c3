package haproxy

import (
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// denied are the clients that the lines tcp-request of a section reject by their
// address. Rules of connections, sessions and contents are evaluated one after the
// other: a client that one of them accepts may still be rejected by the next.
type denied struct {
	networks []netip.Prefix
	lines    []*directive // that are about addresses
}

// maxNetworks bounds the networks of a filter.
const maxNetworks = 100_000

// rejected reads the lines tcp-request of a section. spoken is the protocol of the ports
// that lead to it, "" if they pass on whatever a client sends.
func (t *translator) rejected(s *section, acls map[string]condition, spoken protocol) (out denied) {
	lines := s.rules("tcp-request")
	for _, phase := range []string{"connection", "session", "content"} {
		open := importer.AllAddresses() // no line has decided about them
		for i, d := range lines {
			action := d.arg(1)
			if d.arg(0) != phase || action != "accept" && action != "reject" && action != "silent-drop" {
				continue
			}
			if _, c := t.splitIf(s, d, acls); action != "accept" && bannedBy(c) != nil {
				t.bannedAtConnect(s, d, c)
				continue
			}
			who, what := t.decided(s, d, acls, spoken)
			protocols := askedProtocols(s, d).about()
			switch {
			case action == "accept" && (what != "" || protocols) && !slices.ContainsFunc(lines[i+1:], func(o *directive) bool { return o.arg(0) == phase && rejects(o) }):
				t.AddVerdict(d, importer.Ignored, "no line behind it rejects connections")
				continue
			case what != "":
				t.AddVerdict(d, importer.Impossible, "%s", what)
				lost := "what it protects is open"
				if action == "accept" {
					lost = "the lines behind it reject the clients that it accepts"
				}
				t.Check("%s:%d: %s could not be translated, and %s: ip_filter says who may connect, by address", d.File, d.Line, d.Text(), lost)
				continue
			case protocols && (action == "accept" || len(who) == 0):
				t.AddVerdict(d, importer.Ignored, "all connections of the port speak %s", spoken)
			}
			out.lines = append(out.lines, d)
			rest := importer.Without(open, who)
			if action != "accept" {
				out.networks = append(out.networks, importer.Without(open, rest)...)
			}
			if open = rest; len(open)+len(out.networks) > maxNetworks {
				t.Check("%s:%d: the lines tcp-request result in more than %d networks: write ip_filter by hand", d.File, d.Line, maxNetworks)
				return denied{}
			}
		}
	}
	return out
}

// bannedAtConnect makes a ban rule of a line that rejects the connections of clients for
// what a counter says of them.
func (t *translator) bannedAtConnect(s *section, d *directive, c condition) {
	what := "a ban rule is made of one condition: write each alternative on a line of its own"
	var name, note string
	if len(c.Any) == 1 {
		name, note, what = t.ban(s, d, c.Any[0], "reject")
	}
	if what != "" {
		t.AddVerdict(d, importer.Impossible, "%s", what)
		t.Check("%s:%d: %s could not be translated, and what it protects is open", d.File, d.Line, d.Text())
		return
	}
	t.Became(d, importer.Close, t.Bans.Field(name), "%s", note)
}

func rejects(d *directive) bool { return d.arg(1) == "reject" || d.arg(1) == "silent-drop" }

// decided are the networks that a line tcp-request decides about, or why they cannot be
// known.
func (t *translator) decided(s *section, d *directive, acls map[string]condition, spoken protocol) (who []netip.Prefix, what string) {
	asked := askedProtocols(s, d)
	if !asked.about() {
		_, c := t.splitIf(s, d, acls)
		return clientsOf(c)
	}
	always, never := asked.under(spoken)
	switch {
	case never:
		return nil, ""
	case !always:
		return nil, "the protocol of a client is not matched, beyond that of its port"
	case d.arg(1) == "accept" && len(s.find("tcp-request inspect-delay")) == 0:
		return nil, "without inspect-delay it is evaluated before the client has sent anything"
	}
	return importer.AllAddresses(), ""
}

// clientsOf are the networks of a condition on addresses of clients alone.
func clientsOf(c condition) (out []netip.Prefix, what string) {
	if c.Problem != "" {
		return nil, c.Problem
	}
	for _, list := range c.Any {
		those := importer.AllAddresses()
		for _, l := range list {
			if l.Kind != rules.Client {
				return nil, "a connection is let in by the address of the client alone"
			}
			rest := importer.Without(those, networksOf(l))
			if l.Not {
				those = rest
			} else {
				those = importer.Without(those, rest)
			}
		}
		out = append(out, importer.Without(those, out)...)
	}
	return out, ""
}

// filter returns the ip_filter that keeps clients out, the zero Object if all are let in.
func (d denied) filter() importer.Object {
	if len(d.networks) == 0 {
		return importer.Object{}
	}
	return importer.IPFilter(importer.Without(importer.AllAddresses(), d.networks))
}

// addVerdicts adds verdicts to the lines, for the object that has the filter.
func (d denied) addVerdicts(t *translator, o importer.Object, note string) {
	became := importer.ByItself() // they let all clients in
	if len(d.networks) > 0 {
		became = o.Field("ip_filter")
	}
	for _, line := range d.lines {
		t.Became(line, verdictOf(note), became, "%s", strings.TrimPrefix("ip_filter; "+note, "; "))
	}
}
