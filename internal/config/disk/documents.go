package disk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"headgate/internal/config"
	"headgate/internal/file"
)

// maxTotal bounds what the documents of a folder hold together.
const maxTotal = 64 << 20

// Documents reads a configuration from a file or a directory. From a directory it reads
// every file whose name ends in .yaml and does not begin with a dot, in the order of the
// names. Relative paths begin in that directory, or in the file's. The error names the file
// that cannot be read.
func Documents(name string) (config.Documents, error) { return documents(name, nil) }

// documents is Documents with the previous configuration; see Source.Read.
func documents(name string, known *config.Config) (config.Documents, error) {
	names, dir, err := paths(name)
	if err != nil {
		return config.Documents{}, err
	}
	docs, total := config.Documents{Dir: dir}, 0
	for _, name := range names {
		data, err := read(name, known.DocumentContent(name))
		if err != nil {
			return config.Documents{}, err
		}
		if total += len(data); total > maxTotal {
			return config.Documents{}, fmt.Errorf("folder %s: its .yaml files have more than %d bytes; move what is no configuration out of it", docs.Dir, maxTotal)
		}
		docs.List = append(docs.List, config.Document{Name: name, Data: data})
	}
	return docs, nil
}

// paths returns the paths of the documents of a file or folder, in the order of their
// names, and the folder.
func paths(name string) (names []string, folder string, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, filepath.Dir(name), nil // Read reports the error
	}
	names, err = documentsOf(name)
	return names, name, err
}

func documentsOf(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder) // in order of name
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", folder, err)
	}
	likely := ""
	for _, e := range entries {
		switch {
		case isDocument(e):
			names = append(names, filepath.Join(folder, e.Name()))
		case likely == "" && filepath.Ext(e.Name()) == ".yml" && !e.IsDir():
			likely = e.Name()
		}
	}
	switch {
	case len(names) == 0 && likely != "":
		return nil, fmt.Errorf("folder %s has no .yaml file; rename %s to %s.yaml", folder, likely, strings.TrimSuffix(likely, ".yml"))
	case len(names) == 0:
		return nil, fmt.Errorf("folder %s has no .yaml file; name the folder or the file with the configuration", folder)
	case len(names) > config.MaxDocuments:
		return nil, fmt.Errorf("folder %s has %d .yaml files, at most %d are allowed; put several objects into one file, or move what is no configuration out of it", folder, len(names), config.MaxDocuments)
	}
	return names, nil
}

// isDocument reports whether an entry of a folder is a document. Those with a dot in
// front are not: editors and saves keep their work in such.
func isDocument(e fs.DirEntry) bool {
	return IsDocumentName(e.Name()) && !e.IsDir()
}

// IsDocumentName reports whether a folder with a file of this name reads it as a document.
func IsDocumentName(name string) bool {
	return !strings.HasPrefix(name, ".") && filepath.Ext(name) == ".yaml"
}

// maxName is how long the name of a document that is made may be: file systems take no
// more.
const maxName = 200

// IsName reports whether a document of a folder can be made under a name: one without a
// path, that every system takes.
func IsName(name string) bool {
	strange := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	return IsDocumentName(name) && len(name) <= maxName && !strings.ContainsFunc(name, strange)
}

// read reads a document, which is likely to hold what is known.
func read(name string, known []byte) ([]byte, error) {
	const max = int64(config.MaxFileSize)
	return file.ReadLike(name, known, max, fmt.Sprintf("a configuration has at most %d", max))
}
