package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// The bounds of what is uploaded.
const (
	// MaxBundle is the largest chain, and the largest key, in bytes.
	MaxBundle = 256 << 10
	// maxChain is how many certificates a chain has.
	maxChain = 20
)

// Bundle is a certificate with its chain and key, in order and checked: as the store
// keeps it.
type Bundle struct {
	// Certificate is ready for handshakes.
	Certificate tls.Certificate
	// Chain and Key are its PEM text.
	Chain, Key []byte
	// Notes are what was fixed, and what clients may reject.
	Notes []string
}

// PEM returns chain and key in one text.
func (b *Bundle) PEM() []byte { return slices.Concat(b.Chain, b.Key) }

// NewBundle makes a bundle from PEM texts: certificates in any order, and the key, which
// may be in either text. The leaf is the certificate of the key; the others follow in the
// order of the chain. It returns an error for a text that cannot be used: without a key or
// with one of another certificate, expired, or for no host. Properties that clients may
// reject, such as a missing intermediate, are notes.
func NewBundle(chain, key []byte, now time.Time) (*Bundle, error) {
	if len(chain) > MaxBundle || len(key) > MaxBundle {
		return nil, fmt.Errorf("more than %d bytes", MaxBundle)
	}
	given, signer, err := parseBundle(append(append(slices.Clone(chain), '\n'), key...))
	if err != nil {
		return nil, err
	}
	leaf := slices.IndexFunc(given, func(c *x509.Certificate) bool { return belongs(c, signer) })
	if leaf < 0 {
		return nil, errors.New("the key belongs to none of the certificates")
	}
	b := &Bundle{}
	ordered := b.order(given, leaf)
	if err := checkLeaf(ordered[0], now); err != nil {
		return nil, err
	}
	b.addWarnings(ordered, now)
	der, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, fmt.Errorf("write the key: %w", err)
	}
	for _, c := range ordered {
		b.Chain = append(b.Chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	b.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	b.Certificate, err = tls.X509KeyPair(b.Chain, b.Key)
	return b, err
}

// parseBundle returns the certificates and the key of a PEM text.
func parseBundle(text []byte) (all []*x509.Certificate, key crypto.Signer, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "CERTIFICATE":
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, nil, fmt.Errorf("certificate %d cannot be read: %w", len(all)+1, err)
			}
			if all = append(all, c); len(all) > maxChain {
				return nil, nil, fmt.Errorf("more than %d certificates", maxChain)
			}
		case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
			return nil, nil, errors.New("the key is encrypted; take off its passphrase first: openssl pkey -in key.pem -out plain.pem")
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			if key != nil {
				return nil, nil, errors.New("there are two keys; give that of the certificate only")
			}
			if key, err = parseKey(block.Bytes); err != nil {
				return nil, nil, err
			}
		}
	}
	switch {
	case len(all) == 0:
		return nil, nil, errors.New("there is no certificate in PEM form: a block that begins with -----BEGIN CERTIFICATE-----")
	case key == nil:
		return nil, nil, errors.New("there is no key in PEM form: a block that begins with -----BEGIN PRIVATE KEY-----")
	}
	return all, key, nil
}

func parseKey(der []byte) (crypto.Signer, error) {
	if k, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		switch k := k.(type) {
		case *rsa.PrivateKey:
			return k, nil
		case *ecdsa.PrivateKey:
			return k, nil
		case ed25519.PrivateKey:
			return k, nil
		}
		return nil, errors.New("a key of this kind cannot sign; RSA, ECDSA and Ed25519 can")
	}
	if k, err := x509.ParseECPrivateKey(der); err == nil {
		return k, nil
	}
	if k, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return k, nil
	}
	return nil, errors.New("the key cannot be read")
}

// belongs reports whether a key is that of a certificate.
func belongs(c *x509.Certificate, key crypto.Signer) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}

