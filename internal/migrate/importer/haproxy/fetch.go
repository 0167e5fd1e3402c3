package haproxy

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// sample is what an ACL or a map compares: hdr(host),lower.
type sample struct {
	name, arg  string
	converters []string
}

// sampleOf reads a sample. Variables that hold another one are replaced by
// it.
func (t *translator) sampleOf(s *section, by *directive, text string) sample {
	parts := splitOutside(text, ',')
	name, arg, _ := strings.Cut(parts[0], "(")
	out := sample{name: strings.TrimPrefix(strings.TrimPrefix(name, "req."), "req_"), arg: strings.Trim(strings.TrimSuffix(arg, ")"), `"'`), converters: parts[1:]}
	if out.name == "var" {
		for _, d := range s.rules("http-request") {
			set, ok := strings.CutPrefix(d.arg(0), "set-var("+out.arg)
			if ok && strings.HasPrefix(set, ")") && len(d.words) == 3 && !strings.Contains(d.arg(1), "var(") {
				t.uses(d, by)
				inner := t.sampleOf(s, d, d.arg(1))
				inner.converters = slices.Concat(inner.converters, out.converters)
				return inner
			}
		}
	}
	if base, how, ok := strings.Cut(out.name, "_"); ok && slices.Contains([]string{"hdr", "fhdr", "path", "url", "cook", "urlp"}, base) && how != "param" {
		if len(out.converters) > 0 {
			how = "str" // HAProxy forgets it behind a converter
		}
		out.name, out.converters = base, append(out.converters, "-m "+how)
	}
	switch out.name {
	case "fhdr":
		out.name = "hdr"
	case "url", "pathq", "capture.req.uri":
		out.name = "path"
	case "urlp":
		out.name = "url_param"
	case "capture.req.method":
		out.name = "method"
	}
	return out
}

// splitOutside splits at a byte outside of parentheses.
func splitOutside(text string, at byte) (parts []string) {
	depth, begin := 0, 0
	for i := range len(text) {
		switch {
		case text[i] == '(':
			depth++
		case text[i] == ')':
			depth--
		case text[i] == at && depth <= 0:
			parts, begin = append(parts, text[begin:i]), i+1
		}
	}
	return append(parts, text[begin:])
}

// question is a sample with how it is compared and with what.
type question struct {
	sample
	how    string // str, beg, end, dom, reg, sub, dir, found, ip
	fold   bool   // -i
	lower  bool   // the sample is in lower case
	noPort bool   // a host without its port
	values []string
}

// parseCondition makes a condition of the words behind an acl's name.
func (t *translator) parseCondition(s *section, d *directive, words []string) condition {
	if len(words) == 0 {
		return rules.Impossible("the condition is empty")
	}
	q := question{sample: t.sampleOf(s, d, words[0])}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-i":
			q.fold = true
		case w == "-m" && i+1 < len(words):
			i++
			q.how = words[i]
		case w == "-f" && i+1 < len(words):
			i++
			bound := maxEntries
			if q.name == "src" {
				bound = maxAddresses
			}
			lines, err := t.entriesUpTo(bound, d, words[i])
			if err != nil {
				return rules.Impossible(fmt.Sprintf("the list %s cannot be read: %v", words[i], err))
			}
			begin := len(q.values)
			for _, l := range lines {
				q.values = append(q.values, l[0])
			}
			if q.name == "src" {
				t.Together(filepath.Base(words[i]), t.path(d, words[i]), importer.Prefixes(q.values[begin:]))
			}
		case w == "-n" || w == "-u" && i+1 < len(words):
		case w == "--":
			q.values, i = append(q.values, words[i+1:]...), len(words)
		default:
			q.values = append(q.values, w)
		}
	}
	return q.condition()
}

// condition matches each value.
func (q question) condition() condition {
	for _, c := range q.converters {
		how, isHow := strings.CutPrefix(c, "-m ")
		switch {
		case isHow && q.how == "":
			q.how = how
		case isHow:
		case c == "lower":
			q.lower = true
		case c == "host_only" || c == "field(1,:)" || c == "port_only":
			q.noPort = c != "port_only"
		case c == "url_dec" && q.name == "url_param":
		default:
			return rules.Impossible("headgate cannot match " + c + " of a request")
		}
	}
	if q.how == "" {
		q.how = "str"
	}
	switch q.name {
	case "always_true":
		return rules.Holds()
	case "always_false":
		return condition{}
	case "ssl_fc":
		c := rules.One(&atom{Kind: rules.TLS})
		if slices.Contains(q.values, "0") || slices.Contains(q.values, "false") {
			return c.Not()
		}
		return c
	}
	ask := map[string]func(question, string) condition{"hdr": question.header, "path": question.path, "method": question.method, "url_param": question.query, "cook": question.cookie,
		"src": question.client, "dst_port": question.port, "ssl_fc_sni": question.serverName, "ssl_sni": question.sni, "http_auth": question.login}[q.name]
	if counter := counterOf(q.name); ask == nil && counter != "" {
		return q.rate(counter)
	}
	if ask == nil {
		return rules.Impossible("headgate cannot match " + q.name + " of a request")
	}
	if len(q.values) == 0 {
		if q.how != "found" && q.name != "http_auth" && q.name != "ssl_fc_sni" {
			return rules.Impossible("no value is compared")
		}
		return ask(q, "")
	}
	if q.name == "src" { // one question for all of them: a list may be long
		return q.client(strings.Join(q.values, " "))
	}
	var out condition
	for _, v := range q.values {
		if out = out.Or(ask(q, v)); out.Problem != "" {
			return out
		}
	}
	return out
}

