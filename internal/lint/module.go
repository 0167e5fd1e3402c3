package lint

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// module is what the rules need of go.mod.
type module struct {
	path     string
	requires map[string]int // path to line
}

// readModule reads go.mod. It knows as much of its syntax as the go command
// writes: one directive a line, blocks in parentheses.
func readModule(fsys fs.FS) (module, error) {
	text, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return module{}, err
	}
	m := module{requires: map[string]int{}}
	block := ""
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case block != "" && words[0] == ")":
			block = ""
		case block == "require":
			m.requires[words[0]] = n
		case block != "":
		case len(words) == 2 && words[1] == "(":
			block = words[0]
		case words[0] == "module" && len(words) == 2:
			m.path = strings.Trim(words[1], `"`)
		case words[0] == "require" && len(words) == 3:
			m.requires[words[1]] = n
		}
	}
	if m.path == "" {
		return module{}, fmt.Errorf("go.mod: no module line")
	}
	return m, nil
}

// dependencyFile says why each module is there, relative to the module.
const dependencyFile = "deps.txt"

// minWords is how many words a reason has at least.
const minWords = 4

func checkDependencies(t *Tree, report report) {
	mod, err := readModule(t.fsys)
	if err != nil {
		report("go.mod", 0, "cannot be read: %v", err)
		return
	}
	text, err := fs.ReadFile(t.fsys, dependencyFile)
	if err != nil {
		report(dependencyFile, 0, "cannot be read: %v", err)
		return
	}
	told := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		name := words[0]
		switch {
		case told[name]:
			report(dependencyFile, n, "%s has two lines", name)
		case mod.requires[name] == 0:
			report(dependencyFile, n, "%s is not required by go.mod", name)
		case len(words) <= minWords:
			report(dependencyFile, n, "%s has no reason", name)
		}
		told[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(mod.requires)) {
		if !told[name] {
			report("go.mod", mod.requires[name], "%s is not in %s", name, dependencyFile)
		}
	}
}
