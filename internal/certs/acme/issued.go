package acme

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
)

// Issued is a certificate that was issued, with its key.
type Issued struct {
	// Name is what it is called in the store.
	Name string
	// Certificate is ready for handshakes.
	Certificate *tls.Certificate
	// PEM is the chain and the key in one text, as the store has it.
	PEM []byte
}

// newIssued checks that a chain and a key belong together.
func newIssued(name string, chain []byte, key crypto.Signer) (*Issued, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := slices.Concat(chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return ParseIssued(name, text)
}

// ParseIssued reads a certificate as the store has it.
func ParseIssued(name string, text []byte) (*Issued, error) {
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	return &Issued{Name: name, Certificate: &cert, PEM: text}, nil
}

// names returns what the certificate is for.
func (i *Issued) names() []string {
	names := slices.Clone(i.Certificate.Leaf.DNSNames)
	for _, ip := range i.Certificate.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

func parseChain(text []byte) (out []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
	return out
}