func (q question) header(value string) condition {
	if strings.EqualFold(q.arg, "host") {
		return q.host(value)
	}
	name, _, numbered := strings.Cut(q.arg, ",")
	if name == "" || numbered {
		return rules.Impossible("a header is matched by its name, wherever it is")
	}
	return q.valued(&atom{Kind: rules.Header, Name: name}, value)
}

func (q question) query(value string) condition {
	if q.arg == "" || strings.Contains(q.arg, ",") {
		return rules.Impossible("a parameter is matched by its name")
	}
	c := q.valued(&atom{Kind: rules.Query, Name: q.arg}, value).Noted("parameters are compared decoded")
	if q.how == "found" {
		c = c.Noted("a parameter without = counts as there, too")
	}
	return c
}

// cookie matches one in the header Cookie.
func (q question) cookie(value string) condition {
	a := &atom{Kind: rules.Header, Name: "Cookie", Regex: `(?:^|;[ ]*)` + regexp.QuoteMeta(q.arg) + "="}
	if q.how == "found" {
		return rules.One(a)
	}
	if q.how != "str" || q.fold {
		return rules.Impossible("a cookie is matched by its whole value")
	}
	a.Regex += regexp.QuoteMeta(value) + "(?:;|$)"
	return rules.One(a)
}

// valued compares the value of a header or parameter.
func (q question) valued(a *atom, value string) condition {
	quoted := regexp.QuoteMeta(value)
	switch q.how {
	case "found":
		return rules.One(a)
	case "str":
		if q.fold || q.lower {
			a.Regex = "^" + quoted + "$"
		} else {
			a.Value = value
		}
	case "beg":
		a.Regex = "^" + quoted
	case "end":
		a.Regex = quoted + "$"
	case "sub":
		a.Regex = quoted
	case "reg":
		if a.Regex = value; checkRegex(value) != "" {
			return rules.Impossible(checkRegex(value))
		}
	default:
		return rules.Impossible("a value is not compared by " + q.how)
	}
	if a.Regex != "" && (q.fold || q.lower) {
		a.Regex = "(?i)" + a.Regex
	}
	c := rules.One(a)
	if a.Kind == rules.Header && q.how != "sub" {
		c = c.Noted("the whole header is compared, where HAProxy compares each of its parts between commas")
	}
	return c
}

func checkRegex(expr string) string {
	if _, err := regexp.Compile(expr); err != nil {
		return fmt.Sprintf("the expression cannot be used here, since RE2 has no look-arounds and back-references: %v", err)
	}
	return ""
}

// host matches the host, which headgate has without port and in lower case.
func (q question) host(value string) condition {
	a := &atom{Kind: rules.Host, Value: strings.ToLower(value)}
	quoted := regexp.QuoteMeta(a.Value)
	switch q.how {
	case "str":
		a.Value, _, _ = strings.Cut(strings.TrimSuffix(a.Value, "."), ":")
	case "beg":
		a.Value = "~^" + quoted + ".*$"
	case "end":
		a.Value = "~^.*" + quoted + "$"
	case "sub":
		a.Value = "~^.*" + quoted + ".*$"
	case "dom":
		a.Value = `~^(.*\.)?` + quoted + `(\..*)?$`
	case "reg":
		if a.Value = hostExpression(value); checkRegex(a.Value[1:]) != "" {
			return rules.Impossible(checkRegex(a.Value[1:]))
		}
	default:
		return rules.Impossible("a host is not compared by " + q.how)
	}
	if strings.HasPrefix(a.Value, "~") {
		a.Pattern = regexp.MustCompile(a.Value[1:])
	} else if !hostName.MatchString(a.Value) {
		return rules.Impossible(strconv.Quote(value) + " is not the name of a host")
	}
	c := rules.One(a)
	if !q.noPort && q.how != "dom" && q.how != "beg" && q.how != "sub" {
		c = c.Noted("the host is compared without its port, in lower case")
	} else if !q.fold && !q.lower {
		c = c.Noted("the host is compared in lower case")
	}
	return c
}

var hostName = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)

