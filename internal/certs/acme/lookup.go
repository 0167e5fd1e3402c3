package acme

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// The bounds of look-ups.
const (
	lookupTimeout = 4 * time.Second // for each name server
	maxLinks      = 8               // of CNAME records that are followed
	maxServers    = 8               // that are queried for one zone
)

// lookup sends DNS queries. It is created for one step of an order and has no cache.
type lookup struct {
	// servers are queried in order; they are the system's if the entry has none.
	servers []string
	// named means that the entry has name servers.
	named bool
	// port is the port of authoritative servers.
	port string
}

// systemServers is where the system keeps its name servers.
const systemServers = "/etc/resolv.conf"

func newLookup(resolvers []string) lookup {
	if len(resolvers) > 0 {
		return lookup{servers: resolvers, named: true, port: "53"}
	}
	l := lookup{port: "53"}
	if conf, err := dns.ClientConfigFromFile(systemServers); err == nil {
		for _, s := range conf.Servers {
			l.servers = append(l.servers, net.JoinHostPort(s, conf.Port))
		}
	}
	if len(l.servers) == 0 {
		l.servers = []string{"127.0.0.1:53"}
	}
	return l
}

// errNoName means that a name does not exist.
var errNoName = errors.New("the name does not exist")

// query sends a query to the servers in order until one responds. The error wraps
func (l lookup) query(ctx context.Context, name string, kind uint16) (*dns.Msg, error) {
	var last error
	for _, server := range l.servers {
		m, err := exchange(ctx, server, name, kind, true)
		switch {
		case err != nil:
			last = err
		case m.Rcode == dns.RcodeSuccess:
			return m, nil
		case m.Rcode == dns.RcodeNameError:
			return m, fmt.Errorf("%s: %w", name, errNoName)
		default:
			last = fmt.Errorf("%s: name server %s answers %s", name, server, dns.RcodeToString[m.Rcode])
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, last
}

// exchange queries one server over UDP, and over TCP if the response is truncated.
func exchange(ctx context.Context, server, name string, kind uint16, recurse bool) (*dns.Msg, error) {
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), kind)
	q.RecursionDesired = recurse
	q.SetEdns0(1232, false)
	client := dns.Client{Net: "udp", Timeout: lookupTimeout}
	m, _, err := client.ExchangeContext(ctx, q, server)
	if err == nil && m.Truncated {
		client.Net = "tcp"
		m, _, err = client.ExchangeContext(ctx, q, server)
	}
	if err != nil {
		return nil, fmt.Errorf("ask name server %s for %s: %w", server, name, err)
	}
	return m, nil
}

// addresses returns the addresses of a host by version of IP. The error wraps
// errNoName when the host does not exist.
func (l lookup) addresses(ctx context.Context, host string) (v4, v6 []netip.Addr, err error) {
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		m, failed := l.query(ctx, host, kind)
		if failed != nil {
			err = failed
			continue
		}
		for _, rr := range m.Answer {
			switch r := rr.(type) {
			case *dns.A:
				if a, ok := netip.AddrFromSlice(r.A); ok {
					v4 = append(v4, a.Unmap())
				}
			case *dns.AAAA:
				if a, ok := netip.AddrFromSlice(r.AAAA); ok {
					v6 = append(v6, a)
				}
			}
		}
	}
	if len(v4)+len(v6) > 0 {
		err = nil
	}
	return v4, v6, err
}

// target follows the CNAME records of a name, for who has the records of dns-01
// written elsewhere. A name without any is its own target.
func (l lookup) target(ctx context.Context, name string) (string, error) {
	for range maxLinks {
		m, err := l.query(ctx, name, dns.TypeCNAME)
		if errors.Is(err, errNoName) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		next := ""
		for _, rr := range m.Answer {
			if c, ok := rr.(*dns.CNAME); ok && strings.EqualFold(strings.TrimSuffix(c.Hdr.Name, "."), name) {
				next = strings.TrimSuffix(c.Target, ".")
			}
		}
		if next == "" {
			return name, nil
		}
		name = strings.ToLower(next)
	}
	return "", fmt.Errorf("%s: more than %d CNAME records in a row", name, maxLinks)
}

// errNoZone means that a name is in no zone of the DNS.
var errNoZone = errors.New("no zone found in the DNS")

// zone returns the zone that holds a name: the closest ancestor with a SOA record. The error
// wraps errNoZone if there is none.
func (l lookup) zone(ctx context.Context, name string) (string, error) {
	for at := name; at != ""; {
		m, err := l.query(ctx, at, dns.TypeSOA)
		if err != nil && !errors.Is(err, errNoName) {
			return "", err
		}
		if m != nil {
			for _, rr := range slices.Concat(m.Answer, m.Ns) {
				if soa, ok := rr.(*dns.SOA); ok {
					if z := strings.ToLower(strings.TrimSuffix(soa.Hdr.Name, ".")); z != "" && dns.IsSubDomain(z, name) {
						return z, nil
					}
				}
			}
		}
		_, at, _ = strings.Cut(at, ".")
	}
	return "", fmt.Errorf("%s: %w", name, errNoZone)
}

// holders returns the servers to ask whether a record has spread: those that the
// entry names, else the authoritative ones of the zone.
func (l lookup) holders(ctx context.Context, zone string) ([]string, error) {
	if l.named {
		return l.servers, nil
	}
	m, err := l.query(ctx, zone, dns.TypeNS)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, rr := range m.Answer {
		ns, ok := rr.(*dns.NS)
		if !ok || len(out) >= maxServers {
			continue
		}
		v4, v6, err := l.addresses(ctx, ns.Ns)
		if err != nil {
			continue
		}
		if all := slices.Concat(v4, v6); len(all) > 0 {
			out = append(out, net.JoinHostPort(all[0].String(), l.port))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: none of its name servers can be found", zone)
	}
	return out, nil
}

// errNotSeen means that a server does not have the record yet.
var errNotSeen = errors.New("does not have it yet")

// everywhere returns nil if all holders of a zone have what seen looks for.
func (l lookup) everywhere(ctx context.Context, zone string, seen func(server string) (bool, error)) error {
	servers, err := l.holders(ctx, zone)
	if err != nil {
		return err
	}
	for _, server := range servers {
		there, err := seen(server)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("name server %s %w", server, errNotSeen)
		}
	}
	return nil
}

// seen reports whether a server has a TXT record with a value.
func (l lookup) seen(ctx context.Context, server, name, value string) (bool, error) {
	m, err := exchange(ctx, server, name, dns.TypeTXT, l.named)
	if err != nil {
		return false, err
	}
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return false, fmt.Errorf("name server %s answers %s", server, dns.RcodeToString[m.Rcode])
	}
	for _, rr := range m.Answer {
		if txt, ok := rr.(*dns.TXT); ok && strings.Join(txt.Txt, "") == value {
			return true, nil
		}
	}
	return false, nil
}

// caa returns the CAA records that hold for a host: those of the closest name above
// it that has any (RFC 8659, section 3), and whose they are.
func (l lookup) caa(ctx context.Context, host string) (records []*dns.CAA, owner string, err error) {
	for at := strings.TrimPrefix(host, "*."); strings.Contains(at, "."); {
		m, err := l.query(ctx, at, dns.TypeCAA)
		if err != nil && !errors.Is(err, errNoName) {
			return nil, "", err
		}
		if m != nil {
			for _, rr := range m.Answer {
				if r, ok := rr.(*dns.CAA); ok {
					records = append(records, r)
				}
			}
		}
		if len(records) > 0 {
			return records, at, nil
		}
		_, at, _ = strings.Cut(at, ".")
	}
	return nil, "", nil
}
