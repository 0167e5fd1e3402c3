package local

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"headgate/internal/file"
)

// keyBytes is the length of the key that values are sealed with, for AES-256.
const keyBytes = 32

// keyring seals with its first key and opens with any. It is safe for use by several
// goroutines at once.
type keyring struct {
	seals   []cipher.AEAD
	outside bool // the first key comes from outside of the directory
	// broken says that what is kept was sealed with another key. It is set before
	// the ring is used by several.
	broken error
	fault  error  // why the key in the file is not used
	made   []byte // a key that is in no file yet
	unkept error  // why it is not, where it should be
}

// openKeys returns the key from outside, if there is one, and that in the file. A
// file is made when there is no key at all; where it may not be written, the key is
// kept in memory, since nothing is written with it either.
func openKeys(dir, outside string, write bool) (*keyring, error) {
	k := &keyring{outside: outside != ""}
	if k.outside {
		key, err := parseKey(outside)
		if err != nil {
			return nil, fmt.Errorf("HEADGATE_STATE_KEY: %w", err)
		}
		k.add(key)
	}
	name := filepath.Join(dir, keyName)
	text, err := file.Read(name, 1024, "a key has 65")
	switch {
	case err == nil:
		key, err := parseKey(string(text))
		if err != nil {
			k.makeDo(fmt.Errorf("read %s: %w; give it back from a backup, or move it away and lose what is sealed", name, err))
			return k, nil
		}
		k.add(key)
		if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 && write {
			os.Chmod(name, 0o600) // a key that others can read seals nothing
		}
	case !errors.Is(err, fs.ErrNotExist) && write:
		k.makeDo(err)
	case !k.outside:
		key := make([]byte, keyBytes)
		rand.Read(key)
		if k.made = key; write {
			k.unkept = file.Replace(name, []byte(hex.EncodeToString(key)+"\n"))
		}
		k.add(key)
	}
	return k, nil
}

// makeDo goes on without the key in the file: what is sealed does not open, and
// nothing may be sealed.
func (k *keyring) makeDo(fault error) {
	k.fault = fault
	key := make([]byte, keyBytes)
	rand.Read(key)
	k.add(key)
}

func parseKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("not a key of %d hexadecimal digits", 2*keyBytes)
	}
	return key, nil
}

func (k *keyring) add(key []byte) {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is right
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the block size that GCM wants
	}
	k.seals = append(k.seals, seal)
}

// seal returns a value that only opens with the key and under the same name.
func (k *keyring) seal(name string, value []byte) []byte {
	return k.seals[0].Seal(nil, nil, value, []byte(name))
}

// errSealed says that a value was sealed with a key that is not there, or altered.
var errSealed = errors.New("sealed with another key: give back the file state.key or HEADGATE_STATE_KEY that was used before")

// open returns a value that was sealed under a name.
func (k *keyring) open(name string, sealed []byte) ([]byte, error) {
	for _, seal := range k.seals {
		if value, err := seal.Open(nil, nil, sealed, []byte(name)); err == nil {
			return value, nil
		}
	}
	return nil, fmt.Errorf("%s is %w", name, errSealed)
}

// sealedMark begins a file that is sealed; what follows is in base64.
const sealedMark = "headgate sealed 1\n"

// sealFile returns the content of the file of an entry. Files are encrypted only with an
// external key: a key next to them would not protect them, and would prevent operators from
// reading or repairing them.
func (k *keyring) sealFile(key string, value []byte, secret bool) []byte {
	if !secret || !k.outside {
		return value
	}
	text := base64.StdEncoding.EncodeToString(k.seal(key, value))
	return append([]byte(sealedMark), text+"\n"...)
}

// openFile returns the value in the file of an entry.
func (k *keyring) openFile(key string, data []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(data, []byte(sealedMark))
	if !ok {
		return data, nil
	}
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(rest)))
	if err != nil {
		return nil, fmt.Errorf("%s: it is sealed and damaged: %w", key, err)
	}
	return k.open(key, sealed)
}

// keep writes a key that was made where no file could be written.
func (k *keyring) keep(dir string) error {
	name := filepath.Join(dir, keyName)
	if k.made == nil {
		return nil
	}
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	return file.Replace(name, []byte(hex.EncodeToString(k.made)+"\n"))
}
