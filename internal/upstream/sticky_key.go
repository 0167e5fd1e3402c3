package upstream

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"headgate/internal/file"
)

// AffinityKey is what sticky cookies are made with. Whoever has it can tell
// which cookie stands for which server, and no more.
type AffinityKey struct {
	key [affinityBytes]byte
	// file is where it is to be kept, "" if it is kept there already or nowhere.
	file string
	// fault is why it ends with the process, nil if it does not.
	fault error
}

const (
	affinityFile  = "affinity.key"
	affinityBytes = 32
)

// NewAffinityKey makes a key that nobody else has and that is kept nowhere.
func NewAffinityKey() *AffinityKey {
	k := &AffinityKey{fault: errors.New("there is no state directory for their key")}
	rand.Read(k.key[:])
	return k
}

// OpenAffinityKey reads the key from dir, or makes one. Nothing is written before
// Keep. Without a dir, or when the file cannot be used, the key is kept in memory
// only: cookies end with the process then, which is better than no service.
func OpenAffinityKey(dir string) *AffinityKey {
	if dir == "" {
		return NewAffinityKey()
	}
	k := &AffinityKey{}
	name := filepath.Join(dir, affinityFile)
	if err := k.read(name); errors.Is(err, fs.ErrNotExist) {
		rand.Read(k.key[:])
		k.file = name
	} else if err != nil {
		rand.Read(k.key[:]) // the file may be another node's: it is left alone
		k.fault = err
	}
	return k
}

// Keep writes a key that was made to its file, readable for its owner only. The
// error says why sticky cookies end with the process, if they do.
func (k *AffinityKey) Keep() error {
	if k.file != "" {
		k.fault = file.Replace(k.file, []byte(hex.EncodeToString(k.key[:])+"\n"))
		k.file = ""
	}
	return k.fault
}

// read reads the key from a file: 64 hexadecimal digits in a line.
func (k *AffinityKey) read(name string) error {
	data, err := file.Read(name, 1024, "a key has 65")
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(data))
	if n, err := hex.Decode(k.key[:], []byte(text[:min(len(text), 2*affinityBytes)])); err != nil || n != affinityBytes || len(text) != 2*affinityBytes {
		return fmt.Errorf("read %s: it does not hold a key of %d hexadecimal digits", name, 2*affinityBytes)
	}
	return nil
}

// value returns what a cookie says for a server of a route: the first 128 bits
// of the HMAC-SHA256 of its names, in base64.
func (k *AffinityKey) value(proxy, route, server string) string {
	h := hmac.New(sha256.New, k.key[:])
	for _, part := range []string{"affinity", proxy, route, server} {
		h.Write([]byte(part))
		h.Write([]byte{0}) // which none of the parts can hold
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
