package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// logMethods are the methods by which a line is logged.
var logMethods = map[string]bool{"Debug": true, "Info": true, "Warn": true, "Error": true, "With": true}

// checkLogKeys finds log lines in which an error has another key than the one
// that operators search for.
func checkLogKeys(t *Tree, report report) {
	t.eachSource(func(_ *Package, f *File) {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !logMethods[method.Sel.Name] {
				return true
			}
			for i, arg := range call.Args {
				if i == 0 && method.Sel.Name != "With" {
					continue // the message
				}
				if key, ok := arg.(*ast.BasicLit); ok && key.Value == `"err"` {
					report(f.Path, t.line(key), `the log key "err"`)
				}
			}
			return true
		})
	})
}

// checkMax finds names of a maximum that begin or end with most, each once in a file.
func checkMax(t *Tree, report report) {
	t.eachFile(func(f *File) {
		told := map[string]bool{}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || told[id.Name] {
				return true
			}
			rest, begins := strings.CutPrefix(id.Name, "most")
			if ends := strings.HasSuffix(id.Name, "Most") && !strings.HasSuffix(id.Name, "AtMost"); ends || begins && rest != "" && 'A' <= rest[0] && rest[0] <= 'Z' {
				told[id.Name] = true
				report(f.Path, t.line(id), "the name %s", id.Name)
			}
			return true
		})
	})
}

// bareVerbs are names of functions and interface methods that are clear only to those who
// wrote them; privateNouns are names of types that no other proxy has.
var (
	bareVerbs = wordSet("ask asks asked begin begins believe bury give gives hear heard hears judge look looks " +
		"mend say says said settle stand stands sure take takes taken tell tells told wants")
	privateNouns = wordSet("bury errand letter lying passage shelf told twin wellness")
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// checkVerbs finds functions, methods and types whose whole name is one of these words.
func checkVerbs(t *Tree, report report) {
	named := func(f *File, words map[string]bool, id *ast.Ident) {
		if words[strings.ToLower(id.Name)] {
			report(f.Path, t.line(id), "the name %s", id.Name)
		}
	}
	t.eachFile(func(f *File) {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				named(f, bareVerbs, n.Name)
			case *ast.TypeSpec:
				named(f, privateNouns, n.Name)
			case *ast.InterfaceType:
				for _, method := range n.Methods.List {
					for _, id := range method.Names {
						named(f, bareVerbs, id)
					}
				}
			}
			return true
		})
	})
}

// people matches words for people in place of the field's terms: a reader, a caller, a
// client, another process. NoBody of package http is an identifier and does not match.
// phrases matches turns that no reader of another project's documentation meets: something
// is somewhere, differs, is reported.
var (
	people  = regexp.MustCompile(`\b([Nn]obody|[Ss]omebody|[Ww]ho(?:m)?ever|[Ee]verybody|[Aa]nybody)\b`)
	phrases = regexp.MustCompile(`\b([Aa]nother than|([Tt]ell|[Hh]ear)s of|[Ss]tands? (?:in|at|there|so|beside)|[Tt]his is no|in the clear|management port|small letters)\b`)
)

// wordsAllowed are folders and files where these words are allowed: this package, which has them in
// its rules, and pending ones, which are rewritten by others at the moment. Remove a
// pending one when it is free of the words.
var wordsAllowed = []string{
	"internal/lint/",
	// pending
	"internal/feature/gate/", "internal/feature/signin/", "internal/gate/",
}

// phrasesAllowed are the same for phrases: programs that measure and test, and what is pending.
var phrasesAllowed = append([]string{
	"bench/", "interop/", "spec/",
	// pending
	"internal/store/",
}, wordsAllowed...)

// checkWords finds comments and strings that say nobody, somebody or the like, or use a
// private phrase.
func checkWords(t *Tree, report report) {
	t.eachSource(func(_ *Package, f *File) {
		if f.Generated {
			return // the text is checked where it comes from
		}
		for _, rule := range []struct {
			words   *regexp.Regexp
			allowed []string
		}{{people, wordsAllowed}, {phrases, phrasesAllowed}} {
			if !hasPrefix(f.Path, rule.allowed) {
				eachText(f, func(at token.Pos, text string) {
					start := t.fset.Position(at).Line
					for _, m := range rule.words.FindAllStringIndex(text, -1) {
						report(f.Path, start+strings.Count(text[:m[0]], "\n"), "the word %s", text[m[0]:m[1]])
					}
				})
			}
		}
	})
}

func hasPrefix(path string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// eachText calls found with each comment and each string of a file.
func eachText(f *File, found func(at token.Pos, text string)) {
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			found(c.Pos(), c.Text)
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			found(s.Pos(), s.Value)
		}
		return true
	})
}
