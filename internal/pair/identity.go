package pair

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate/internal/file"
	"headgate/internal/store"
)

// identityDir is the folder in the state directory with what a machine has for itself.
const (
	identityDir  = "node"
	identityName = "identity.json"
)

// domain is what the TLS server names of groups end with.
const domain = ".headgate.internal"

// The life of certificates. They are revoked by name and do not end by themselves: a clock
// that is wrong must not keep the machines apart.
const (
	certificateBefore = 365 * 24 * time.Hour
	certificateLife   = 50 * 365 * 24 * time.Hour
)

// authority is the group's own certificate authority, as it is stored under
// store.KeyGroupAuthority: every member can issue credentials when it leads.
type authority struct {
	Group       string `json:"group"`
	Certificate []byte `json:"certificate"` // DER
	Key         []byte `json:"key"`         // seed
	// Announce are the secrets with which a restored machine announces its certificate, the
	// newest last.
	Announce [][]byte `json:"announce,omitempty"`
}

func newAuthority() (*authority, error) {
	group := make([]byte, 8)
	rand.Read(group)
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{Group: hex.EncodeToString(group), Key: key.Seed(), Announce: [][]byte{newSecret()}}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "headgate group " + a.Group},
		NotBefore: time.Now().Add(-certificateBefore), NotAfter: time.Now().Add(certificateLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.Certificate, err = x509.CreateCertificate(rand.Reader, template, template, public, key)
	return a, err
}

func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b)
	return new(big.Int).SetBytes(b)
}

// issue returns the certificate of a member for its public key. Announced is what announces
// it, nil for a machine that joins.
func (a *authority) issue(name string, public ed25519.PublicKey, announced []*url.URL) ([]byte, error) {
	parent, err := x509.ParseCertificate(a.Certificate)
	if err != nil {
		return nil, err
	}
	return x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, DNSNames: []string{a.Group + domain}, URIs: announced,
		NotBefore: parent.NotBefore, NotAfter: parent.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, parent, public, ed25519.NewKeyFromSeed(a.Key))
}

// Identity is the credential of a machine. A process that has it can read all private keys of
// the group.
type Identity struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	// Authority and Certificate are in DER form, Key is the seed of the private key.
	Authority   []byte `json:"authority"`
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"`
	// Peer is the pin of the machine that has answered when this one joined. It counts until
	// this machine has a copy of the members.
	Peer string `json:"peer,omitempty"`
}

// LoadIdentity reads the credential of the machine with a state directory. The error wraps
// fs.ErrNotExist if it is in no group.
func LoadIdentity(dir string) (*Identity, error) {
	data, err := file.Read(filepath.Join(dir, identityDir, identityName), 64<<10, "a credential has less")
	if err != nil {
		return nil, err
	}
	id := &Identity{}
	if err := json.Unmarshal(data, id); err != nil {
		return nil, fmt.Errorf("read the credential of this machine: %w", err)
	}
	if len(id.Key) != ed25519.SeedSize || id.Group == "" || CheckName(id.Name) != nil {
		return nil, errors.New("the credential of this machine is damaged: remove the machine from the group and join again")
	}
	return id, nil
}

func (id *Identity) save(dir string) error {
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, identityDir), 0o700); err != nil {
		return err
	}
	return file.Replace(filepath.Join(dir, identityDir, identityName), append(data, '\n'))
}

func (id *Identity) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(id.Key) }

func (id *Identity) pair() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{id.Certificate, id.Authority}, PrivateKey: id.private()}
}

// serverName is the TLS server name of the group.
func (id *Identity) serverName() string { return id.Group + domain }

// roots returns the pool with the group's authority only.
func (id *Identity) roots() (*x509.CertPool, error) {
	c, err := x509.ParseCertificate(id.Authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(c)
	return pool, nil
}

// serverConfig is the TLS of connections from other machines. Only Join has no certificate.
func (id *Identity) serverConfig() (*tls.Config, error) {
	roots, err := id.roots()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{id.pair()},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots, SessionTicketsDisabled: true, // a ticket would outlive a revocation
	}, nil
}

