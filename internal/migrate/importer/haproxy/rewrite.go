package haproxy

import (
	"strings"

	"headgate/internal/migrate/importer"
)

// rewrite changes the path that a server gets.
func rewrite(name string, args []string) (func(*outcome), string) {
	var o importer.Object
	switch {
	case name == "set-path" && len(args) == 1:
		if o = setPath(args[0]); o.Empty() {
			return nil, "a path is set to a text, to one with %[path] at its end, or by regsub"
		}
	case (name == "replace-path" || name == "replace-uri") && len(args) == 2:
		if name == "replace-uri" && strings.Contains(args[0]+args[1], "?") {
			return nil, "a rewrite sees no query"
		}
		if what := checkRegex(args[0]); what != "" {
			return nil, what
		}
		o = importer.NewObject().Set("regex", whole(args[0])).Set("replacement", groups(args[1]))
	default:
		return nil, "a rewrite has an expression and what it becomes"
	}
	o.Set("rewrite_response", false)
	return func(out *outcome) { out.feature("rewrite", o.Flow()) }, "the result is brought into the normal form of a path"
}

func setPath(text string) importer.Object {
	prefix, ok := strings.CutSuffix(text, "%[path]")
	switch {
	case !strings.Contains(text, "%["):
		return importer.NewObject().Set("regex", "^.*$").Set("replacement", strings.ReplaceAll(strings.ReplaceAll(text, "%%", "%"), "$", "$$"))
	case ok && !strings.Contains(prefix, "%") && plainPath.MatchString(prefix) && prefix != "/":
		return importer.NewObject().Set("regex", "^").Set("replacement", strings.ReplaceAll(strings.TrimSuffix(prefix, "/"), "$", "$$"))
	}
	inner, ok := strings.CutPrefix(text, "%[path,regsub(")
	inner, closed := strings.CutSuffix(inner, ")]")
	expr, to, cut := strings.Cut(inner, ",")
	if expr = strings.Trim(expr, `"'`); !ok || !closed || !cut || checkRegex(expr) != "" || strings.Contains(to, ",") {
		return importer.Object{}
	}
	return importer.NewObject().Set("regex", expr).Set("replacement", groups(strings.Trim(to, `"'`)))
}

// whole makes an expression match all of a text, as HAProxy replaces all of it.
func whole(expr string) string { return "^.*?(?:" + expr + ").*$" }

// groups writes \1 as $1.
func groups(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '$':
			b.WriteString("$$")
		case text[i] == '\\' && i+1 < len(text) && '0' <= text[i+1] && text[i+1] <= '9':
			b.WriteString("${" + text[i+1:i+2] + "}")
			i++
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
