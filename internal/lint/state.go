package lint

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
)

// checkState finds assignments to package variables: to the variable itself, to
// a field or an element of it, and its increments. What a method of the variable
// does is not seen.
func checkState(t *Tree, report report) {
	for _, p := range t.Packages {
		files := p.sources()
		scope, uses := t.resolve(p.Dir, files)
		for _, f := range files {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				for _, target := range assigned(n) {
					id := root(target)
					if id == nil {
						continue
					}
					if v, ok := uses[id].(*types.Var); ok && v.Parent() == scope {
						report(f.Path, t.line(target), "package variable %s is changed", id.Name)
					}
				}
				return true
			})
		}
	}
}

// resolve finds what each name of a package means. Imports are not followed and
// files of different systems are taken together, so many things do not check;
// package variables and what hides them are found all the same.
func (t *Tree) resolve(dir string, files []*File) (*types.Scope, map[*ast.Ident]types.Object) {
	parsed := make([]*ast.File, len(files))
	for i, f := range files {
		parsed[i] = f.AST
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{
		Importer:    nothing{},
		FakeImportC: true,
		Error:       func(error) {},
	}
	pkg, _ := config.Check(dir, t.fset, parsed, info)
	return pkg.Scope(), info.Uses
}

// nothing imports nothing.
type nothing struct{}

// Import always fails.
func (nothing) Import(string) (*types.Package, error) {
	return nil, errors.New("imports are not followed")
}

// assigned returns what a statement assigns to.
func assigned(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	}
	return nil
}

// root returns the name at the beginning of x.field, x[i] and *x.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
