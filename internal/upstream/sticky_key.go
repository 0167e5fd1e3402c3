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
	"log/slog"
	"path/filepath"
	"strings"

	"headgate/internal/file"
)

// AffinityKey is what sticky cookies are made with. Whoever has it can tell
// which cookie stands for which server, and no more.
type AffinityKey struct{ key [affinityBytes]byte }

const (
	affinityFile  = "affinity.key"
	affinityBytes = 32
)

// OpenAffinityKey reads the key from dir, or makes one and keeps it there,
// readable for its owner only. Without a dir, or when the file cannot be used,
// the key is kept in memory and log hears of it: cookies end with the process
// then, which is better than no service. Keep says that a new key may be written.
func OpenAffinityKey(dir string, keep bool, log *slog.Logger) *AffinityKey {
	k := &AffinityKey{}
	if dir == "" {
		log.Warn("sticky cookies end with this process", "reason", "there is no state directory for their key")
		rand.Read(k.key[:])
		return k
	}
	name := filepath.Join(dir, affinityFile)
	err := k.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		rand.Read(k.key[:])
		if !keep {
			return k
		}
		err = file.Replace(name, []byte(hex.EncodeToString(k.key[:])+"\n"))
	} else if err != nil {
		rand.Read(k.key[:]) // the file may be another node's: it is left alone
	}
	if err != nil {
		log.Error("sticky cookies end with this process", "reason", err.Error(), "file", name)
	}
	return k
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

// Retire does nothing: the key holds nothing but memory.
func (k *AffinityKey) Retire() {}

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
