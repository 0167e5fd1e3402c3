// Package file reads and writes the files of settings and state: completely, with a size
// limit, and without blocking on other processes.
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
	return ReadLike(name, nil, limit, tooLarge)
}

// ReadLike is Read of a file that is likely to hold what is known. If it does, that is
// what comes back, and nothing is copied.
func ReadLike(name string, known []byte, limit int64, tooLarge string) ([]byte, error) {
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
	if known != nil {
		switch same, err := Holds(f, known); {
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", name, cause(err))
		case same:
			return known, nil
		}
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

// blockSize is how much of a file is compared at once.
const blockSize = 64 << 10

// Holds reports whether a file has exactly this content. It does not move the place where
// the file is read.
func Holds(f *os.File, content []byte) (bool, error) {
	if info, err := f.Stat(); err != nil || info.Size() != int64(len(content)) {
		return false, err
	}
	buf := make([]byte, min(blockSize, len(content)+1))
	for at := int64(0); ; {
		n, err := f.ReadAt(buf, at)
		if n > len(content) || !bytes.Equal(buf[:n], content[:n]) {
			return false, nil
		}
		content, at = content[n:], at+int64(n)
		if err == io.EOF {
			return len(content) == 0, nil
		}
		if err != nil {
			return false, err
		}
	}
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
func Replace(name string, data []byte) error { return replace(name, data, true) }

// Put is Replace without waiting for the disk: after a loss of power the file may be there
// and not whole, until Sync has returned.
func Put(name string, data []byte) error { return replace(name, data, false) }

// Sync waits until a file that may be written to, and its name, are on the disk.
func Sync(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = SyncDir(filepath.Dir(name))
	}
	return err
}

func replace(name string, data []byte, sync bool) error {
	f, err := os.CreateTemp(filepath.Dir(name), Unfinished)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err == nil && sync {
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
