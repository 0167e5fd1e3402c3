package acme

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"headgate/internal/certs/ech"
	"headgate/internal/store"
)

// HTTPSRecord is the required content of the HTTPS records (RFC 9460) of a host, from which clients
// read its key of Encrypted Client Hello.
type HTTPSRecord struct {
	// Host is the host, or a wildcard. Name is the name of its HTTPS records.
	Host, Name string
	// PublicName is the name that clients show. It has all addresses of the host.
	PublicName string
	// Protocols are the ALPN names for a new record. An existing record keeps its own.
	Protocols []string
	// ECH is the ECHConfigList (RFC 9848).
	ECH []byte
	// Newer are later keys, which another machine may have published already: a record with
	// one of them is not changed. Older are previous keys: if a record has any other key, its
	// replacement is logged.
	Newer, Older [][]byte
	// TTL is the time to live of a new record, in seconds.
	TTL uint32
}

// PublishState is the state of HTTPS records in the DNS.
type PublishState string

// The states.
const (
	// Published records are in the DNS with the current key.
	Published PublishState = "published"
	// Waiting records are not in the DNS yet: they were written, or another machine is writing
	// them.
	Waiting PublishState = "waiting"
	// PublishFailed records could not be written.
	PublishFailed PublishState = "failed"
	// Skipped names cannot have the record.
	Skipped PublishState = "skipped"
)

// Publication is the result of an attempt to publish HTTPS records.
type Publication struct {
	// State is whether they are in the DNS.
	State PublishState
	// Why is the reason if they are not, in one line. Hint is what to do, or "".
	Why, Hint string
}

// writeTime limits the time to read and write records, and the wait for another machine that
// writes them.
const writeTime = 30 * time.Second

// httpsPlace is where HTTPS records are written.
type httpsPlace struct{ zone, host, name string }

// httpsEntry is an HTTPS record of a provider. An id identifies it in the provider's API.
type httpsEntry struct {
	id string
	rr *dns.HTTPS
}

// httpsWriter is a provider that writes HTTPS records. An error of the type unfit means that
// a name cannot have them.
type httpsWriter interface {
	// readHTTPS returns the HTTPS records of a name.
	readHTTPS(ctx context.Context, at httpsPlace) ([]httpsEntry, error)
	// writeHTTPS replaces the records that were read. An unchanged record is the same in have and
	// next; a changed one has the same index. If have is empty, next has one record.
	writeHTTPS(ctx context.Context, at httpsPlace, have, next []httpsEntry) error
}

// WritesHTTPS reports whether a provider can write HTTPS records.
func WritesHTTPS(provider string) bool { return providers[provider].https }

// HTTPSProviders returns the names of the providers that can write HTTPS records, in order.
func HTTPSProviders() []string {
	return slices.DeleteFunc(Providers(), func(name string) bool { return !WritesHTTPS(name) })
}

// unfit is why a name cannot have an HTTPS record.
type unfit string

// Error returns the reason.
func (u unfit) Error() string { return string(u) }

// The reasons that providers share.
const (
	// A record of a name below a wildcard turns the wildcard off for this name (RFC 4592, section
	// 2.2.1), so the host would no longer have an address.
	noOwnRecord unfit = "the host has no record of its own; an HTTPS record would hide the addresses that it has from a wildcard"
	aliasMode   unfit = "it has an HTTPS record in AliasMode, which points to another name"
	otherServer unfit = "its HTTPS records name other servers"
)

// hasAlias is the reason of a name with a CNAME record, which allows no other (RFC 1034,
// section 3.6.2).
func hasAlias(name, target string) unfit {
	return unfit(fmt.Sprintf("%s is a CNAME for %s; the record belongs to that name", name, target))
}

// errChanged means that another program changed the records at the same time.
var errChanged = errors.New("another program changed the records at the same time")

// PublishHTTPS writes the HTTPS records of a host through the DNS provider of an entry, unless the
// DNS has them already. In existing records, it replaces only the parameter ech. It removes no
// records. It may be called by several goroutines at once, for different names.
func (m *Manager) PublishHTTPS(ctx context.Context, e *Config, want *HTTPSRecord) Publication {
	s, err := newDNSSolver(m, e, newLookup(e.Resolvers))
	if err != nil {
		return publicationOf(err)
	}
	w, ok := s.provider.(httpsWriter)
	if !ok {
		return Publication{PublishFailed, e.DNS.Provider + " cannot write HTTPS records", "copy the record"}
	}
	p := &httpsPublisher{m: m, solver: s, writer: w, want: want}
	return p.publish(ctx)
}

