package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Tree is the source of a module, parsed. It does not change after Load.
type Tree struct {
	// Module is the module's path, as go.mod gives it.
	Module string
	// Packages are the module's packages by folder, in order.
	Packages []*Package

	fsys fs.FS
	fset *token.FileSet
}

// Package is one folder with Go files.
type Package struct {
	// Dir is the folder relative to the module, with slashes; "." is the root.
	Dir string
	// Name is the name in the package clause of the files that are not tests,
	// or "" when all are.
	Name string
	// Files are the Go files in order, tests among them, whatever system they
	// are for.
	Files []*File
}

// File is one Go file.
type File struct {
	// Path is relative to the module, with slashes.
	Path string
	// Test is whether the file is only part of tests.
	Test bool
	// Generated is whether a program wrote the file.
	Generated bool
	// Lines is the number of lines.
	Lines int
	// AST is the file as parsed, with comments.
	AST *ast.File
}

// Load parses every Go file of the module at the root of fsys. It leaves out
// what the go command leaves out too: folders named testdata, folders whose name
// begins with a dot or an underscore, and other modules inside this one.
func Load(fsys fs.FS) (*Tree, error) {
	mod, err := readModule(fsys)
	if err != nil {
		return nil, err
	}
	t := &Tree{Module: mod.path, fsys: fsys, fset: token.NewFileSet()}
	err = fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && t.leftOut(p):
			return fs.SkipDir
		case !d.IsDir() && path.Ext(p) == ".go":
			return t.parse(p)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tree) leftOut(dir string) bool {
	name := path.Base(dir)
	if name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_' {
		return true
	}
	_, err := fs.Stat(t.fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func (t *Tree) parse(p string) error {
	src, err := fs.ReadFile(t.fsys, p)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(t.fset, p, src, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parse %w", err)
	}
	f := &File{
		Path:      p,
		Test:      strings.HasSuffix(p, "_test.go"),
		Generated: ast.IsGenerated(file),
		Lines:     strings.Count(string(src), "\n"),
		AST:       file,
	}
	pkg := t.packageAt(path.Dir(p))
	pkg.Files = append(pkg.Files, f)
	if !f.Test && pkg.Name == "" {
		pkg.Name = file.Name.Name
	}
	return nil
}

// packageAt returns the package of a folder. Files come in order of their path,
// but those of a folder's own files and its sub-folders are mixed.
func (t *Tree) packageAt(dir string) *Package {
	i, ok := slices.BinarySearchFunc(t.Packages, dir, func(p *Package, dir string) int {
		return strings.Compare(p.Dir, dir)
	})
	if !ok {
		t.Packages = slices.Insert(t.Packages, i, &Package{Dir: dir})
	}
	return t.Packages[i]
}

// sources returns the files that are not tests.
func (p *Package) sources() []*File {
	var out []*File
	for _, f := range p.Files {
		if !f.Test {
			out = append(out, f)
		}
	}
	return out
}
