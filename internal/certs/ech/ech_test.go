package ech

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"headgate/internal/certs/certstest"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// after returns the keys that are renewed at the ages, from the first on.
func after(t *testing.T, ages ...time.Duration) Keys {
	t.Helper()
	var keys Keys
	for _, age := range ages {
		var changed bool
		if keys, changed = keys.Renew("example.com", start.Add(age)); !changed {
			t.Fatalf("at %v, nothing changed", age)
		}
	}
	return keys
}

func TestKeysAreReplacedAndRemovedInTime(t *testing.T) {
	const day = 24 * time.Hour
	keys := after(t, 0)
	if _, changed := keys.Renew("example.com", start.Add(Rotation-1)); changed || len(keys) != 1 {
		t.Errorf("got %d keys, want one that lives for %v", len(keys), Rotation)
	}
	uses := func(at time.Duration) (all []Use) {
		for i := range keys {
			all = append(all, keys.Use(i, start.Add(at)))
		}
		return all
	}
	if got := uses(0); got[0] != UsePublished {
		t.Errorf("the first key is %v, want that it is published at once", got)
	}
	keys = after(t, 0, Rotation)
	if got := uses(Rotation); !slices.Equal(got, []Use{UseAnnounced, UsePublished}) {
		t.Errorf("after a rotation, the keys are %v", got)
	}
	if got := uses(Rotation + Announced); !slices.Equal(got, []Use{UsePublished, UseAccepted}) {
		t.Errorf("later, the keys are %v", got)
	}
	keys = after(t, 0, Rotation, 2*Rotation, 3*Rotation)
	if len(keys) != 3 || !keys[2].Made.Equal(start.Add(Rotation)) {
		t.Errorf("got %d keys, the oldest of %v, want that the first is gone after %v", len(keys), keys[len(keys)-1].Made, Retention)
	}
	ids := map[uint8]bool{}
	for _, k := range keys {
		ids[k.ID()] = true
	}
	if len(ids) != len(keys) {
		t.Errorf("%d keys have %d numbers", len(keys), len(ids))
	}
	if keys, _ := keys.Renew("example.com", start.Add(365*day)); len(keys) != 1 {
		t.Errorf("after a long rest there are %d keys, want a new one alone", len(keys))
	}
	if keys, changed := keys.Renew("example.com", start.Add(-day)); changed || len(keys) != 3 {
		t.Errorf("a clock that was set back left %d keys", len(keys))
	}
}

func TestKeysOutliveTheProcess(t *testing.T) {
	keys := after(t, 0, Rotation)
	got, err := Parse(keys.JSON(), "example.com")
	if err != nil || len(got) != 2 || !bytes.Equal(got[0].Config, keys[0].Config) || !bytes.Equal(got[1].Private, keys[1].Private) || !got[0].Made.Equal(keys[0].Made) {
		t.Errorf("got %v and %v", got, err)
	}
}

// An invalid key would end the handshakes of all browsers, since they all offer ECH.
func TestADamagedKeyIsNotUsed(t *testing.T) {
	good := after(t, 0)[0]
	other := newKey("other.example.com", nil, start)
	for at := range good.Config {
		if at == atID || at >= atSuites+2 && at < len(good.Config)-3-len("example.com") {
			continue // another number, suite or padding is as good
		}
		bad := *good
		bad.Config = slices.Clone(good.Config)
		bad.Config[at] ^= 1
		damaged(t, &bad)
	}
	for n := range len(good.Config) {
		damaged(t, &Key{Config: good.Config[:n], Private: good.Private, Made: start})
	}
	damaged(t, other)
	damaged(t, &Key{Config: good.Config, Private: other.Private, Made: start})
	damaged(t, &Key{Config: good.Config, Private: good.Private[1:], Made: start})
	damaged(t, nil)
	if keys, err := Parse([]byte(`[{"config":`), "example.com"); err == nil || keys != nil {
		t.Errorf("half a value: got %v and %v", keys, err)
	}
}

// damaged expects that a key is not used, and the one beside it is.
func damaged(t *testing.T, k *Key) {
	t.Helper()
	good := newKey("example.com", nil, start)
	keys, err := Parse(Keys{good, k}.JSON(), "example.com")
	if err == nil || len(keys) != 1 || !bytes.Equal(keys[0].Config, good.Config) {
		t.Errorf("got %d keys and %v of one that is damaged: %+v", len(keys), err, k)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Keys{newKey("example.com", nil, start)}.JSON())
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, _ := Parse(data, "example.com")
		r := NewRing("example.com")
		r.Set(keys, start)
		accepted, _ := r.Accepted(&tls.ClientHelloInfo{ServerName: "Example.com"})
		if len(accepted) != len(keys) || len(keys) > maxKeys {
			t.Fatalf("%d of %d keys are accepted", len(accepted), len(keys))
		}
		for _, k := range accepted {
			if _, err := pretend(t, []tls.EncryptedClientHelloKey{k}); err != nil && strings.Contains(err.Error(), "internal error") {
				t.Fatalf("crypto/tls does not use key %x: %v", k.Config, err)
			}
		}
	})
}

