package lint

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// layersFile is where the layers stand, relative to the module.
const layersFile = "internal/lint/layers.txt"

// layer is one line of the layers file.
type layer struct {
	depth    int // the highest is 0
	patterns []string
}

func checkLayers(t *Tree, report report) {
	text, err := fs.ReadFile(t.fsys, layersFile)
	if err != nil {
		report(layersFile, 0, "cannot be read: %v", err)
		return
	}
	layers := parseLayers(string(text))
	t.eachSource(func(p *Package, f *File) {
		from, ok := depthOf(layers, p.Dir)
		if !ok {
			report(f.Path, t.line(f.AST.Name), "package %s stands on no line", p.Dir)
			return
		}
		for _, spec := range f.AST.Imports {
			dir, ours := t.ours(spec.Path.Value)
			if !ours || dir == p.Dir {
				continue
			}
			to, ok := depthOf(layers, dir)
			switch {
			case !ok: // told at the package itself
			case to == from:
				report(f.Path, t.line(spec), "%s imports %s of its own line", p.Dir, dir)
			case to < from:
				report(f.Path, t.line(spec), "%s imports %s, which is above it", p.Dir, dir)
			}
		}
	})
}

// ours returns the folder of a quoted import path, and whether it is of this
// module.
func (t *Tree) ours(quoted string) (dir string, ok bool) {
	p, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(p, t.Module+"/")
}

func parseLayers(text string) []layer {
	var layers []layer
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if patterns := strings.Fields(line); len(patterns) > 0 {
			layers = append(layers, layer{depth: len(layers), patterns: patterns})
		}
	}
	return layers
}

// depthOf returns how deep a folder lies. A pattern without a star wins over one
// that has one.
func depthOf(layers []layer, dir string) (depth int, ok bool) {
	name := strings.TrimPrefix(dir, "internal/")
	for _, l := range layers {
		for _, pattern := range l.patterns {
			if pattern == name {
				return l.depth, true
			}
			if match, err := path.Match(pattern, name); err == nil && match {
				depth, ok = l.depth, true
			}
		}
	}
	return depth, ok
}
