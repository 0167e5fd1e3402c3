package acme

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"

	"headgate/internal/server/safedial"
)

// update is the provider rfc2136: a name server that takes dynamic updates (RFC 2136),
// signed with TSIG (RFC 8945) where a key is given.
type update struct {
	server              string
	keyName, key, algor string
}

// algorithms are those of TSIG by their usual names.
var algorithms = map[string]string{
	"":            dns.HmacSHA256,
	"hmac-sha1":   dns.HmacSHA1,
	"hmac-sha224": dns.HmacSHA224,
	"hmac-sha256": dns.HmacSHA256,
	"hmac-sha384": dns.HmacSHA384,
	"hmac-sha512": dns.HmacSHA512,
}

func openUpdate(d *DNS) (provider, error) {
	c := d.Credentials
	u := update{server: c["server"]}
	if _, _, err := net.SplitHostPort(u.server); err != nil {
		u.server = net.JoinHostPort(strings.Trim(u.server, "[]"), "53")
	}
	algorithm, ok := algorithms[strings.ToLower(c["tsig_algorithm"])]
	if !ok {
		return nil, fmt.Errorf("unknown tsig_algorithm %q; use hmac-sha256", c["tsig_algorithm"])
	}
	if (c["tsig_name"] == "") != (c["tsig_secret"] == "") {
		return nil, fmt.Errorf("tsig_name and tsig_secret belong together")
	}
	if _, err := base64.StdEncoding.DecodeString(c["tsig_secret"]); err != nil {
		return nil, fmt.Errorf("tsig_secret is not base64; copy it as the name server's key file has it")
	}
	u.keyName, u.key, u.algor = dns.Fqdn(c["tsig_name"]), c["tsig_secret"], algorithm
	return u, nil
}

func (u update) wantsZone() bool { return true }

// recordTTL is the TTL of a record.
const recordTTL = 60

func (u update) present(ctx context.Context, zone, name, value string) error {
	return u.send(ctx, zone, func(m *dns.Msg) { m.Insert([]dns.RR{txt(name, value)}) })
}

func (u update) cleanUp(ctx context.Context, zone, name, value string) error {
	return u.send(ctx, zone, func(m *dns.Msg) { m.Remove([]dns.RR{txt(name, value)}) })
}

func txt(name, value string) dns.RR {
	return &dns.TXT{Hdr: dns.RR_Header{Name: dns.Fqdn(name), Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: recordTTL}, Txt: []string{value}}
}

func (u update) send(ctx context.Context, zone string, fill func(*dns.Msg)) error {
	m := new(dns.Msg)
	m.SetUpdate(dns.Fqdn(zone))
	fill(m)
	answer, err := u.exchange(ctx, m)
	if err != nil {
		return err
	}
	if answer.Rcode != dns.RcodeSuccess {
		return u.refusal(zone, answer)
	}
	return nil
}

func (u update) refusal(zone string, answer *dns.Msg) error {
	return fmt.Errorf("name server %s refuses the update of %s: %s", u.server, zone, dns.RcodeToString[answer.Rcode])
}

// exchange sends a message to the server, signed if there is a key, and returns the answer.
func (u update) exchange(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	client := dns.Client{Net: "tcp", Timeout: requestTimeout, Dialer: &net.Dialer{Timeout: requestTimeout, ControlContext: safedial.Control}}
	if u.key != "" {
		client.TsigSecret = map[string]string{u.keyName: u.key}
		m.SetTsig(u.keyName, u.algor, 300, time.Now().Unix())
	}
	answer, _, err := client.ExchangeContext(ctx, m, u.server)
	if why := keyRefused(answer); why != "" {
		return nil, fmt.Errorf("name server %s refuses the key %s: %s", u.server, u.keyName, why)
	}
	if err != nil {
		return nil, fmt.Errorf("update at name server %s: %w", u.server, err)
	}
	return answer, nil
}

// readHTTPS queries the server that is updated.
func (u update) readHTTPS(ctx context.Context, at httpsPlace) ([]httpsEntry, error) {
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(at.name), dns.TypeHTTPS)
	q.RecursionDesired = false
	answer, err := u.exchange(ctx, q)
	if err != nil {
		return nil, err
	}
	return httpsOf(answer, at.name)
}

// writeHTTPS sends one update. Its prerequisites (RFC 2136, section 2.4) are that the host is in
// use, that the name has no CNAME record, and that the records are those that were read.
func (u update) writeHTTPS(ctx context.Context, at httpsPlace, have, next []httpsEntry) error {
	m := new(dns.Msg)
	m.SetUpdate(dns.Fqdn(at.zone))
	owner := func(name string, kind uint16) []dns.RR {
		return []dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: dns.Fqdn(name), Rrtype: kind}}}
	}
	m.NameUsed(owner(at.host, dns.TypeANY))
	m.RRsetNotUsed(owner(at.name, dns.TypeCNAME))
	if len(have) == 0 {
		m.RRsetNotUsed(owner(at.name, dns.TypeHTTPS))
	}
	for i, e := range next {
		if i < len(have) {
			m.Used([]dns.RR{dns.Copy(have[i].rr)})
			if have[i].rr == e.rr {
				continue
			}
			m.Remove([]dns.RR{dns.Copy(have[i].rr)})
		}
		m.Insert([]dns.RR{dns.Copy(e.rr)})
	}
	answer, err := u.exchange(ctx, m)
	switch {
	case err != nil:
		return err
	case answer.Rcode == dns.RcodeSuccess:
		return nil
	case answer.Rcode == dns.RcodeNameError:
		return noOwnRecord
	case answer.Rcode == dns.RcodeNXRrset || answer.Rcode == dns.RcodeYXRrset:
		return errChanged
	}
	return u.refusal(at.zone, answer)
}

// keyRefused returns why a server did not take the signature of a request, "" if it did
// (RFC 8945, section 5.2). Such an answer is not signed, so it comes with an error.
func keyRefused(answer *dns.Msg) string {
	if answer == nil {
		return ""
	}
	t := answer.IsTsig()
	if t == nil || t.Error == dns.RcodeSuccess {
		return ""
	}
	if word, ok := dns.RcodeToString[int(t.Error)]; ok {
		return word
	}
	return fmt.Sprintf("TSIG error %d", t.Error)
}
