package local

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/argon2"
)

// sealedArchive begins an archive that is sealed with a passphrase; what follows is a
// salt and the archive in chunks, each with its length before it. A chunk's nonce is
// its number and whether it is the last, so that none can be left out, moved or cut
// off.
const sealedArchive = "headgate backup, sealed 1\n"

const (
	saltBytes  = 16
	chunkBytes = 64 << 10
)

// aeadOf makes a key of a passphrase, slowly.
func aeadOf(passphrase string, salt []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(argon2.IDKey([]byte(passphrase), salt, 3, 64<<10, 4, keyBytes))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func chunkNonce(n uint32, last bool) []byte {
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint32(nonce[7:], n)
	if last {
		nonce[11] = 1
	}
	return nonce
}

// sealTo returns what seals to w; without a passphrase it only passes on. It is to be
// closed, which does not close w.
func sealTo(w io.Writer, passphrase string) (io.WriteCloser, error) {
	if passphrase == "" {
		return passing{w}, nil
	}
	salt := make([]byte, saltBytes)
	rand.Read(salt)
	seal, err := aeadOf(passphrase, salt)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(append([]byte(sealedArchive), salt...))
	return &sealing{to: w, seal: seal}, err
}

type passing struct{ io.Writer }

func (passing) Close() error { return nil }

type sealing struct {
	to      io.Writer
	seal    cipher.AEAD
	pending []byte
	number  uint32
}

// Write seals the chunks that are full and are not the last.
func (s *sealing) Write(p []byte) (int, error) {
	s.pending = append(s.pending, p...)
	for len(s.pending) > chunkBytes {
		if err := s.chunk(s.pending[:chunkBytes], false); err != nil {
			return 0, err
		}
		s.pending = append(s.pending[:0], s.pending[chunkBytes:]...)
	}
	return len(p), nil
}

// Close seals the last chunk.
func (s *sealing) Close() error { return s.chunk(s.pending, true) }

func (s *sealing) chunk(data []byte, last bool) error {
	sealed := s.seal.Seal(make([]byte, 4), chunkNonce(s.number, last), data, nil)
	binary.BigEndian.PutUint32(sealed, uint32(len(sealed)-4))
	s.number++
	_, err := s.to.Write(sealed)
	return err
}

// errPassphrase says that an archive does not open.
var errPassphrase = errors.New("the passphrase is wrong, or the archive is damaged")

// openSealed returns what an archive holds, opened if it is sealed.
func openSealed(r io.Reader, passphrase string) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(len(sealedArchive))
	if err != nil || string(head) != sealedArchive {
		return in, nil
	}
	if passphrase == "" {
		return nil, errors.New("the archive is sealed: give its passphrase")
	}
	salt := make([]byte, len(sealedArchive)+saltBytes)
	if _, err := io.ReadFull(in, salt); err != nil {
		return nil, errPassphrase
	}
	seal, err := aeadOf(passphrase, salt[len(sealedArchive):])
	if err != nil {
		return nil, err
	}
	o := &opening{from: in, seal: seal}
	if err := o.chunk(); err != nil {
		return nil, err
	}
	return o, nil
}

type opening struct {
	from   *bufio.Reader
	seal   cipher.AEAD
	opened bytes.Reader
	number uint32
	last   bool
}

// Read reads on; the end of the archive is that of its last chunk.
func (o *opening) Read(p []byte) (int, error) {
	for o.opened.Len() == 0 {
		if o.last {
			return 0, io.EOF
		}
		if err := o.chunk(); err != nil {
			return 0, err
		}
	}
	return o.opened.Read(p)
}

func (o *opening) chunk() error {
	var head [4]byte
	if _, err := io.ReadFull(o.from, head[:]); err != nil {
		return errPassphrase
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > chunkBytes+uint32(o.seal.Overhead()) {
		return errPassphrase
	}
	sealed := make([]byte, size)
	if _, err := io.ReadFull(o.from, sealed); err != nil {
		return errPassphrase
	}
	_, err := o.from.Peek(1)
	o.last = err != nil
	data, err := o.seal.Open(nil, chunkNonce(o.number, o.last), sealed, nil)
	if err != nil {
		return fmt.Errorf("chunk %d: %w", o.number, errPassphrase)
	}
	o.number++
	o.opened.Reset(data)
	return nil
}
