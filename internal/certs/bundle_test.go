package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
)

// pemOf writes certificates, without their keys.
func pemOf(all ...[]byte) []byte {
	var out []byte
	for _, der := range all {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out
}

func TestABundleIsMendedAndJudged(t *testing.T) {
	t.Parallel()
	now := time.Now()
	rootTemplate := certstest.Authority("root")
	root := certstest.Sign(t, rootTemplate, nil)
	middle := certstest.Sign(t, certstest.Authority("middle"), &root)
	leaf := certstest.Sign(t, &x509.Certificate{DNSNames: []string{"shop.example.com"}}, &middle)
	old := certstest.Sign(t, &x509.Certificate{DNSNames: []string{"old.example.com"}, NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(-time.Hour)}, &middle)
	bare := certstest.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "bare.example.com"}}, &middle)
	other := certstest.Sign(t, &x509.Certificate{DNSNames: []string{"other.example.com"}}, nil)
	l, m, r, o := leaf.Certificate[0], middle.Certificate[0], root.Certificate[0], other.Certificate[0]
	key := certstest.KeyPEM(t, leaf)
	ec, err := x509.MarshalECPrivateKey(leaf.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		chain, key []byte
		want       [][]byte // the chain
		note       string   // that is among the notes; "" is none about the order
		err        string
	}{
		"in order":            {pemOf(l, m), key, [][]byte{l, m}, "does not know the authority", ""},
		"the wrong way round": {pemOf(r, m, l), key, [][]byte{l, m}, "put in order", ""},
		"with one too many":   {pemOf(l, o, m), key, [][]byte{l, m}, "signs none of the others: other.example.com", ""},
		"twice":               {pemOf(l, l, m, m), key, [][]byte{l, m}, "does not know the authority", ""},
		"without the middle":  {pemOf(l), key, [][]byte{l}, "is missing", ""},
		"key in one text":     {slices.Concat(pemOf(l, m), key), nil, [][]byte{l, m}, "", ""},
		"an old kind of key":  {pemOf(l, m), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ec}), [][]byte{l, m}, "", ""},
		"with text around":    {slices.Concat([]byte("subject=/CN=x\r\n"), bytes.ReplaceAll(pemOf(l, m), []byte("\n"), []byte("\r\n"))), key, [][]byte{l, m}, "", ""},
		"its own signer":      {pemOf(o), certstest.KeyPEM(t, other), [][]byte{o}, "self-signed", ""},
		"another key":         {pemOf(l, m), certstest.KeyPEM(t, other), nil, "", "belongs to none"},
		"expired":             {pemOf(old.Certificate[0], m), certstest.KeyPEM(t, old), nil, "", "expired on"},
		"for no host":         {pemOf(bare.Certificate[0], m), certstest.KeyPEM(t, bare), nil, "", "subject alternative name"},
		"an authority's":      {pemOf(m, r), certstest.KeyPEM(t, middle), nil, "", "authority's certificate"},
		"no key":              {pemOf(l, m), nil, nil, "", "no key in PEM form"},
		"two keys":            {pemOf(l, m), slices.Concat(key, key), nil, "", "two keys"},
		"no certificate":      {key, nil, nil, "", "no certificate in PEM form"},
		"nothing":             {nil, nil, nil, "", "no certificate in PEM form"},
		"DER":                 {l, key, nil, "", "no certificate in PEM form"},
		"an encrypted key":    {pemOf(l, m), []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAo=\n-----END ENCRYPTED PRIVATE KEY-----\n"), nil, "", "passphrase"},
		"junk in a block":     {[]byte("-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n"), key, nil, "", "certificate 1 cannot be read"},
		"too many":            {bytes.Repeat(pemOf(l), 21), key, nil, "", "more than 20"},
		"too large":           {bytes.Repeat([]byte(" "), MaxBundle+1), key, nil, "", "more than"},
	} {
		b, err := NewBundle(test.chain, test.key, now)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got the error %v, want %q", what, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if !slices.EqualFunc(b.Certificate.Certificate, test.want, bytes.Equal) {
			t.Errorf("%s: got a chain of %d, want %d", what, len(b.Certificate.Certificate), len(test.want))
		}
		if !strings.Contains(strings.Join(b.Notes, "\n"), test.note) {
			t.Errorf("%s: got the notes %q, want %q", what, b.Notes, test.note)
		}
		if again, err := tls.X509KeyPair(b.PEM(), b.PEM()); err != nil || !again.Leaf.Equal(b.Certificate.Leaf) {
			t.Errorf("%s: what is kept does not load: %v", what, err)
		}
		chain, split := Split(b.PEM())
		if !bytes.Equal(chain, b.Chain) || !bytes.Equal(split, b.Key) {
			t.Errorf("%s: it is not split as it was made", what)
		}
	}
	made, err := MakeSelfSigned([]string{"a.example.com", "*.b.example.com", "192.0.2.1", "2001:db8::1"}, 24*time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"a.example.com", "x.b.example.com", "192.0.2.1", "2001:db8::1"} {
		if err := made.Certificate.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
}

// FuzzBundle holds that no text breaks it, and that what it makes loads.
func FuzzBundle(f *testing.F) {
	made, err := MakeSelfSigned([]string{"a.example.com"}, time.Hour, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(made.Chain, made.Key)
	f.Add(made.Key, made.Chain)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\nMAo=\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, chain, key []byte) {
		b, err := NewBundle(chain, key, time.Now())
		if err != nil {
			return
		}
		if _, err := tls.X509KeyPair(b.PEM(), b.PEM()); err != nil {
			t.Errorf("what was made does not load: %v", err)
		}
	})
}

// TestDaysAreCountedDown rounds towards the past.
func TestDaysAreCountedDown(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]int{0: 0, time.Hour: 0, 25 * time.Hour: 1, 90 * 24 * time.Hour: 90, -time.Second: -1, -24 * time.Hour: -1, -25 * time.Hour: -2} {
		if got := DaysLeft(now.Add(left), now); got != want {
			t.Errorf("%v left are %d days, want %d", left, got, want)
		}
	}
}
