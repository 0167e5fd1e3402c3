package acme

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/setting/unit"
	"headgate/internal/store/memory"
)

// A key, as far as the DNS is concerned, and the one after it.
var firstKey, nextKey = []byte("the first key"), []byte("the next key!")

// Their text in records: base64.
const firstText, nextText = `ech="dGhlIGZpcnN0IGtleQ=="`, `ech="dGhlIG5leHQga2V5IQ=="`

// httpsHost publishes the records of hosts of example.com.
type httpsHost struct {
	t     *testing.T
	m     *Manager
	entry *Config
}

func (h *httpsHost) publish(host, name string, key []byte) Publication {
	h.t.Helper()
	ctx, stop := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer stop()
	return h.m.PublishHTTPS(ctx, h.entry, &HTTPSRecord{Host: host, Name: name, PublicName: "front.example.com", Protocols: []string{"h3", "h2"}, ECH: key, Older: [][]byte{firstKey}, TTL: 300})
}

// expect publishes the records of a host, and expects a result whose reason has a text.
func (h *httpsHost) expect(host string, key []byte, state PublishState, why string) {
	h.t.Helper()
	h.expectAt(host, host, key, state, why)
}

func (h *httpsHost) expectAt(host, name string, key []byte, state PublishState, why string) {
	h.t.Helper()
	got := h.publish(host, name, key)
	if got.State != state || !strings.Contains(got.Why, why) || (why == "") != (got.Why == "") {
		h.t.Errorf("%s of %s: got %+v, want %s because of %q", name, host, got, state, why)
	}
}

func TestOnlyTheKeyOfAnHTTPSRecordIsReplaced(t *testing.T) {
	t.Parallel()
	want := &HTTPSRecord{Host: "shop.example.com", Name: "shop.example.com", Protocols: []string{"h3", "h2"}, ECH: nextKey, Newer: [][]byte{[]byte("a later key!")}, TTL: 300}
	for _, test := range []struct {
		name       string
		have, next []string
		err        error
	}{
		{"none", nil, []string{`300 1 . alpn="h3,h2" ` + nextText}, nil},
		{"a former key", []string{`60 1 . alpn="h2" port="8443" ` + firstText + ` ipv4hint="192.0.2.1"`}, []string{`60 1 . alpn="h2" port="8443" ` + nextText + ` ipv4hint="192.0.2.1"`}, nil},
		{"no key", []string{`60 3 . alpn="h2" no-default-alpn key65400="x"`}, []string{`60 3 . alpn="h2" no-default-alpn key65400="x" ` + nextText}, nil},
		{"the key", []string{`60 1 . ` + nextText}, []string{`60 1 . ` + nextText}, nil},
		{"a later key", []string{`60 1 . ech="YSBsYXRlciBrZXkh"`}, []string{`60 1 . ech="YSBsYXRlciBrZXkh"`}, nil},
		{"its own name", []string{`60 1 Shop.example.com. ` + firstText}, []string{`60 1 Shop.example.com. ` + nextText}, nil},
		{"two, one of them of another server", []string{`60 1 cdn.example.net. alpn="h3" ` + firstText, `60 2 . alpn="h2"`}, []string{`60 1 cdn.example.net. alpn="h3" ` + firstText, `60 2 . alpn="h2" ` + nextText}, nil},
		{"another server", []string{`60 1 cdn.example.net. alpn="h3"`}, nil, otherServer},
		{"an alias", []string{`60 0 cdn.example.net.`}, nil, aliasMode},
	} {
		var have []httpsEntry
		for i, text := range test.have {
			ttl, rest, _ := strings.Cut(text, " ")
			rr, err := dns.NewRR("shop.example.com. " + ttl + " IN HTTPS " + rest)
			if err != nil {
				t.Fatal(err)
			}
			have = append(have, httpsEntry{fmt.Sprint(i), rr.(*dns.HTTPS)})
		}
		before := texts(have)
		next, changed, err := want.merge(have)
		if got := texts(next); !slices.Equal(got, test.next) || err != test.err || changed == slices.Equal(before, test.next) && err == nil {
			t.Errorf("%s: got %q, changed %t and %v, want %q and %v", test.name, got, changed, err, test.next, test.err)
		}
		if got := texts(have); !slices.Equal(got, before) {
			t.Errorf("%s: what was read has changed to %q", test.name, got)
		}
	}
}