// order returns the chain from the leaf on. A root is omitted: clients have it, or do not
// trust it.
func (b *Bundle) order(given []*x509.Certificate, leaf int) []*x509.Certificate {
	chain, used := []*x509.Certificate{given[leaf]}, map[int]bool{leaf: true}
	for last := given[leaf]; !selfIssued(last); {
		next := slices.IndexFunc(given, func(c *x509.Certificate) bool {
			return !slices.ContainsFunc(chain, c.Equal) && bytes.Equal(c.RawSubject, last.RawIssuer) && last.CheckSignatureFrom(c) == nil
		})
		if next < 0 {
			break
		}
		used[next] = true
		if last = given[next]; !selfIssued(last) {
			chain = append(chain, last)
		}
	}
	if len(chain) > 1 && !slices.IsSortedFunc(chain, func(a, b *x509.Certificate) int {
		return slices.IndexFunc(given, a.Equal) - slices.IndexFunc(given, b.Equal)
	}) {
		b.Notes = append(b.Notes, "the certificates were put in order")
	}
	for i, c := range given {
		if !used[i] && !slices.ContainsFunc(chain, c.Equal) {
			b.Notes = append(b.Notes, "omitted, because it signs none of the others: "+nameOf(c))
		}
	}
	return chain
}

func selfIssued(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

// nameOf returns what people call a certificate.
func nameOf(c *x509.Certificate) string {
	if len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.String()
}

// checkLeaf returns why a certificate cannot be a server's.
func checkLeaf(c *x509.Certificate, now time.Time) error {
	switch {
	case len(c.DNSNames)+len(c.IPAddresses) == 0 && c.IsCA:
		return errors.New("the key is that of an authority's certificate; give the server's own")
	case len(c.DNSNames)+len(c.IPAddresses) == 0:
		return fmt.Errorf("the certificate of %s is for no host: it has no subject alternative name, and clients do not look at the common name", c.Subject)
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate of %s expired on %s", nameOf(c), c.NotAfter.UTC().Format(time.DateOnly))
	}
	return nil
}

// addWarnings adds notes on what clients may reject.
func (b *Bundle) addWarnings(chain []*x509.Certificate, now time.Time) {
	leaf, last := chain[0], chain[len(chain)-1]
	if now.Before(leaf.NotBefore) {
		b.Notes = append(b.Notes, "it is good from "+leaf.NotBefore.UTC().Format(time.RFC3339)+" on only; clients refuse it until then")
	}
	for _, c := range chain[1:] {
		if now.After(c.NotAfter) {
			b.Notes = append(b.Notes, "the intermediate "+nameOf(c)+" expired on "+c.NotAfter.UTC().Format(time.DateOnly))
		}
	}
	if selfIssued(leaf) {
		b.Notes = append(b.Notes, "self-signed: clients reject it unless they are configured to trust it")
		return
	}
	pool := x509.NewCertPool()
	for _, c := range chain[1:] {
		pool.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Intermediates: pool, CurrentTime: latestOf(now, leaf.NotBefore)})
	var unknown x509.UnknownAuthorityError
	switch {
	case err == nil || !errors.As(err, &unknown):
	case len(chain) == 1:
		b.Notes = append(b.Notes, "the intermediate of "+leaf.Issuer.String()+" is missing: many clients refuse the certificate without; add it, unless it belongs to a private authority")
	default:
		b.Notes = append(b.Notes, "this machine does not know the authority "+last.Issuer.String()+": another intermediate is missing, or it is a private one")
	}
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// MakeSelfSigned returns a self-signed bundle, for hosts and addresses, which
// is good for a while from now on.
func MakeSelfSigned(hosts []string, life time.Duration, now time.Time) (*Bundle, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"headgate, self-signed"}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return NewBundle(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), now)
}

// Split returns the chain and the key of a text as the store has it.
func Split(text []byte) (chain, key []byte) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			chain = append(chain, pem.EncodeToMemory(block)...)
		} else {
			key = append(key, pem.EncodeToMemory(block)...)
		}
	}
	return chain, key
}
