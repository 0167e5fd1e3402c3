// Package file reads and writes the files that settings and state stand in:
// whole, bounded, and never waiting for anybody.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Unfinished is the pattern of the names of files that are being written; one
// that is left over from a crash may be removed.
const Unfinished = ".new-*"

// Read reads a regular file of at most limit bytes. A larger one is refused with
// the words of tooLarge behind its size. The error names the file; what is below
// it is the system's, for errors.Is.
func Read(name string, limit int64, tooLarge string) ([]byte, error) {
	// A pipe would make the opener wait for its writer.
	f, err := os.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: it is not a regular file", name)
	case info.Size() > limit:
		return nil, fmt.Errorf("read %s: it has %d bytes, %s", name, info.Size(), tooLarge)
	}
	var b bytes.Buffer
	b.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	if int64(b.Len()) > limit { // it has grown meanwhile
		return nil, fmt.Errorf("read %s: it has %d bytes, %s", name, b.Len(), tooLarge)
	}
	return b.Bytes(), nil
}

// cause returns what is below the path and operation of a file error.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Replace writes a file, readable for its owner only, so that after a crash it
// is there whole or as it was before.
func Replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), Unfinished)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}
