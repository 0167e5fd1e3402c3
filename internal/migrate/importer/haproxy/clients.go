package haproxy

import (
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// denied are the clients that the lines tcp-request of a section reject by their
// address. Rules of connections, sessions and contents are asked one after the other:
// who is accepted by one of them may still be rejected by the next.
type denied struct {
	networks []netip.Prefix
	lines    []*directive // that are about addresses
}

// maxNetworks bounds the networks of a filter.
const maxNetworks = 5000

// rejected reads the lines tcp-request of a section.
func (t *translator) rejected(s *section, acls map[string]condition) (out denied) {
	lines := s.own("tcp-request")
	for _, phase := range []string{"connection", "session", "content"} {
		open := importer.AllAddresses() // no line has decided about them
		for i, d := range lines {
			action := d.arg(1)
			if d.arg(0) != phase || action != "accept" && action != "reject" && action != "silent-drop" {
				continue
			}
			_, c := t.splitIf(s, d, acls)
			who, what := clientsOf(c)
			switch {
			case what != "" && action == "accept" && aboutProtocol(d):
				// Such lines wait for TLS or HTTP, which all connections of the port speak.
				t.Say(d, importer.Ignored, "a port that passes names on waits for them by itself")
				if len(c.Any) == 0 && !slices.ContainsFunc(lines[i+1:], func(o *directive) bool { return o.arg(0) == phase && !decidesAll(o) }) {
					open = nil
				}
				continue
			case what != "":
				t.Say(d, importer.Impossible, "%s", what)
				t.Check("%s:%d: %s could not be taken over, and what it protects is open: ip_filter says who may connect, by address", d.File, d.Line, d.Text())
				continue
			}
			out.lines = append(out.lines, d)
			rest := importer.Without(open, who)
			if action != "accept" {
				out.networks = append(out.networks, importer.Without(open, rest)...)
			}
			if open = rest; len(open)+len(out.networks) > maxNetworks {
				t.Check("%s:%d: the lines tcp-request stand for more than %d networks: write ip_filter by hand", d.File, d.Line, maxNetworks)
				return denied{}
			}
		}
	}
	return out
}

// decidesAll reports whether a line rejects whatever no line before it has accepted.
func decidesAll(d *directive) bool { return d.arg(1) == "reject" && len(d.words) == 3 }

// aboutProtocol reports whether a condition only asks whether a client speaks TLS or HTTP.
func aboutProtocol(d *directive) bool {
	return slices.ContainsFunc(d.words, func(w string) bool {
		return w == "HTTP" || strings.Contains(w, "ssl_hello_type") || strings.Contains(w, "proto_http") || strings.Contains(w, "ssl_sni") && slices.Contains(d.words, "found")
	})
}

// clientsOf are the networks of a condition that asks for addresses of clients alone.
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
			p, err := netip.ParsePrefix(l.Value)
			if err != nil {
				return nil, "not an address or network"
			}
			rest := importer.Without(those, []netip.Prefix{p})
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
// It has whichever list is the shorter one.
func (d denied) filter() importer.Object {
	if len(d.networks) == 0 {
		return importer.Object{}
	}
	allowed := importer.Without(importer.AllAddresses(), d.networks)
	switch {
	case len(allowed) == 0:
		return importer.NewObject().Set("deny", importer.Networks(importer.AllAddresses())).Flow()
	case len(allowed) < len(d.networks):
		return importer.NewObject().Set("allow", importer.Networks(allowed)).Flow()
	}
	return importer.NewObject().Set("deny", importer.Networks(d.networks)).Flow()
}

// say gives the lines their verdicts, for the object that has the filter.
func (d denied) say(t *translator, o importer.Object, note string) {
	became := importer.ByItself() // they let all clients in
	if len(d.networks) > 0 {
		became = o.Field("ip_filter")
	}
	for _, line := range d.lines {
		t.Became(line, verdictOf(note), became, "%s", strings.TrimPrefix("ip_filter; "+note, "; "))
	}
}