// clientConfig is the TLS of connections to other machines. Verify decides about those that
// have a certificate of the authority.
func (id *Identity) clientConfig(verify func(tls.ConnectionState) error) (*tls.Config, error) {
	roots, err := id.roots()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{id.pair()},
		RootCAs: roots, ServerName: id.serverName(), VerifyConnection: verify,
	}, nil
}

// pinOf identifies a public key: the SHA-256 of its SubjectPublicKeyInfo.
func pinOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// pinnedConfig is the TLS of a machine that joins: it knows the pins of the authority and of
// the machine that has issued the token.
func pinnedConfig(group, pin, leader string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, ServerName: group + domain,
		InsecureSkipVerify: true, // VerifyConnection does it: the authority is in no pool yet
		VerifyConnection: func(s tls.ConnectionState) error {
			chain := s.PeerCertificates
			if len(chain) < 2 || pinOf(chain[1]) != pin || pinOf(chain[0]) != leader {
				return errors.New("the machine at this address is not the one that has issued the token: another program answers, or the connection is intercepted")
			}
			roots := x509.NewCertPool()
			roots.AddCert(chain[1])
			_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: group + domain})
			return err
		},
	}
}

// member is a machine of the group, under store.PrefixGroupMember.
type member struct {
	Name string `json:"-"`
	// Key is the pin of its credential.
	Key string `json:"key"`
	// Address is where the others reach it.
	Address string    `json:"address"`
	Joined  time.Time `json:"joined"`
}

// Member is a machine of the group, for operators.
type Member struct {
	// Name identifies the machine.
	Name string `json:"name" required:"true"`
	// Address is the URL at which the other machine reaches it.
	Address string `json:"address" required:"true"`
	// Joined is when it joined.
	Joined time.Time `json:"joined" required:"true"`
}

// CheckName returns what is wrong with the name of a machine.
func CheckName(name string) error {
	if len(name) > 63 || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || strings.Trim(name, ".-") != name {
		return fmt.Errorf("%w: %q is not 1 to 63 of a-z, 0-9, dot and hyphen", ErrName, name)
	}
	return store.CheckKey(store.PrefixNode + name)
}

// Epoch is the period in which one machine leads. The higher number decides, and of equal
// numbers the name that sorts later.
type Epoch struct {
	// Number grows with each promotion.
	Number uint64 `json:"number"`
	// Node is the machine that leads.
	Node string `json:"node"`
	// From is where its copy was when it was promoted.
	From store.Position `json:"from"`
	// Audit is the last audit record of its copy then.
	Audit store.Sequence `json:"audit"`
	// Certificate and Signature prove that Node has said so.
	Certificate []byte `json:"certificate"`
	Signature   []byte `json:"signature"`
}

// String returns the number and the name.
func (e Epoch) String() string { return fmt.Sprintf("%d-%s", e.Number, e.Node) }

// After reports whether e replaces another epoch.
func (e Epoch) After(o Epoch) bool {
	return e.Number > o.Number || e.Number == o.Number && e.Node > o.Node
}

func (e *Epoch) signed(group string) []byte {
	return fmt.Appendf(nil, "headgate epoch\x00%s\x00%d\x00%s\x00%d\x00%s\x00%d", group, e.Number, e.Node, e.From.Revision, e.From.ID, e.Audit)
}

// newEpoch returns the epoch in which this machine leads.
func (id *Identity) newEpoch(number uint64, from store.Position, audit store.Sequence) Epoch {
	e := Epoch{Number: number, Node: id.Name, From: from, Audit: audit, Certificate: id.Certificate}
	e.Signature = ed25519.Sign(id.private(), e.signed(id.Group))
	return e
}

// check returns why an epoch is not to be believed.
func (id *Identity) check(e *Epoch) error {
	roots, err := id.roots()
	if err != nil {
		return err
	}
	c, err := x509.ParseCertificate(e.Certificate)
	if err == nil {
		_, err = c.Verify(x509.VerifyOptions{Roots: roots, DNSName: id.serverName()})
	}
	if err != nil {
		return fmt.Errorf("the certificate of epoch %s: %w", e, err)
	}
	public, ok := c.PublicKey.(ed25519.PublicKey)
	if !ok || c.Subject.CommonName != e.Node || !ed25519.Verify(public, e.signed(id.Group), e.Signature) {
		return fmt.Errorf("epoch %s is not signed by %s", e, e.Node)
	}
	return nil
}
