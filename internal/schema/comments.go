package schema

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// Comments are the comments of the types and fields of a program, read from its
// source. It is for generators; a running headgate has no source.
type Comments struct {
	module, root string
	packages     map[string]map[string]string
}

// NewComments returns the comments of the module with this name, whose source is in the
// directory root. Packages are parsed when they are needed.
func NewComments(module, root string) *Comments {
	return &Comments{module: module, root: root, packages: map[string]map[string]string{}}
}

// Object returns the first paragraph of the comment of an object's type, which is for
// operators; the rest is for developers. It begins with the name that operators know the
// object by. The error means that the source could not be read or has no comment.
func (c *Comments) Object(o *Object) (string, error) {
	text, err := c.find(o.Go.PkgPath(), o.Go.Name())
	text, _, _ = strings.Cut(text, "\n\n")
	if rest, ok := strings.CutPrefix(text, o.Go.Name()+" "); ok {
		text = o.Name() + " " + rest
	}
	return text, err
}

// Field returns the comment of a field, with the meaning of absent if that differs from its
// default.
func (c *Comments) Field(f *Field) (string, error) {
	text, err := c.find(f.Owner.PkgPath(), f.Owner.Name()+"."+f.GoName)
	if err == nil && f.fallsBack() {
		text += fmt.Sprintf(" Absent means that the value is inherited; the default is %s.", f.Default)
	}
	return text, err
}

func (c *Comments) find(path, name string) (string, error) {
	if c.packages[path] == nil {
		if err := c.read(path); err != nil {
			return "", err
		}
	}
	text := c.packages[path][name]
	if text == "" {
		return "", fmt.Errorf("%s.%s has no comment", path, name)
	}
	return text, nil
}

// read reads the comments of one package.
func (c *Comments) read(path string) error {
	rel, ok := strings.CutPrefix(path, c.module+"/")
	if !ok {
		return fmt.Errorf("package %s is not of module %s", path, c.module)
	}
	files, err := filepath.Glob(filepath.Join(c.root, filepath.FromSlash(rel), "*.go"))
	if err != nil {
		return err
	}
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		collectComments(parsed, found)
	}
	c.packages[path] = found
	return nil
}

// collectComments adds the comments of a file's struct types.
func collectComments(file *ast.File, found map[string]string) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			t := spec.(*ast.TypeSpec)
			doc := t.Doc
			if doc == nil {
				doc = gen.Doc
			}
			found[t.Name.Name] = clean(doc.Text(), t.Name.Name, "")
			if st, ok := t.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, n := range f.Names {
						name, _, _ := strings.Cut(reflect.StructTag(tagText(f)).Get("json"), ",")
						found[t.Name.Name+"."+n.Name] = clean(f.Doc.Text(), n.Name, name)
					}
				}
			}
		}
	}
}

func tagText(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	return strings.Trim(f.Tag.Value, "`")
}

// clean joins the lines of a paragraph and puts a field's name in place of its
// Go name, which begins the comment.
func clean(text, goName, name string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	text = strings.Join(paragraphs, "\n\n")
	if rest, ok := strings.CutPrefix(text, goName+" "); ok && name != "" {
		return "`" + name + "` " + rest
	}
	return text
}
