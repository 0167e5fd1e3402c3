// Package passkeytest is an authenticator for tests of passkeys.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// Device is an authenticator with one passkey (WebAuthn, section 6). Tests change its fields
// to have it answer wrongly; a copy of it is a copy of the passkey.
type Device struct {
	t   testing.TB
	Key *ecdsa.PrivateKey
	ID  []byte
	// Handle is the user handle, from the question that Create has answered.
	Handle string
	// Party is the relying party, and Origin the page that the browser shows.
	Party, Origin string
	Counter       uint32
	Flags         byte // of answers
}

// The flags of authenticator data: the user is present and verified.
const (
	Present  = 1
	Verified = 4
	attested = 64 // data of a new passkey follow
)

// New returns a device that is at a page of a relying party.
func New(t testing.TB, party, origin string) *Device {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 16)
	rand.Read(id)
	return &Device{t: t, Key: k, ID: id, Party: party, Origin: origin, Flags: Present | Verified}
}

var url64 = base64.RawURLEncoding

func (d *Device) client(kind string, options json.RawMessage) []byte {
	var o struct{ Challenge string }
	if err := json.Unmarshal(options, &o); err != nil || o.Challenge == "" {
		d.t.Fatal(err, string(options))
	}
	data, err := json.Marshal(map[string]any{"type": kind, "challenge": o.Challenge, "origin": d.Origin, "crossOrigin": false})
	if err != nil {
		d.t.Fatal(err)
	}
	return data
}

func (d *Device) data(flags byte, more ...byte) []byte {
	sum := sha256.Sum256([]byte(d.Party))
	return append(binary.BigEndian.AppendUint32(append(sum[:], flags), d.Counter), more...)
}

func (d *Device) write(response map[string]any) []byte {
	out, err := json.Marshal(map[string]any{"id": url64.EncodeToString(d.ID), "rawId": url64.EncodeToString(d.ID), "type": "public-key", "response": response, "clientExtensionResults": map[string]any{}})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// Create answers the question for a new passkey.
func (d *Device) Create(options json.RawMessage) []byte {
	var o struct{ User struct{ ID string } }
	if err := json.Unmarshal(options, &o); err != nil {
		d.t.Fatal(err)
	}
	handle, err := url64.DecodeString(o.User.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Handle = string(handle)
	pub, err := d.Key.PublicKey.Bytes()
	if err != nil {
		d.t.Fatal(err)
	}
	cose, err := cbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: pub[1:33], -3: pub[33:]})
	if err != nil {
		d.t.Fatal(err)
	}
	more := append(make([]byte, 16), 0, byte(len(d.ID)))
	more = append(append(more, d.ID...), cose...)
	object, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": d.data(d.Flags|attested, more...)})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.write(map[string]any{"clientDataJSON": url64.EncodeToString(d.client("webauthn.create", options)), "attestationObject": url64.EncodeToString(object)})
}

// Get answers the question for a passkey.
func (d *Device) Get(options json.RawMessage) []byte {
	d.Counter++
	client, data := d.client("webauthn.get", options), d.data(d.Flags)
	sum := sha256.Sum256(client)
	signed := sha256.Sum256(append(data[:len(data):len(data)], sum[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.Key, signed[:])
	if err != nil {
		d.t.Fatal(err)
	}
	return d.write(map[string]any{
		"clientDataJSON": url64.EncodeToString(client), "authenticatorData": url64.EncodeToString(data), "signature": url64.EncodeToString(signature), "userHandle": url64.EncodeToString([]byte(d.Handle)),
	})
}