func texts(entries []httpsEntry) (all []string) {
	for _, e := range entries {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %d %s %s", e.rr.Hdr.Ttl, e.rr.Priority, e.rr.Target, paramsText(e.rr))))
	}
	return all
}

func TestProvidersThatWriteHTTPSRecordsSaySo(t *testing.T) {
	t.Parallel()
	for name, k := range providers {
		d := &DNS{Provider: name, Credentials: map[string]string{"server": "127.0.0.1"}}
		p, err := k.open(d)
		if err != nil { // credentials that are not made up cheaply
			continue
		}
		if _, ok := p.(httpsWriter); ok != WritesHTTPS(name) {
			t.Errorf("%s writes HTTPS records: %t, and the table says %t", name, ok, WritesHTTPS(name))
		}
	}
	if got := HTTPSProviders(); !slices.Equal(got, []string{"cloudflare", "rfc2136"}) {
		t.Errorf("got %v", got)
	}
	m := &Manager{log: slog.New(slog.DiscardHandler), store: memory.New()}
	e := &Config{DNS: &DNS{Provider: "duckdns", Credentials: map[string]string{"token": "x"}}}
	if got := m.PublishHTTPS(t.Context(), e, &HTTPSRecord{}); got.State != PublishFailed || got.Why != "duckdns cannot write HTTPS records" || got.Hint != "copy the record" {
		t.Errorf("got %+v", got)
	}
}