// pretend makes a handshake of a client with a key that the server does not have, and returns
// the configurations that the server offers instead.
func pretend(t *testing.T, keys []tls.EncryptedClientHelloKey) (retry []byte, err error) {
	t.Helper()
	unknown := newKey("example.com", nil, start)
	_, err = handshake(t, keys, List(unknown.Config))
	if r, ok := err.(*tls.ECHRejectionError); ok {
		return r.RetryConfigList, nil
	}
	return nil, err
}

// authority signs the certificate of the tests' server.
var authority, leaf = func() (*tls.Certificate, tls.Certificate) {
	t := &testing.T{}
	ca := certstest.Sign(t, certstest.Authority("test"), nil)
	return &ca, certstest.Sign(t, &x509.Certificate{DNSNames: []string{"example.com", "secret.example.com"}}, &ca)
}()

// handshake makes a handshake for a secret name with a list of configurations.
func handshake(t *testing.T, keys []tls.EncryptedClientHelloKey, list []byte) (tls.ConnectionState, error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(authority.Leaf)
	here, there := net.Pipe()
	defer here.Close()
	server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{leaf}, EncryptedClientHelloKeys: keys})
	done := make(chan error, 1)
	go func() { defer there.Close(); done <- server.Handshake() }()
	client := tls.Client(here, &tls.Config{ServerName: "secret.example.com", RootCAs: roots, EncryptedClientHelloConfigList: list})
	err := client.Handshake()
	here.Close()
	<-done
	return server.ConnectionState(), err
}

func TestClientsHideTheirNameWithAnyKey(t *testing.T) {
	keys := after(t, 0, Rotation, 2*Rotation)
	r := NewRing("example.com")
	r.Set(keys, start.Add(2*Rotation))
	accepted, _ := r.Accepted(&tls.ClientHelloInfo{ServerName: "Example.com"})
	for i, k := range keys {
		if state, err := handshake(t, accepted, List(k.Config)); err != nil || !state.ECHAccepted || state.ServerName != "secret.example.com" {
			t.Errorf("key %d: got %v and %+v", i, err, state)
		}
	}
	if !bytes.Equal(r.Published(), List(keys[1].Config)) {
		t.Error("a key is published before all machines have it")
	}
	retry, err := pretend(t, accepted)
	if err != nil || !bytes.Equal(retry, r.Published()) {
		t.Errorf("a client with an unknown key is offered %x and %v, want what is published", retry, err)
	}
	for _, name := range []string{"", "secret.example.com", "example.com.", "xexample.com"} {
		if got, err := r.Accepted(&tls.ClientHelloInfo{ServerName: name}); err != nil || got == nil || len(got) > 0 {
			t.Errorf("a client that shows %q: got %d keys and %v, want none", name, len(got), err)
		}
	}
	if retry, err := pretend(t, NewRing("example.com").now.Load().accepted); err != nil || retry != nil {
		t.Errorf("without keys: got %x and %v", retry, err)
	}
}

func TestTheRecordIsOneOfTheDNS(t *testing.T) {
	list := List(newKey("example.com", nil, start).Config)
	for host, owner := range map[string]string{"shop.example.com": "_8443._https.shop.example.com", "*.example.com": ""} {
		if got := Owner(host, 8443); got != owner {
			t.Errorf("port 8443 of %s: got record %q, want %q", host, got, owner)
		}
		if got := Owner(host, 443); got != host {
			t.Errorf("port 443 of %s: got record %q", host, got)
		}
	}
	// The name of a record for another port has no address: the record names the host.
	if got := Target("shop.example.com", Owner("shop.example.com", 8443)); got != "shop.example.com." {
		t.Errorf("port 8443: got the server %q", got)
	}
	rr, err := dns.NewRR(Line("*.example.com", Value(Target("*.example.com", "*.example.com"), []string{"h3", "h2"}, list)))
	if err != nil {
		t.Fatal(err)
	}
	record := rr.(*dns.HTTPS)
	if record.Priority != 1 || record.Target != "." || record.Hdr.Name != "*.example.com." || record.Hdr.Ttl != RecordTTL || len(record.Value) != 2 {
		t.Errorf("got %v", record)
	}
	if alpn := record.Value[0].(*dns.SVCBAlpn); !slices.Equal(alpn.Alpn, []string{"h3", "h2"}) {
		t.Errorf("got protocols %v", alpn.Alpn)
	}
	if got := record.Value[1].(*dns.SVCBECHConfig); !bytes.Equal(got.ECH, list) {
		t.Errorf("got ech %x, want %x", got.ECH, list)
	}
}
