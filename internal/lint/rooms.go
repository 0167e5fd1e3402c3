package lint

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// roomsFolder is where the rooms are, relative to the module.
const roomsFolder = "internal/feature"

// inRoom reports whether a folder is a room or below one.
func inRoom(dir string) bool { return strings.HasPrefix(dir, roomsFolder+"/") }

func checkRooms(t *Tree, report report) {
	for _, p := range t.Packages {
		if path.Dir(p.Dir) != roomsFolder || len(p.sources()) == 0 {
			continue
		}
		if !p.declaresConfig() {
			report(path.Join(p.Dir, "config.go"), 0, "room %s does not declare type Config here", p.Name)
		}
		guide := path.Join(p.Dir, "guide.md")
		if text, err := fs.ReadFile(t.fsys, guide); err != nil || len(strings.TrimSpace(string(text))) == 0 {
			report(guide, 0, "room %s has no guide", p.Name)
		}
		if !p.hasTest() {
			report(path.Join(p.Dir, p.Name+"_test.go"), 0, "room %s has no test", p.Name)
		}
	}
}

// declaresConfig reports whether config.go declares the type Config: a struct,
// or another name for a scalar.
func (p *Package) declaresConfig() bool {
	for _, f := range p.sources() {
		if path.Base(f.Path) != "config.go" {
			continue
		}
		for _, d := range f.AST.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				if spec.(*ast.TypeSpec).Name.Name == "Config" {
					return true
				}
			}
		}
	}
	return false
}

// hasTest reports whether any of the package's files has a test function.
func (p *Package) hasTest() bool {
	for _, f := range p.Files {
		if !f.Test {
			continue
		}
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				return true
			}
		}
	}
	return false
}

// checkStatus finds status codes in rooms: net/http's names for them, and bare
// numbers from 400 to 599.
func checkStatus(t *Tree, report report) {
	t.eachSource(func(p *Package, f *File) {
		if !inRoom(p.Dir) {
			return
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				pkg, ok := n.X.(*ast.Ident)
				if ok && pkg.Name == "http" && strings.HasPrefix(n.Sel.Name, "Status") {
					report(f.Path, t.line(n), "http.%s in a room", n.Sel.Name)
				}
			case *ast.BasicLit:
				code, err := strconv.Atoi(n.Value)
				if n.Kind == token.INT && err == nil && code >= 400 && code <= 599 {
					report(f.Path, t.line(n), "status %d in a room", code)
				}
			}
			return true
		})
	})
}
