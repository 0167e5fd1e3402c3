package pair

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"headgate/internal/store"
)

// The authority alone proves nothing about a machine: every machine that was ever a member
// knows its key. So a certificate must be the one of a member in this machine's copy of the
// members. A leader that is restored from a backup has a new certificate that no copy has
// yet; it is announced with a secret of the group, which a revocation replaces.

// maxAnnounce is how many secrets a group keeps, and so how often in a row a machine can be
// restored while the other one is away.
const maxAnnounce = 8

// The parts of the URI in a certificate with which it is announced.
const (
	announceScheme = "headgate-announce"
	announceText   = "headgate announce"
)

// errStranger says that a machine has a certificate of the authority, but none of a member.
var errStranger = errors.New("its certificate is not the one of a member of this group: a machine that was revoked answers, or one that was restored from an older backup")

// newSecret returns a secret to announce certificates with.
func newSecret() []byte {
	secret := make([]byte, 32)
	rand.Read(secret)
	return secret
}

// renew adds a secret, so that certificates announced with those before are not accepted
// any more by a machine that knows it.
func (a *authority) renew() {
	a.Announce = append(a.Announce, newSecret())
	if n := len(a.Announce); n > maxAnnounce {
		a.Announce = a.Announce[n-maxAnnounce:]
	}
}

// revoke forgets all secrets: a machine that was revoked knows them.
func (a *authority) revoke() { a.Announce = [][]byte{newSecret()} }

// announcements returns what announces the certificate of a machine to each machine that
// knows one of the secrets.
func (a *authority) announcements(name string, public ed25519.PublicKey) []*url.URL {
	pin := publicPin(public)
	all := make([]*url.URL, 0, len(a.Announce))
	for _, secret := range a.Announce {
		all = append(all, &url.URL{Scheme: announceScheme, Opaque: hex.EncodeToString(a.announcement(secret, name, pin))})
	}
	return all
}

func (a *authority) announcement(secret []byte, name, pin string) []byte {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s\x00%s\x00%s\x00%s", announceText, a.Group, name, pin)
	return mac.Sum(nil)
}

// announced reports whether a certificate is announced with the newest secret.
func (a *authority) announced(c *x509.Certificate) bool {
	if len(a.Announce) == 0 {
		return false
	}
	want := a.announcement(a.Announce[len(a.Announce)-1], c.Subject.CommonName, pinOf(c))
	for _, u := range c.URIs {
		got, err := hex.DecodeString(u.Opaque)
		if u.Scheme == announceScheme && err == nil && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}

// publicPin returns the pin of a certificate with a public key.
func publicPin(public ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err) // an Ed25519 key has a form
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// leaf returns the certificate of this machine.
func (id *Identity) leaf() (*x509.Certificate, error) { return x509.ParseCertificate(id.Certificate) }

// authority returns the group's authority from the state of this machine.
func (s *Store) authority(ctx context.Context) (*authority, store.Entry, error) {
	e, err := s.Get(ctx, store.KeyGroupAuthority)
	if err != nil {
		return nil, e, err
	}
	a := &authority{}
	if err := json.Unmarshal(e.Value, a); err != nil {
		return nil, e, fmt.Errorf("read the authority of the group: %w", err)
	}
	return a, e, nil
}

// recognize returns the name of the member that a certificate of the authority belongs to,
// and whether it is a new one that was announced. The error wraps errStranger if it is none
// of a member.
func (s *Store) recognize(ctx context.Context, c *x509.Certificate) (name string, announced bool, err error) {
	name = c.Subject.CommonName
	m, err := s.member(ctx, name)
	if err != nil {
		return "", false, err
	}
	pin := pinOf(c)
	if m == nil {
		members, err := s.Members(ctx)
		if err == nil && len(members) == 0 && s.id.Peer != "" && s.id.Peer == pin {
			return name, false, nil // this machine has joined there, and has no copy yet
		}
		return "", false, errors.Join(err, errStranger)
	}
	if m.Key == pin {
		return name, false, nil
	}
	a, _, err := s.authority(ctx)
	if err != nil {
		return "", false, err
	}
	if !a.announced(c) {
		return "", false, errStranger
	}
	return name, true, nil
}

// verifyPeer is for TLS connections to the other machine.
func (s *Store) verifyPeer(state tls.ConnectionState) error {
	ctx, stop := context.WithTimeout(context.Background(), callTimeout)
	defer stop()
	_, _, err := s.recognize(ctx, state.PeerCertificates[0])
	return err
}

// noteCertificate has the group know the certificate that a restored machine has announced.
// The one before is not accepted any more.
func (s *Store) noteCertificate(ctx context.Context, c *x509.Certificate, address, from string) error {
	name := c.Subject.CommonName
	address, err := CheckAddress(address)
	if err != nil {
		return err
	}
	a, kept, err := s.authority(ctx)
	if err != nil {
		return err
	}
	a.renew()
	value, err := json.Marshal(a)
	if err != nil {
		return err
	}
	put, err := memberEntry(name, c.Raw, address)
	if err != nil {
		return err
	}
	change := store.Change{
		If:  []store.Condition{{Key: kept.Key, Revision: kept.Revision}},
		Put: []store.Entry{put, {Key: kept.Key, Value: value}}, Who: "headgate", Why: "machine " + name + " was restored and has a new certificate",
	}
	if s.o.Audit != nil {
		change.Append = append(change.Append, s.o.Audit("node.restore", "node "+name, name, from))
	}
	if _, err := s.commitOwn(ctx, change, false); err != nil {
		return err
	}
	s.log.Warn("a machine was restored and has a new certificate", "node", name, "address", address, "from", from)
	s.revoked()
	return nil
}