// insert adds records to a name server.
func insert(t *testing.T, u update, lines ...string) {
	t.Helper()
	err := u.send(t.Context(), "example.com", func(m *dns.Msg) {
		for _, line := range lines {
			rr, err := dns.NewRR(line)
			if err != nil {
				t.Fatal(err)
			}
			m.Insert([]dns.RR{rr})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHTTPSRecordsAreWrittenToARealNameServer(t *testing.T) {
	t.Parallel()
	at := nameServer(t)
	e := &Config{Resolvers: []string{at}, DNS: &DNS{
		Provider: "rfc2136", Propagation: unit.Duration(time.Minute), Credentials: map[string]string{"server": at, "tsig_name": updateKey, "tsig_secret": updateSecret},
	}}
	p, err := newProvider(e.DNS)
	if err != nil {
		t.Fatal(err)
	}
	u := p.(update)
	insert(t, u, "front.example.com. 60 A 127.0.0.1", "front.example.com. 60 A 127.0.0.2", "shop.example.com. 60 A 127.0.0.1", "away.example.com. 60 A 127.0.0.1", "away.example.com. 60 A 192.0.2.9",
		"alias.example.com. 60 CNAME shop.example.com.", "*.example.com. 60 A 127.0.0.1", "text.example.com. 60 TXT x",
		"old.example.com. 60 A 127.0.0.2", `old.example.com. 77 HTTPS 1 . alpn="h2" port="8443" ipv4hint="127.0.0.2"`, `old.example.com. 77 HTTPS 2 cdn.example.net. alpn="h3"`)
	h := &httpsHost{t, &Manager{log: slog.New(slog.DiscardHandler), store: memory.New(), node: "a"}, e}
	server := func(name string) []string {
		t.Helper()
		have, err := u.readHTTPS(t.Context(), httpsPlace{"example.com", name, name})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(slices.Values(texts(have)))
	}

	h.expect("shop.example.com", firstKey, Published, "")
	if got := server("shop.example.com"); !slices.Equal(got, []string{`300 1 . alpn="h3,h2" ` + firstText}) {
		t.Errorf("the server has %q", got)
	}
	h.expect("shop.example.com", nextKey, Published, "")
	if got := server("shop.example.com"); !slices.Equal(got, []string{`300 1 . alpn="h3,h2" ` + nextText}) {
		t.Errorf("after a rotation, the server has %q", got)
	}
	h.expect("old.example.com", firstKey, Published, "")
	h.expect("old.example.com", nextKey, Published, "")
	if got := server("old.example.com"); !slices.Equal(got, []string{`77 1 . alpn="h2" port="8443" ipv4hint="127.0.0.2" ` + nextText, `77 2 cdn.example.net. alpn="h3"`}) {
		t.Errorf("of the record of another program, the server has %q", got)
	}
	h.expectAt("shop.example.com", "_8443._https.shop.example.com", firstKey, Published, "")
	if got := server("_8443._https.shop.example.com"); !slices.Equal(got, []string{`300 1 shop.example.com. alpn="h3,h2" ` + firstText}) {
		t.Errorf("for another port, the server has %q", got)
	}
	h.expect("alias.example.com", firstKey, Skipped, "CNAME for shop.example.com")
	h.expect("away.example.com", firstKey, Skipped, "192.0.2.9")
	h.expect("text.example.com", firstKey, Skipped, "no address")

	// A record would hide the address that the host has from the wildcard.
	h.expect("any.example.com", firstKey, Skipped, "no record of its own")
	h.expectAt("any.example.com", "_8443._https.any.example.com", firstKey, Skipped, "no record of its own")
	if v4, _, err := newLookup([]string{at}).addresses(t.Context(), "any.example.com"); err != nil || len(v4) != 1 {
		t.Errorf("the host has the addresses %v and %v", v4, err)
	}
	h.expect("*.example.com", firstKey, Published, "")
	h.expect("any.example.com", firstKey, Published, "") // it has the record from the wildcard

	// What another program writes at the same time stays.
	have, err := u.readHTTPS(t.Context(), httpsPlace{"example.com", "old.example.com", "old.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	insert(t, u, `old.example.com. 77 HTTPS 3 cdn2.example.net. alpn="h3"`)
	next, _, _ := (&HTTPSRecord{Name: "old.example.com", ECH: firstKey}).merge(have)
	if err := u.writeHTTPS(t.Context(), httpsPlace{"example.com", "old.example.com", "old.example.com"}, have, next); !errors.Is(err, errChanged) || len(server("old.example.com")) != 3 {
		t.Errorf("got %v, want that the change of another program is noticed", err)
	}

	// Another machine writes.
	lease, err := h.m.store.Acquire(t.Context(), "acme/dns/front.example.com", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	if got := h.m.PublishHTTPS(ctx, e, &HTTPSRecord{Host: "front.example.com", Name: "front.example.com", PublicName: "front.example.com", ECH: firstKey}); got.State != Waiting || !strings.Contains(got.Why, "another machine") {
		t.Errorf("while another machine writes: got %+v", got)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	e.DNS.Credentials["tsig_name"] = "nobody"
	h.expect("ns.example.com", firstKey, PublishFailed, "refuses the key")
	e.DNS.Zone = "dns.example.com"
	h.expect("shop.example.com", firstKey, Skipped, "not in zone dns.example.com")
}

func TestHTTPSRecordsAreWrittenToCloudflare(t *testing.T) {
	t.Parallel()
	z := acmetest.StartZone(t)
	for _, name := range []string{"front", "shop", "old", "other", "*"} {
		z.Add("A", name+".example.com", "127.0.0.1", false)
	}
	z.Add("A", "proxied.example.com", "127.0.0.1", true)
	z.Add("CNAME", "alias.example.com", "shop.example.com.", false)
	z.Add("HTTPS", "old.example.com", `1 . alpn="h2" ipv4hint="127.0.0.1" `+firstText, false)
	z.Add("HTTPS", "old.example.com", `2 cdn.example.net. alpn="h3"`, false)
	e := &Config{Resolvers: []string{z.Names}, DNS: &DNS{Provider: "cloudflare", Credentials: map[string]string{"api_token": acmetest.ZoneToken, anEndpoint: z.API}}}
	var logged bytes.Buffer
	h := &httpsHost{t, &Manager{log: slog.New(slog.NewTextHandler(&logged, nil)), store: memory.New()}, e}

	h.expect("shop.example.com", firstKey, Published, "")
	h.expect("shop.example.com", firstKey, Published, "")
	if got := z.HTTPS("shop.example.com"); !slices.Equal(got, []string{`300 1 . alpn="h3,h2" ` + firstText}) || z.Writes() != 1 {
		t.Errorf("after %d writes, the zone has %q", z.Writes(), got)
	}
	z.Hide(true)
	h.expect("shop.example.com", nextKey, Waiting, "does not have it yet")
	h.expect("shop.example.com", nextKey, Waiting, "does not have it yet")
	z.Hide(false)
	h.expect("shop.example.com", nextKey, Published, "")
	if got := z.HTTPS("shop.example.com"); !slices.Equal(got, []string{`300 1 . alpn="h3,h2" ` + nextText}) || z.Writes() != 2 {
		t.Errorf("after %d writes, the zone has %q", z.Writes(), got)
	}
	if logged.Len() > 0 {
		t.Errorf("to replace a former key is logged: %s", logged.String())
	}
	z.Add("HTTPS", "edited.example.com", `1 . alpn="h2" ech="YW5vdGhlciBzZXJ2ZXI="`, false)
	z.Add("A", "edited.example.com", "127.0.0.1", false)
	h.expect("edited.example.com", nextKey, Published, "")
	if got := logged.String(); strings.Count(got, "record=") != 1 || !strings.Contains(got, "record=edited.example.com replaced_ech=\"YW5vdGhlciBzZXJ2ZXI=\"") {
		t.Errorf("the key of another server was replaced: got the log %s", got)
	}
	h.expect("old.example.com", nextKey, Published, "")
	if got := z.HTTPS("old.example.com"); !slices.Equal(got, []string{`3600 1 . alpn="h2" ipv4hint="127.0.0.1" ` + nextText, `3600 2 cdn.example.net. alpn="h3"`}) {
		t.Errorf("of the record of another program, the zone has %q", got)
	}
	h.expectAt("other.example.com", "_8443._https.other.example.com", nextKey, Published, "")
	h.expect("*.example.com", nextKey, Published, "")
	n := z.Writes()
	h.expect("any.example.com", firstKey, Skipped, "no record of its own")
	h.expect("proxied.example.com", firstKey, Skipped, "Cloudflare's proxy")
	h.expect("alias.example.com", firstKey, Skipped, "CNAME for shop.example.com")
	h.expect("shop.example.net", firstKey, Skipped, "no address")
	z.Fail(true)
	h.expect("shop.example.com", nextKey, Published, "") // nothing to write
	h.expect("shop.example.com", firstKey, PublishFailed, "403")
	if got := h.publish("shop.example.com", "shop.example.com", firstKey); !strings.Contains(got.Hint, "permission") || strings.Contains(got.Why+got.Hint, acmetest.ZoneToken) {
		t.Errorf("got %+v", got)
	}
	if z.Writes() != n {
		t.Errorf("%d records were written", z.Writes()-n)
	}
}

// What a provider returns is not trusted.
func TestADamagedHTTPSRecordIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"priority":1,"target":".","value":"ech=\"?\""}`, `{"priority":1,"target":".\nevil.example.com. A 127.0.0.1","value":""}`, `{"priority":99999,"target":"."}`, `"x"`} {
		r := cloudflareRecord{Name: "shop.example.com", Data: []byte(data)}
		if rr, err := r.https(); err == nil {
			t.Errorf("%s: got %v", data, rr)
		}
	}
}
