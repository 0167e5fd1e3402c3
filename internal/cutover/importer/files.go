package importer

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"headgate/internal/file"
)

// Files is how an importer reads files. The zero value reads those of the system.
type Files struct {
	// Read returns a file, Glob the names that match a pattern.
	Read func(name string) ([]byte, error)
	Glob func(pattern string) ([]string, error)
}

// Bounded returns f, or what reads files of the system of at most most bytes: a larger
// one is refused with the words of tooLarge.
func (f Files) Bounded(most int64, tooLarge string) Files {
	if f.Read != nil {
		return f
	}
	return Files{
		Read: func(name string) ([]byte, error) { return file.Read(name, most, tooLarge) },
		Glob: filepath.Glob,
	}
}

// EncryptedKey reports whether a file holds a private key that a password is asked for.
// headgate reads keys without one.
func EncryptedKey(data []byte) bool {
	return bytes.Contains(data, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----")) || bytes.Contains(data, []byte("Proc-Type: 4,ENCRYPTED"))
}

// DecryptKey is what to do about a key that a password is asked for.
const DecryptKey = "the key is encrypted, and headgate asks nobody for its password: write it without one (openssl pkey -in KEY -out NEW), with the mode 0600"

// Given returns files that are in memory, by their names. There are no others: what a
// configuration includes besides is not found.
func Given(files map[string][]byte) Files {
	return Files{
		Read: func(name string) ([]byte, error) {
			if data, ok := files[name]; ok {
				return data, nil
			}
			return nil, fmt.Errorf("%s: %w among the files that were given", name, fs.ErrNotExist)
		},
		Glob: func(pattern string) ([]string, error) {
			var out []string
			for _, name := range slices.Sorted(maps.Keys(files)) {
				ok, err := filepath.Match(pattern, name)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", pattern, err)
				}
				if ok {
					out = append(out, name)
				}
			}
			return out, nil
		},
	}
}
