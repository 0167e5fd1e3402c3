package lint

import (
	"go/ast"
	"path"
	"strconv"
	"strings"
)

// planFolder is where configurations are compiled, relative to the module. What is
// below it, such as the inputs that a compile gets, is not part of the compile.
const planFolder = "internal/plan"

// checkPure finds what a compile must not do. All of plan is a compile, but for its
// Start, which starts what was compiled. In rooms and in upstream it is each function
// that asks for an exchange.Env, in the folders of server and stream each that makes
// something, and the functions and methods of the package that it uses: by their names,
// as no types are known here. What a filter does with an exchange happens later and is
// left out.
func checkPure(t *Tree, report report) {
	for _, p := range t.Packages {
		switch {
		case p.Dir == planFolder || path.Dir(p.Dir) == planFolder && path.Base(p.Dir) != "inputs":
			for _, f := range p.sources() {
				t.impure(f, f.AST, report)
			}
		case inRoom(p.Dir) || p.Dir == "internal/upstream":
			for fn, f := range p.compiles(asksForEnv) {
				t.impure(f, fn, report)
			}
		case path.Dir(p.Dir) == "internal/server" || path.Dir(p.Dir) == "internal/stream":
			for fn, f := range p.compiles(makes) {
				if !hasParameter(fn.Type, "context", "Context") { // what waits for others is called later
					t.impure(f, fn, report)
				}
			}
		}
	}
}

// asksForEnv reports whether a function is where the compile of a room begins.
func asksForEnv(fn *ast.FuncDecl) bool {
	return fn.Recv == nil && hasParameter(fn.Type, "exchange", "Env")
}

// makes reports whether a function makes what a compile asks servers and streams for.
func makes(fn *ast.FuncDecl) bool {
	return asksForEnv(fn) || fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "New")
}

// compiles returns the functions and methods of a compile, with their files: those
// with which one begins, and what they use.
func (p *Package) compiles(begins func(*ast.FuncDecl) bool) map[*ast.FuncDecl]*File {
	all, byName := map[*ast.FuncDecl]*File{}, map[string][]*ast.FuncDecl{}
	var open []*ast.FuncDecl
	for _, f := range p.sources() {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				all[fn] = f
				byName[fn.Name.Name] = append(byName[fn.Name.Name], fn)
				if begins(fn) {
					open = append(open, fn)
				}
			}
		}
	}
	found := map[*ast.FuncDecl]*File{}
	for len(open) > 0 {
		fn := open[0]
		open = open[1:]
		if found[fn] != nil {
			continue
		}
		found[fn] = all[fn]
		for name := range used(fn) {
			for _, next := range byName[name.name] {
				if (next.Recv != nil) == name.method {
					open = append(open, next)
				}
			}
		}
	}
	return found
}

// use is a function or a method that is used, by its name.
type use struct {
	name   string
	method bool
}

// used returns the functions that a function names and the methods that it calls.
// A method that it hands on is called by others, later.
func used(fn *ast.FuncDecl) map[use]bool {
	found := map[use]bool{}
	eachCompiled(fn, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				found[use{s.Sel.Name, true}] = true
			}
		case *ast.Ident:
			found[use{n.Name, false}] = true
		}
	})
	return found
}

// eachCompiled calls f for all below a node but functions that take an exchange, which
// are called for requests, and methods Start, which are called when a plan is taken into
// use.
func eachCompiled(root ast.Node, f func(ast.Node)) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if hasParameter(n.Type, "exchange", "Exchange") {
				return false
			}
		case *ast.FuncDecl:
			if n.Recv != nil && n.Name.Name == "Start" {
				return false
			}
		}
		if n != nil {
			f(n)
		}
		return true
	})
}

// hasParameter reports whether a function has a parameter of a type, or a pointer to it.
func hasParameter(fn *ast.FuncType, pkg, name string) bool {
	for _, field := range fn.Params.List {
		of := field.Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if isNamed(of, pkg, name) {
			return true
		}
	}
	return false
}

func isNamed(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// impure reports what is not pure below a node of a file.
func (t *Tree) impure(f *File, root ast.Node, report report) {
	imports := importsOf(f.AST)
	eachCompiled(root, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(f.Path, t.line(n), "a goroutine in a compile")
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && outside(imports[pkg.Name], n.Sel.Name) {
				report(f.Path, t.line(n), "%s.%s in a compile", pkg.Name, n.Sel.Name)
			}
		case *ast.CallExpr:
			if logs(n) {
				report(f.Path, t.line(n), "a log line in a compile")
			}
		}
	})
}

// outside reports whether a name of a package of the standard library reads, sends or
// starts something, or logs.
func outside(pkg, name string) bool {
	begins := func(words ...string) bool {
		for _, w := range words {
			if strings.HasPrefix(name, w) {
				return true
			}
		}
		return false
	}
	switch pkg {
	case "os":
		// Errors and bits of a mode are values that tell of files, not files.
		return !begins("Err", "PathError", "Mode", "FileMode", "FileInfo", "IsNotExist", "IsExist")
	case "os/exec", "os/signal", "log", "io/ioutil", "syscall":
		return true
	case "net", "crypto/tls":
		return begins("Dial", "Listen", "Lookup", "FileConn", "FileListener", "LoadX509KeyPair")
	case "net/http":
		return begins("Get", "Head", "Post", "ListenAndServe", "Serve", "DefaultClient")
	case "log/slog":
		return begins("Debug", "Info", "Warn", "Error", "Log", "Default", "SetDefault") && name != "Logger"
	case "time":
		return begins("AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep")
	case "context":
		return name == "AfterFunc"
	}
	return false
}

// logs reports whether a call writes a line to what is called a log.
func logs(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	switch s.Sel.Name {
	case "Debug", "Info", "Warn", "Error", "Log", "LogAttrs", "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
	default:
		return false
	}
	of := ""
	switch x := s.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	}
	return strings.EqualFold(of, "log") || strings.EqualFold(of, "logger")
}

// importsOf returns the paths of a file's imports by their names there.
func importsOf(f *ast.File) map[string]string {
	found := map[string]string{}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		found[name] = p
	}
	return found
}