// httpsPublisher publishes the records of one host.
type httpsPublisher struct {
	m      *Manager
	solver *dnsSolver
	writer httpsWriter
	want   *HTTPSRecord
	at     httpsPlace
}

func (p *httpsPublisher) publish(ctx context.Context) Publication {
	if err := p.locate(ctx); err != nil {
		return publicationOf(err)
	}
	if p.visible(ctx) == nil {
		return Publication{State: Published}
	}
	if err := p.write(ctx); err != nil {
		if !errors.As(err, new(unfit)) && !errors.As(err, new(*store.Held)) && !errors.As(err, new(*Trouble)) {
			err = &Trouble{Code: "dns_provider", Message: cut(fmt.Sprintf("%s: write the record %s: %v", p.solver.settings.Provider, p.at.name, err)), Hint: hintFor(err, p.solver.settings, p.at.zone)}
		}
		return publicationOf(err)
	}
	if err := p.visible(ctx); err != nil {
		return Publication{Waiting, cut(fmt.Sprintf("written, but not visible yet: %v", err)), ""}
	}
	return Publication{State: Published}
}

// publicationOf returns the publication that an error ends.
func publicationOf(err error) Publication {
	var u unfit
	var held *store.Held
	switch {
	case errors.As(err, &u):
		return Publication{Skipped, cut(string(u)), ""}
	case errors.As(err, &held):
		return Publication{Waiting, cut("another machine is writing it: " + held.By), ""}
	}
	t := troubleOf(err)
	return Publication{PublishFailed, t.Message, t.Hint}
}

// locate finds the zone, and excludes names that cannot have the record, and hosts that are not
// served here.
func (p *httpsPublisher) locate(ctx context.Context) error {
	host, zone := strings.ToLower(p.want.Host), strings.ToLower(strings.TrimSuffix(p.solver.settings.Zone, "."))
	p.at = httpsPlace{zone, host, strings.ToLower(p.want.Name)}
	if zone != "" && !dns.IsSubDomain(zone, host) {
		return unfit("the host is not in zone " + zone)
	}
	look := p.solver.look
	for _, name := range slices.Compact([]string{host, p.at.name}) {
		target, err := look.target(ctx, name)
		if err != nil {
			return lookupTrouble(name, err)
		}
		if target != name {
			return hasAlias(name, target)
		}
	}
	if err := p.served(ctx); err != nil || zone != "" {
		return err
	}
	found, err := look.zone(ctx, host)
	switch {
	case errors.Is(err, errNoZone):
		return unfit("the host is in no zone of the DNS")
	case err != nil:
		return lookupTrouble(host, err)
	}
	p.at.zone = found
	return nil
}

// served returns nil if all addresses of the host are those of the public name. At another
// server, such as during a migration, a client that uses the key could not connect.
func (p *httpsPublisher) served(ctx context.Context) error {
	known, err := p.addresses(ctx, p.want.PublicName)
	if err != nil {
		return err
	}
	found, err := p.addresses(ctx, p.at.host)
	if err != nil {
		return err
	}
	for _, a := range found {
		if !slices.Contains(known, a) {
			return unfit(fmt.Sprintf("the host has the address %s, which the public name %s does not have: if it belongs to another server, clients with the key could not connect there", a, p.want.PublicName))
		}
	}
	return nil
}

// addresses returns the addresses of a host, at least one.
func (p *httpsPublisher) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	v4, v6, err := p.solver.look.addresses(ctx, host)
	switch all := slices.Concat(v4, v6); {
	case len(all) > 0:
		return all, nil
	case err == nil || errors.Is(err, errNoName):
		return nil, unfit(host + " has no address in the DNS")
	}
	return nil, lookupTrouble(host, err)
}

// lookupTrouble is the trouble of a lookup that failed.
func lookupTrouble(name string, err error) *Trouble {
	return &Trouble{Code: "dns", Message: cut(fmt.Sprintf("look up %s: %v", name, err)), Hint: "check the zone's name servers, or name others under resolvers"}
}

// visible returns nil if every server that holds the zone has the records as they must be.
func (p *httpsPublisher) visible(ctx context.Context) error {
	look := p.solver.look
	return look.everywhere(ctx, p.at.zone, func(server string) (bool, error) {
		m, err := exchange(ctx, server, p.at.name, dns.TypeHTTPS, look.named)
		if err != nil {
			return false, err
		}
		have, err := httpsOf(m, p.at.name)
		if err != nil || len(have) == 0 {
			return false, err
		}
		_, changed, err := p.want.merge(have)
		return err == nil && !changed, nil
	})
}

