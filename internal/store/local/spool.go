package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"headgate/internal/store"
)

// The bounds of archives on their way to and from clients.
const (
	// spoolMemory is how many bytes of an archive stay in memory. A larger one goes to a
	// file, so a small state can be backed up while its disk is full.
	spoolMemory = 4 << 20
	// maxSpools is how many archives are on their way at once.
	maxSpools = 4
)

// spoolName is the folder in a state directory for archives on their way.
const spoolName = "spool"

// errSpoolsInUse says that too many archives are on their way.
var errSpoolsInUse = fmt.Errorf("%w: %d other archives are being sent or received; try again later", store.ErrUnavailable, maxSpools)

// spool holds an archive between the state directory and a client, so that no lock of
// the store is held while the client is slow. Write first, then Rewind once, then Read.
type spool struct {
	ctx     context.Context // of the whole of it
	dir     string
	memory  bytes.Buffer
	file    *os.File // nil as long as memory is enough
	release func()
}

// newSpool returns an empty spool. The caller closes it.
func (s *Store) newSpool(ctx context.Context) (*spool, error) {
	select {
	case s.spools <- struct{}{}:
	default:
		return nil, errSpoolsInUse
	}
	return &spool{ctx: ctx, dir: filepath.Join(s.dir, spoolName), release: func() { <-s.spools }}, nil
}

// Write appends to the spool. The error is an *fs.PathError when the disk is the reason.
func (p *spool) Write(data []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	if p.file == nil && p.memory.Len()+len(data) > spoolMemory {
		if err := p.toFile(); err != nil {
			return 0, err
		}
	}
	if p.file != nil {
		return p.file.Write(data)
	}
	return p.memory.Write(data)
}

// toFile moves what is in memory to a file.
func (p *spool) toFile() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(p.dir, "archive-*") // 0600
	if err != nil {
		return err
	}
	p.file = f
	_, err = f.Write(p.memory.Bytes())
	p.memory = bytes.Buffer{}
	return err
}

// Rewind ends the writing; Read begins at the first byte.
func (p *spool) Rewind() error {
	if p.file == nil {
		return nil
	}
	_, err := p.file.Seek(0, io.SeekStart)
	return err
}

// Read returns what was written.
func (p *spool) Read(data []byte) (int, error) {
	if p.file == nil {
		return p.memory.Read(data)
	}
	return p.file.Read(data)
}

// Close removes the spool.
func (p *spool) Close() error {
	defer p.release()
	if p.file == nil {
		return nil
	}
	return errors.Join(p.file.Close(), os.Remove(p.file.Name()))
}