func hostExpression(expr string) string {
	if !strings.HasPrefix(expr, "^") {
		expr = "^.*" + expr
	}
	if !strings.HasSuffix(expr, "$") {
		expr += ".*$"
	}
	return "~" + expr
}

func (q question) serverName(value string) condition {
	if value == "" {
		return rules.One(&atom{Kind: rules.TLS}).Noted("whether the client sends a name in TLS is not matched")
	}
	q.fold, q.noPort = true, true
	return q.host(value).Noted("by the host of the request, which may differ from the name in TLS")
}

func (q question) sni(value string) condition {
	switch {
	case q.how == "str":
		return rules.One(&atom{Kind: rules.SNI, Value: strings.ToLower(value)})
	case q.how == "end" && strings.HasPrefix(value, "."):
		return rules.One(&atom{Kind: rules.SNI, Value: "*" + strings.ToLower(value)}).Noted("a wildcard matches one label")
	}
	return rules.Impossible("names in TLS are exact ones or *. and a name")
}

var (
	plainPath  = regexp.MustCompile(`^(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*/?$`)
	prefixExpr = regexp.MustCompile(`^\^?((?:/[A-Za-z0-9_~-]+)+)(/|\(/\|\$\)|\(\$\|/\)|\(/\.\*\)\?\$|/\.\*\$?)?$`)
)

// path matches a prefix of whole segments.
func (q question) path(value string) condition {
	note := ""
	if q.fold || q.lower {
		note = "paths are compared in the letters in which they are written"
	}
	switch q.how {
	case "str":
		if value == "/" {
			return rules.Impossible("only the path / itself: there are no exact paths, and the prefix / matches all")
		}
		return q.prefix(value, "the path also matches paths below it: there are no exact paths").Noted(note)
	case "beg":
		switch {
		case value == "/":
			return rules.Holds()
		case strings.HasSuffix(value, "/"):
			return q.prefix(value, strings.TrimSuffix(value, "/")+" without the slash matches too").Noted(note)
		}
		return q.prefix(value, "a path matches whole segments: "+value+"x is not below "+value).Noted(note)
	case "reg":
		m := prefixExpr.FindStringSubmatch(value)
		if m == nil || value[0] != '^' {
			return rules.Impossible("a route cannot be chosen by an expression on the path; write a route for each prefix")
		}
		switch m[2] {
		case "":
			return q.prefix(m[1], "a path matches whole segments: "+m[1]+"x is not below "+m[1]).Noted(note)
		case "/", "/.*", "/.*$":
			return q.prefix(m[1], m[1]+" without the slash matches too").Noted(note)
		}
		return q.prefix(m[1], "").Noted(note)
	}
	return rules.Impossible("a route is chosen by a prefix of the path, not by " + q.how)
}

func (q question) prefix(value, note string) condition {
	if !plainPath.MatchString(value) || strings.Contains(value, "/.") {
		return rules.Impossible(strconv.Quote(value) + " is not a path of whole segments")
	}
	return rules.One(&atom{Kind: rules.Path, Value: strings.TrimSuffix(value, "/")}).Noted(note)
}

func (q question) method(value string) condition {
	if q.how != "str" {
		return rules.Impossible("methods are compared as a whole")
	}
	return rules.One(&atom{Kind: rules.Method, Value: strings.ToUpper(value)})
}

// client matches the client's address against those between spaces.
func (q question) client(values string) condition {
	var all []string
	for value := range strings.FieldsSeq(values) {
		p := importer.Prefixes([]string{value})
		if len(p) == 0 {
			return rules.Impossible(strconv.Quote(value) + " is not an address or network")
		}
		all = append(all, p[0].Masked().String())
	}
	return rules.One(&atom{Kind: rules.Client, Value: strings.Join(all, " ")})
}

// networksOf are the networks that a literal about the client's address names.
func networksOf(l literal) []netip.Prefix { return importer.Prefixes(strings.Fields(l.Value)) }

func (q question) port(value string) condition {
	if n, err := strconv.ParseUint(value, 10, 16); err != nil || n == 0 {
		return rules.Impossible("a port is compared with a number")
	}
	return rules.One(&atom{Kind: rules.Port, Value: value})
}

func (q question) login(string) condition { return rules.One(&atom{Kind: rules.Login, Name: q.arg}) }

// rate matches if a counter of the client is above a number.
func (q question) rate(counter string) condition {
	if len(q.values) != 2 || q.values[0] != "gt" && q.values[0] != "ge" {
		return rules.Impossible("a rate is compared by gt or ge and a number")
	}
	n, err := strconv.Atoi(q.values[1])
	if q.values[0] == "ge" {
		n--
	}
	if err != nil || n < 0 || n < 1 && !bansBy(counter) && q.values[0] == "gt" {
		return rules.Impossible("a rate is compared with a number above 0")
	}
	if !bansBy(counter) {
		n = max(1, n)
	}
	return rules.One(&atom{Kind: rules.Rate, Name: counter, Value: strconv.Itoa(n)})
}
