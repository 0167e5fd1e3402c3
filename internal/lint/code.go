package lint

import (
	"go/ast"
	"path"
	"strings"
)

// maxLines is how long a file may be.
const maxLines = 700

func checkInit(t *Tree, report report) {
	t.eachFile(func(f *File) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				report(f.Path, t.line(fn), "func init runs implicitly")
			}
		}
	})
}

func checkBlankImports(t *Tree, report report) {
	t.eachFile(func(f *File) {
		for _, spec := range f.AST.Imports {
			if spec.Name != nil && spec.Name.Name == "_" && spec.Path.Value != `"embed"` {
				report(f.Path, t.line(spec), "blank import of %s", spec.Path.Value)
			}
		}
	})
}

func checkLength(t *Tree, report report) {
	t.eachFile(func(f *File) {
		if f.Lines > maxLines && !f.Generated {
			report(f.Path, maxLines+1, "%d lines; %d are the most", f.Lines, maxLines)
		}
	})
}

// badNames are words that say nothing, or too much.
const badNames = " base common consts constants director entrypoint helper helpers lib manager middleware misc service shared types util utils backend "

func checkNames(t *Tree, report report) {
	bad := func(name string) bool { return strings.Contains(badNames, " "+name+" ") }
	for _, p := range t.Packages {
		dir := path.Base(p.Dir)
		for i, f := range p.sources() {
			if name := f.AST.Name.Name; i == 0 && (bad(name) || bad(dir)) {
				report(f.Path, t.line(f.AST.Name), "a package named %s", name)
			} else if name != "main" && p.Dir != "." && name != dir {
				report(f.Path, t.line(f.AST.Name), "package %s in a folder named %s", name, dir)
			}
		}
		for _, f := range p.Files {
			name, _, _ := strings.Cut(strings.TrimSuffix(path.Base(f.Path), ".go"), "_")
			if bad(name) {
				report(f.Path, 0, "a file named %s", path.Base(f.Path))
			}
		}
	}
}