// write brings the records of the provider up to date, while no other machine does.
func (p *httpsPublisher) write(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, writeTime)
	defer stop()
	if p.m.node != "" {
		held, release, err := p.m.leaseRecord(ctx, p.at.name)
		switch {
		case errors.As(err, new(*store.Held)):
			return err
		case err != nil:
			return storeTrouble(err)
		}
		defer release()
		ctx = held
	}
	have, err := p.writer.readHTTPS(ctx, p.at)
	if err != nil {
		return err
	}
	next, changed, err := p.want.merge(have)
	if err != nil || !changed {
		return err
	}
	if err := p.writer.writeHTTPS(ctx, p.at, have, next); err != nil {
		return err
	}
	for i, e := range have {
		if list := echOf(e.rr); next[i].rr != e.rr && len(list) > 0 && !holds(p.want.Older, list) {
			p.m.log.Warn("replaced a key in an HTTPS record that is not from this server; if another server serves the host, remove the host here; if several machines serve it, let them share their state",
				"record", p.at.name, "replaced_ech", base64.StdEncoding.EncodeToString(list))
		}
	}
	return nil
}

// holds reports whether a list is one of some.
func holds(lists [][]byte, list []byte) bool {
	return slices.ContainsFunc(lists, func(l []byte) bool { return bytes.Equal(l, list) })
}

// merge returns the records of a name with the key, and whether they differ. Of those that
// exist, only the parameter ech is replaced, where the server is the host itself. The error is
// unfit.
func (w *HTTPSRecord) merge(have []httpsEntry) (next []httpsEntry, changed bool, err error) {
	if len(have) == 0 {
		rr := &dns.HTTPS{SVCB: dns.SVCB{Hdr: httpsHeader(w.Name, w.TTL), Priority: 1, Target: ech.Target(w.Host, w.Name), Value: []dns.SVCBKeyValue{&dns.SVCBAlpn{Alpn: w.Protocols}}}}
		return []httpsEntry{{rr: withECH(rr, w.ECH)}}, true, nil
	}
	next = slices.Clone(have)
	own := 0
	for i, e := range have {
		if e.rr.Priority == 0 {
			return nil, false, aliasMode
		}
		if t := e.rr.Target; t != "." && !strings.EqualFold(t, dns.Fqdn(w.Name)) && !strings.EqualFold(t, dns.Fqdn(w.Host)) {
			continue
		}
		own++
		if list := echOf(e.rr); !bytes.Equal(list, w.ECH) && !holds(w.Newer, list) {
			next[i].rr = withECH(e.rr, w.ECH)
			changed = true
		}
	}
	if own == 0 {
		return nil, false, otherServer
	}
	return next, changed, nil
}

func httpsHeader(name string, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: dns.Fqdn(name), Rrtype: dns.TypeHTTPS, Class: dns.ClassINET, Ttl: ttl}
}

// echOf returns the ECHConfigList of a record, nil if it has none.
func echOf(rr *dns.HTTPS) []byte {
	for _, v := range rr.Value {
		if e, ok := v.(*dns.SVCBECHConfig); ok {
			return e.ECH
		}
	}
	return nil
}

// withECH returns a copy of a record with another ECHConfigList.
func withECH(rr *dns.HTTPS, list []byte) *dns.HTTPS {
	out := dns.Copy(rr).(*dns.HTTPS)
	for _, v := range out.Value {
		if e, ok := v.(*dns.SVCBECHConfig); ok {
			e.ECH = list
			return out
		}
	}
	out.Value = append(out.Value, &dns.SVCBECHConfig{ECH: list})
	return out
}

// httpsOf returns the HTTPS records of a name in a response. Those behind a CNAME record are
// not the name's own.
func httpsOf(m *dns.Msg, name string) (found []httpsEntry, err error) {
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return nil, fmt.Errorf("the name server answers %s", dns.RcodeToString[m.Rcode])
	}
	for _, rr := range m.Answer {
		if h, ok := rr.(*dns.HTTPS); ok && strings.EqualFold(h.Hdr.Name, dns.Fqdn(name)) {
			found = append(found, httpsEntry{rr: h})
		}
	}
	return found, nil
}

// paramsText returns the parameters of a record, as zone files have them.
func paramsText(rr *dns.HTTPS) string {
	out := make([]string, len(rr.Value))
	for i, v := range rr.Value {
		out[i] = v.Key().String()
		if text := v.String(); text != "" {
			out[i] += `="` + text + `"`
		}
	}
	return strings.Join(out, " ")
}
