package nginx

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// scope are the blocks whose directives hold, the innermost first.
type scope []*directive

// level returns the directives with a name in the innermost block that has one: in nginx
// a block with some of its own has none of those around it. Of several names all are
// returned, in their order.
func (s scope) level(names ...string) []*directive {
	for _, b := range s {
		if found := b.find(names...); len(found) > 0 {
			return found
		}
	}
	return nil
}

// last returns the last argument list of a name that holds, nil if there is none.
func (s scope) last(name string) *directive {
	if all := s.level(name); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// view is what is known of requests: they are of a site, and of a region of methods,
// headers and parameters. In it every condition is true or not.
type view struct {
	t      *translator
	site   *site
	region rules.Region
	vars   map[string]string // of set, and of groups
	depth  int               // of maps in maps
	// gathering is while the atoms of a map are collected, before its regions are known.
	gathering bool
}

// flow is what becomes of requests before a location answers them: what the directives
// if, set, return and rewrite do.
type flow struct {
	redirects []importer.Object // rules by the path, in order
	answer    *directive        // a return for all that is left
	closed    bool              // a rule matches all that is left
	rewrite   *directive        // it changes the path
	holds     []*directive      // blocks of if that hold, the last one first
	kept      kept              // the clients that are refused by their addresses
}

func (f *flow) over() bool { return f.answer != nil || f.closed }

// run goes through the directives of a block in their order, until one of them answers.
func (v *view) run(f *flow, block []*directive) {
	for _, d := range block {
		switch d.name {
		case "set", "set_escape_uri":
			v.vars[strings.TrimPrefix(d.arg(0), "$")] = v.expand(d.arg(1))
			v.t.Became(d, importer.Same, importer.Through(v.t.users(strings.TrimPrefix(d.arg(0), "$"))...), "its value is written where it is used")
		case "if":
			v.runIf(f, d)
		case "limit_except":
			v.limitExcept(f, d)
		case "return":
			f.answer = d
		case "rewrite":
			v.redirectRule(f, d)
		case "break":
			v.t.Became(d, importer.Same, importer.ByItself(), "")
			return
		}
		if f.over() {
			return
		}
	}
}

// limitExcept applies the content of the block to all methods except some.
func (v *view) limitExcept(f *flow, d *directive) {
	v.t.Became(d, importer.Same, importer.Through(d.block...), "")
	if exceptMethods(d).Within(v.region) {
		v.t.held[d] = true
		f.holds = append([]*directive{d}, f.holds...)
	}
}

// exceptMethods is when the block of a limit_except applies. GET includes HEAD.
func exceptMethods(d *directive) (c rules.Condition) {
	names := d.args
	if slices.Contains(names, "GET") {
		names = append(names[:len(names):len(names)], "HEAD")
	}
	for _, m := range names {
		c = c.Or(rules.One(&rules.Atom{Kind: rules.Method, Value: m}))
	}
	return c.Not()
}

// runIf runs the block of an if that holds.
func (v *view) runIf(f *flow, d *directive) {
	if v.redirectByPath(f, d) || v.refuseByAddress(f, d) {
		return
	}
	c, groups := v.condition(d)
	if c.Problem != "" {
		v.t.AddVerdict(d, importer.Impossible, "%s", c.Problem)
		return
	}
	if len(c.Notes) > 0 {
		v.t.Became(d, importer.Close, importer.Through(d.block...), "%s", strings.Join(c.Notes, "; "))
	} else {
		v.t.Became(d, importer.Same, importer.Through(d.block...), "")
	}
	if !c.Within(v.region) {
		return
	}
	for name, value := range groups {
		v.vars[name] = value
	}
	v.t.held[d] = true
	f.holds = append([]*directive{d}, f.holds...)
	v.run(f, d.block)
}

// redirectByPath makes a rule of an if on the path with an expression that redirects
// clients.
func (v *view) redirectByPath(f *flow, d *directive) bool {
	name, op, expr := ifWords(d)
	if name != "$uri" && name != "$request_uri" && name != "$document_uri" || op != "~" && op != "~*" || len(d.block) != 1 {
		return false
	}
	r := d.block[0]
	code, text := returned(r)
	if op == "~*" {
		expr = "(?i)" + expr
	}
	if r.name != "return" || !isRedirect(code) || text == "" || checkRegex(expr) != "" || strings.Contains(expr, "?") && name == "$request_uri" && strings.Contains(expr, `\?`) {
		return false
	}
	target, note, what := v.target(text, true)
	if what != "" {
		return false
	}
	if name == "$request_uri" {
		note = join(note, "the expression sees the path without its query")
	}
	rule := redirect(expr, target, code)
	f.redirects = append(f.redirects, rule)
	v.t.Became(d, importer.Same, rule.As("redirects"), "a redirect rule")
	v.t.Became(r, verdictOf(note), rule.As("redirects"), "%s", note)
	v.t.held[d] = true
	return true
}

func redirect(expr, target string, status int) importer.Object {
	return importer.NewObject().Set("regex", expr).Set("target", target).Set("status", status).Flow()
}

func join(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}

func verdictOf(note string) importer.Verdict {
	if note != "" {
		return importer.Close
	}
	return importer.Same
}

// takesAll are expressions that match every path.
var takesAll = []string{"^", "^/", ".*", "^.*", "^.*$", "^(.*)$", "^(.*)", "(.*)", "^/(.*)$", "^/(.*)", "^/.*$", "^/.*", "/", "$"}

// redirectRule reads the directive rewrite: a redirect rule, or a change of the path.
func (v *view) redirectRule(f *flow, d *directive) {
	expr, replacement, flag := d.arg(0), v.expandBut(d.arg(1), true), d.arg(2)
	if what := checkRegex(expr); what != "" {
		v.t.AddVerdict(d, importer.Impossible, "%s", what)
		return
	}
	status := map[string]int{"permanent": 301, "redirect": 302}[flag]
	if status == 0 && (strings.HasPrefix(replacement, "http://") || strings.HasPrefix(replacement, "https://") || strings.HasPrefix(replacement, "$scheme")) {
		status = 302
	}
	if status == 0 {
		if f.rewrite != nil && f.rewrite != d {
			v.t.AddVerdict(d, importer.Impossible, "a route has one rewrite; this is another")
			return
		}
		f.rewrite = d
		return
	}
	text, drops := strings.CutSuffix(replacement, "?")
	target, note, what := v.target(text, true)
	if what != "" {
		v.t.AddVerdict(d, importer.Impossible, "%s", what)
		return
	}
	// A rewrite keeps the query, unless its text ends with a question mark.
	target = strings.TrimSuffix(target, "?")
	if drops {
		target += "?"
	} else if strings.Contains(target, "?") {
		note = join(note, "the query of the request is left out, where nginx appends it")
	}
	rule := redirect(expr, target, status)
	f.redirects = append(f.redirects, rule)
	f.closed = slices.Contains(takesAll, expr)
	v.t.Became(d, verdictOf(note), rule.As("redirects"), "%s", note)
}

// returned is what a return sends: its status and its text, or URL.
func returned(d *directive) (code int, text string) {
	code, ok := number(d.arg(0))
	switch {
	case !ok && len(d.args) == 1:
		return 302, d.arg(0)
	case len(d.args) > 1:
		return code, d.arg(1)
	}
	return code, ""
}

func isRedirect(code int) bool {
	return code == 301 || code == 302 || code == 303 || code == 307 || code == 308
}

var requestURI = strings.NewReplacer("${request_uri}", "\x01", "$request_uri", "\x01", "$uri$is_args$args", "\x01", "$uri?$args", "\x01", "$uri$is_args$query_string", "\x01", "$document_uri$is_args$args", "\x01")

// requestURIs writes path and query as one variable.
var requestURIs = strings.NewReplacer("${request_uri}", "$request_uri", "$uri$is_args$args", "$request_uri", "$uri?$args", "$request_uri", "$uri$is_args$query_string", "$request_uri", "$document_uri$is_args$args", "$request_uri")

var group = regexp.MustCompile(`\$([0-9])`)

// target returns the target of a redirect rule. With groups, $1 is one of the rule's
// expression. The query is dropped where nginx drops it.
func (v *view) target(text string, groups bool) (out, note, what string) {
	text = v.expandBut(text, groups)
	keeps := false
	marked := requestURI.Replace(text)
	if strings.Contains(marked, "\x01") {
		keeps, note = true, "the path is sent in its normal form: dot segments resolved, // merged"
	}
	for _, args := range []string{"$is_args$args", "?$args", "$is_args$query_string", "?$query_string"} {
		if rest, ok := strings.CutSuffix(marked, args); ok {
			marked, keeps = rest, true
		}
	}
	if groups {
		marked = group.ReplaceAllString(marked, "\x00$1")
	}
	out, what = variables(marked)
	out = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(out, "$", "$$"), "\x00", "$"), "\x01", "{path}")
	switch {
	case what != "":
		return "", "", what
	case strings.HasPrefix(out, "/"):
		note = join(note, "Location is relative; nginx writes scheme, host and port in front")
	case !strings.HasPrefix(out, "http://") && !strings.HasPrefix(out, "https://") && !strings.HasPrefix(out, "{scheme}://"):
		return "", "", "a target is a path, or a URL with http:// or https://"
	}
	if strings.Contains(text, "$host") || strings.Contains(text, "${host}") {
		note = join(note, hostNote)
	}
	if !keeps && !strings.Contains(out, "?") {
		out += "?"
	}
	return out, note, ""
}

const hostNote = "{host} is in the letters that the client used; nginx writes small ones"
