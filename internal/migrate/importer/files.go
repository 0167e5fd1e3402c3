package importer

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

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
		Glob: (&globber{left: maxNames}).glob,
	}
}

// maxNames is how many names of files and folders the patterns of one import may look at.
const maxNames = 100_000

// globber finds the names that patterns match, as filepath.Glob does, but looks at a
// bounded number of names: a pattern such as /*/*/*/* would walk the whole disk.
type globber struct{ left int }

func (g *globber) glob(pattern string) ([]string, error) {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, err
	}
	if !isPattern(pattern) {
		if _, err := os.Lstat(pattern); err != nil {
			return nil, nil
		}
		return []string{pattern}, nil
	}
	dir, last := filepath.Split(pattern)
	switch {
	case dir == "":
		dir = "."
	case len(dir) > len(filepath.VolumeName(dir))+1: // longer than a root
		dir = dir[:len(dir)-1]
	}
	folders := []string{dir}
	if isPattern(dir[len(filepath.VolumeName(dir)):]) {
		if dir == pattern {
			return nil, filepath.ErrBadPattern
		}
		var err error
		if folders, err = g.glob(dir); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, folder := range folders {
		names, err := g.names(folder)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if ok, _ := filepath.Match(last, name); ok {
				out = append(out, filepath.Join(folder, name))
			}
		}
	}
	return out, nil
}

// names returns the names in a folder in their order; none of one that cannot be read.
func (g *globber) names(folder string) (names []string, err error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	for {
		some, err := f.Readdirnames(min(g.left+1, 1024))
		if g.left -= len(some); g.left < 0 {
			return nil, fmt.Errorf("more than %d names of files would be looked at; name the folder that is meant", maxNames)
		}
		if names = append(names, some...); err != nil {
			slices.Sort(names)
			return names, nil
		}
	}
}

// isPattern reports whether a pattern has wildcard characters.
func isPattern(path string) bool {
	special := `*?[`
	if runtime.GOOS != "windows" {
		special += `\`
	}
	return strings.ContainsAny(path, special)
}

// EncryptedKey reports whether a file contains a private key that needs a password.
// headgate reads keys without one.
func EncryptedKey(data []byte) bool {
	return bytes.Contains(data, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----")) || bytes.Contains(data, []byte("Proc-Type: 4,ENCRYPTED"))
}

// DecryptKey is what to do about a key that needs a password.
const DecryptKey = "the key is encrypted, and headgate cannot ask for its password: write it without one (openssl pkey -in KEY -out NEW), with the mode 0600"

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
