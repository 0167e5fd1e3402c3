package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

func checkPackageComments(t *Tree, report report) {
	for _, p := range t.Packages {
		files := p.sources()
		if len(files) == 0 {
			continue
		}
		first, told := files[0], 0
		for _, f := range files {
			doc := sentence(f.AST.Doc)
			if doc == "" {
				continue
			}
			told++
			if name := f.AST.Name.Name; name != "main" && !strings.HasPrefix(doc, "Package "+name+" ") {
				report(f.Path, t.line(f.AST.Name), "the package comment does not begin with Package %s", name)
			}
		}
		switch {
		case told == 0:
			report(first.Path, t.line(first.AST.Name), "package %s has no comment", first.AST.Name.Name)
		case told > 1:
			report(first.Path, t.line(first.AST.Name), "package %s has %d comments; one file has it", first.AST.Name.Name, told)
		}
	}
}

// sentence returns a comment's text, without directives.
func sentence(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.TrimSpace(doc.Text())
}

// checkComments holds that exported names have a comment. Fields need one where
// they are settings, because their comments are the reference.
func checkComments(t *Tree, report report) {
	t.eachSource(func(p *Package, f *File) {
		c := commentCheck{t: t, f: f, report: report, settings: settingsFolder(p.Dir)}
		for _, d := range f.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				c.function(d)
			case *ast.GenDecl:
				c.group(d)
			}
		}
	})
}

// settingsFolder reports whether the exported structs of a folder are settings.
func settingsFolder(dir string) bool {
	return dir == "internal/config" || inRoom(dir)
}

type commentCheck struct {
	t        *Tree
	f        *File
	report   report
	settings bool
}

func (c *commentCheck) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() || d.Recv != nil && !exportedReceiver(d.Recv) {
		return
	}
	c.checkStart(d, d.Name.Name, sentence(d.Doc))
}

func exportedReceiver(recv *ast.FieldList) bool {
	for _, field := range recv.List {
		e := field.Type
		for {
			switch x := e.(type) {
			case *ast.StarExpr:
				e = x.X
				continue
			case *ast.IndexExpr:
				e = x.X
				continue
			case *ast.IndexListExpr:
				e = x.X
				continue
			case *ast.Ident:
				return x.IsExported()
			}
			return false
		}
	}
	return false
}

// group checks types, constants and variables. One comment above a block of
// constants or variables is enough for all of them.
func (c *commentCheck) group(d *ast.GenDecl) {
	block := sentence(d.Doc)
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			doc := sentence(s.Doc)
			if doc == "" && !d.Lparen.IsValid() {
				doc = block
			}
			if s.Name.IsExported() {
				c.checkStart(s, s.Name.Name, doc)
				c.fields(s)
			}
		case *ast.ValueSpec:
			if d.Lparen.IsValid() && (block != "" || sentence(s.Doc)+sentence(s.Comment) != "") {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() && block == "" {
					c.report(c.f.Path, c.t.line(name), "exported %s has no comment", name.Name)
				}
			}
		}
	}
}

// fields checks the settings of a struct.
func (c *commentCheck) fields(s *ast.TypeSpec) {
	str, ok := s.Type.(*ast.StructType)
	if !ok || !c.settings {
		return
	}
	for _, field := range str.Fields.List {
		if field.Tag == nil || !strings.Contains(field.Tag.Value, `json:"`) {
			continue
		}
		for _, name := range field.Names {
			if name.IsExported() && sentence(field.Doc)+sentence(field.Comment) == "" {
				c.report(c.f.Path, c.t.line(name), "setting %s.%s has no comment", s.Name.Name, name.Name)
			}
		}
	}
}

// checkStart checks that a comment begins with the name it describes, with or without
// an article.
func (c *commentCheck) checkStart(n ast.Node, name, doc string) {
	if doc == "" {
		c.report(c.f.Path, c.t.line(n), "exported %s has no comment", name)
		return
	}
	for _, article := range []string{"A ", "An ", "The "} {
		doc = strings.TrimPrefix(doc, article)
	}
	rest, ok := strings.CutPrefix(doc, name)
	if !ok || rest != "" && token.IsIdentifier(name+rest[:1]) {
		c.report(c.f.Path, c.t.line(n), "the comment of %s does not begin with its name", name)
	}
}

// note finds notes to do something later. The words are put together here so
// that this file has none of them.
var note = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)

func checkNotes(t *Tree, report report) {
	t.eachFile(func(f *File) {
		for _, group := range f.AST.Comments {
			for _, comment := range group.List {
				for i, line := range strings.Split(comment.Text, "\n") {
					if word := note.FindString(line); word != "" {
						report(f.Path, t.line(comment)+i, "a note: %s", word)
					}
				}
			}
		}
	})
}
