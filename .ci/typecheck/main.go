// Command typecheck reports whether the module's packages are well typed on other
// systems: each argument is os/arch. It reads the source of everything that they
// import and compiles nothing, so it needs no build cache and takes seconds where
// a build takes minutes.
//
// It does not find what only the compiler and the linker know, such as a function
// without a body.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

func main() {
	failed := false
	for _, target := range os.Args[1:] {
		system, arch, ok := strings.Cut(target, "/")
		if !ok {
			fmt.Fprintf(os.Stderr, "typecheck: %q is not of the form os/arch\n", target)
			os.Exit(2)
		}
		if err := check(system, arch); err != nil {
			fmt.Printf("%s: %v\n", target, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as the go command lists it.
type listed struct {
	Dir, ImportPath string
	GoFiles         []string
	ImportMap       map[string]string
	Standard        bool
	Module          *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

// check type-checks the module's packages for one system. The error tells every
// mistake in them.
func check(system, arch string) error {
	all, err := list(system, arch)
	if err != nil {
		return err
	}
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	var mistakes []error
	for _, p := range all { // what is imported comes first
		switch {
		case p.Error != nil:
			mistakes = append(mistakes, errors.New(p.Error.Err))
		case p.ImportPath != "unsafe":
			known[p.ImportPath], err = p.check(known, arch)
			mistakes = append(mistakes, err)
		}
	}
	return errors.Join(mistakes...)
}

// list returns the module's packages and all that they import, in the order in
// which they need each other.
func list(system, arch string) ([]*listed, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=Dir,ImportPath,GoFiles,ImportMap,Standard,Module,Error", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []*listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &listed{}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// check type-checks one package. Of those of others only the declarations are
// looked at.
func (p *listed) check(known map[string]*types.Package, arch string) (*types.Package, error) {
	fset := token.NewFileSet()
	files := make([]*ast.File, len(p.GoFiles))
	parsed := make([]error, len(p.GoFiles))
	var all sync.WaitGroup
	for i, name := range p.GoFiles {
		all.Go(func() {
			files[i], parsed[i] = parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		})
	}
	all.Wait()
	if err := errors.Join(parsed...); err != nil {
		return types.NewPackage(p.ImportPath, ""), err
	}
	ours := p.Module != nil && p.Module.Main
	var mistakes []error
	config := types.Config{
		Importer:         importer{p, known},
		Sizes:            types.SizesFor("gc", arch),
		IgnoreFuncBodies: !ours,
		FakeImportC:      true,
		Error:            func(err error) { mistakes = append(mistakes, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	checked, _ := config.Check(p.ImportPath, fset, files, nil) // the mistakes are collected
	return checked, errors.Join(mistakes...)
}

// importer finds the packages that were checked before.
type importer struct {
	of    *listed
	known map[string]*types.Package
}

// Import returns the package of this path, as the importing package means it.
func (i importer) Import(path string) (*types.Package, error) {
	if vendored := i.of.ImportMap[path]; vendored != "" {
		path = vendored
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s was not listed", path)
}
