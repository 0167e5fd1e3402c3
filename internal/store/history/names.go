package history

import (
	"path/filepath"
	"strings"
)

// baseOf returns the name of a document within its folder, also if the path is that of a
// machine with another system.
func baseOf(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }

// namesHere returns a func that gives the documents of a revision the paths that they have
// on this machine. The only document of a revision is that of a machine which serves one
// file, whatever the file is called. Where nothing is shared any more, full paths stay.
func (h *History) namesHere() func([]Kept) {
	if h.options.Folder == nil {
		return func([]Kept) {}
	}
	path, single := h.options.Folder()
	folder := path
	if single {
		folder = filepath.Dir(path)
	}
	return func(docs []Kept) {
		for i := range docs {
			if !h.options.Shared && filepath.IsAbs(docs[i].Name) {
				continue
			}
			if single && len(docs) == 1 {
				docs[i].Name = path
				continue
			}
			docs[i].Name = filepath.Join(folder, baseOf(docs[i].Name))
		}
	}
}
