// Package ech makes the keys of Encrypted Client Hello (RFC 9849) and the records that publish
// them in the DNS (RFC 9460).
//
// A client encrypts its ClientHello, with the name of the host, for a key of the server, and
// sends it inside a ClientHello for another name: the public name. Keys belong to a public
// name. key.go makes, replaces and removes them; a Ring holds those that the ports of a public
// name use now; record.go writes the HTTPS records. The package stores nothing and decides
// nothing about ports.
package ech

import (
	"bytes"
	"crypto/ecdh"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"time"
)

// Ring holds the keys of one public name. It is safe for concurrent use.
type Ring struct {
	// PublicName is the name that clients show.
	PublicName string

	now atomic.Pointer[use]
}

// use is what a Ring has at one time. It is immutable.
type use struct {
	keys     Keys
	accepted []tls.EncryptedClientHelloKey // not nil
	list     []byte                        // the published ECHConfigList; nil without keys
}

// NewRing returns a ring without keys: it accepts nothing and publishes nothing.
func NewRing(publicName string) *Ring {
	r := &Ring{PublicName: publicName}
	r.now.Store(&use{accepted: []tls.EncryptedClientHelloKey{}})
	return r
}

// Set replaces the keys. At the time now, all of them are accepted, and clients are offered
// only the one that is published.
func (r *Ring) Set(keys Keys, now time.Time) {
	u := &use{keys: keys, accepted: make([]tls.EncryptedClientHelloKey, 0, len(keys))}
	published := keys.published(now)
	for i, k := range keys {
		one := tls.EncryptedClientHelloKey{Config: k.Config, PrivateKey: k.Private, SendAsRetry: i == published}
		if i == published { // most clients have it, and crypto/tls tries keys in order
			u.list = List(k.Config)
			u.accepted = append([]tls.EncryptedClientHelloKey{one}, u.accepted...)
			continue
		}
		u.accepted = append(u.accepted, one)
	}
	r.now.Store(u)
}

// Accepted returns the keys for a handshake: none if the ClientHello does not show the public
// name. It is the GetEncryptedClientHelloKeys of a tls.Config and returns no error.
//
// Browsers without a record send random data in place of ECH, and show the host (RFC 9849,
// section 6.2). To decrypt that would cost two operations of X25519 for each key, and more than the
// rest of the handshake.
func (r *Ring) Accepted(hello *tls.ClientHelloInfo) ([]tls.EncryptedClientHelloKey, error) {
	if !strings.EqualFold(hello.ServerName, r.PublicName) {
		return []tls.EncryptedClientHelloKey{}, nil
	}
	return r.now.Load().accepted, nil
}

// Published returns the ECHConfigList for clients (RFC 9849, section 4), nil while there is no
// key. It must not be changed.
func (r *Ring) Published() []byte { return r.now.Load().list }

// Keys returns all keys, the newest first. They must not be changed.
func (r *Ring) Keys() Keys { return r.now.Load().keys }

// The parts of an ECHConfig (RFC 9849, section 4).
const (
	version    = 0xfe0d
	kemX25519  = 0x0020 // DHKEM(X25519, HKDF-SHA256), RFC 9180, section 7.1
	kdfSHA256  = 0x0001 // HKDF-SHA256
	aeadAES128 = 0x0001 // AES-128-GCM
	aeadChaCha = 0x0003 // ChaCha20Poly1305
	keySize    = 32     // of X25519, in bytes

	// paddedName is the length to which clients pad the names of hosts. It is the same for
	// all keys, so that it says nothing about the hosts.
	paddedName = 64

	atID        = 4 // offsets in an ECHConfig
	atKEM       = 5
	atPublicKey = 9
	atSuites    = atPublicKey + keySize
)

// configOf returns the ECHConfig of a key. The public name is at most 255 bytes.
func configOf(id uint8, public []byte, publicName string) []byte {
	be := binary.BigEndian
	b := be.AppendUint16(nil, version)
	b = append(b, 0, 0, id) // the length follows
	b = be.AppendUint16(b, kemX25519)
	b = append(be.AppendUint16(b, uint16(len(public))), public...)
	suites := []uint16{kdfSHA256, aeadAES128, kdfSHA256, aeadChaCha}
	b = be.AppendUint16(b, uint16(2*len(suites)))
	for _, s := range suites {
		b = be.AppendUint16(b, s)
	}
	b = append(b, paddedName, byte(len(publicName)))
	b = append(b, publicName...)
	b = append(b, 0, 0) // no extensions
	be.PutUint16(b[2:], uint16(len(b)-4))
	return b
}

// List returns the ECHConfigList with a configuration.
func List(config []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(config))), config...)
}

// errKey is the error of a key that is damaged.
var errKey = errors.New("the key of Encrypted Client Hello is damaged")

// check returns an error unless crypto/tls can use the key for a public name. With an invalid
// key, it ends the handshakes of all clients that offer ECH, also of those that only pretend
// to. Suites, padding and extensions may differ from those that configOf writes.
func (k *Key) check(publicName string) error {
	be := binary.BigEndian
	b := k.Config
	private, err := ecdh.X25519().NewPrivateKey(k.Private)
	if err != nil || len(b) < atSuites+2 || be.Uint16(b) != version || int(be.Uint16(b[2:])) != len(b)-4 || be.Uint16(b[atKEM:]) != kemX25519 {
		return errKey
	}
	if be.Uint16(b[atPublicKey-2:]) != keySize || !bytes.Equal(b[atPublicKey:atSuites], private.PublicKey().Bytes()) {
		return errKey
	}
	suites, rest := int(be.Uint16(b[atSuites:])), b[atSuites+2:]
	if suites == 0 || suites%4 != 0 || len(rest) < suites+2 {
		return errKey
	}
	rest = rest[suites+1:] // and the padding
	n := 1 + int(rest[0])
	if len(rest) < n+2 || string(rest[1:n]) != publicName || int(be.Uint16(rest[n:])) != len(rest)-n-2 {
		return errKey
	}
	return nil
}
