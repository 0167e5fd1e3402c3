package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"headgate/internal/config"
)

// maxTotal bounds what the documents of a folder hold together.
const maxTotal = 64 << 20

// Documents reads a configuration by the name of a file or of a folder. Of a folder
// it reads every file whose name ends in .yaml and does not begin with a dot, in
// the order of their names. Relative paths begin in that folder, or in the file's.
// The error says what cannot be read, and names the file.
func Documents(name string) (config.Documents, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		data, err := Read(name)
		if err != nil {
			return config.Documents{}, err
		}
		return config.Documents{Dir: filepath.Dir(name), List: []config.Document{{Name: name, Data: data}}}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return config.Documents{}, fmt.Errorf("read folder %s: %w", name, err)
	}
	docs, total := config.Documents{Dir: name}, 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".yaml") || strings.HasPrefix(e.Name(), ".") || e.IsDir() {
			continue
		}
		if len(docs.List) == config.MaxDocuments {
			return config.Documents{}, fmt.Errorf("read folder %s: it has more than %d .yaml files", name, config.MaxDocuments)
		}
		path := filepath.Join(name, e.Name())
		data, err := Read(path)
		if err != nil {
			return config.Documents{}, err
		}
		if total += len(data); total > maxTotal {
			return config.Documents{}, fmt.Errorf("read folder %s: its .yaml files have more than %d bytes", name, maxTotal)
		}
		docs.List = append(docs.List, config.Document{Name: path, Data: data})
	}
	if len(docs.List) == 0 {
		return config.Documents{}, fmt.Errorf("read folder %s: it has no .yaml file", name)
	}
	return docs, nil
}
