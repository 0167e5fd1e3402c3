package nginx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer/rules"
)

// subject is what a condition or a map compares.
type subject struct {
	constant bool
	value    string     // of a constant
	kind     rules.Kind // of a question about the request
	name     string     // of a header, a parameter, or a cookie
	cookie   bool
	note     string
	why      string    // why it cannot be compared
	parts    []subject // of the source of a map with several variables
	open     bool      // it may be anything
	literal  bool      // a constant that is written in the source of a map
}

// request are variables that a route can be chosen by.
var request = map[string]subject{
	"request_method": {kind: rules.Method}, "content_type": {kind: rules.Header, name: "Content-Type"},
	"uri": {kind: rules.Path}, "document_uri": {kind: rules.Path}, "request_uri": {kind: rules.Path, note: "the path is compared without its query"},
}

// subject returns the meaning of a variable. Its name has no dollar sign.
func (v *view) subject(name string) subject {
	if value, ok := v.vars[name]; ok {
		return constant(value)
	}
	if m := v.t.maps[name]; m != nil {
		value, ok := v.mapped(m)
		if !ok {
			return subject{why: "the map of $" + name + " cannot be decided here"}
		}
		return constant(value)
	}
	if s, ok := v.ofSite(name); ok {
		return s
	}
	if s, ok := request[name]; ok {
		return s
	}
	switch rest, isHeader := strings.CutPrefix(name, "http_"); {
	case isHeader:
		return subject{kind: rules.Header, name: headerName(rest)}
	case strings.HasPrefix(name, "arg_"):
		return subject{kind: rules.Query, name: strings.TrimPrefix(name, "arg_"), note: "parameters are compared decoded, and their names in the letters that are written"}
	case strings.HasPrefix(name, "cookie_"):
		return subject{kind: rules.Header, name: strings.TrimPrefix(name, "cookie_"), cookie: true}
	case v.t.set[name]:
		return constant("")
	}
	return subject{why: "headgate cannot match $" + name + " of a request"}
}

func constant(value string) subject { return subject{constant: true, value: value} }

// headerName writes the name of a header: x_real_ip is X-Real-Ip.
func headerName(text string) string {
	words := strings.Split(text, "_")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "-")
}

// ofSite answers what is the same for all requests of the site.
func (v *view) ofSite(name string) (subject, bool) {
	s := v.site
	switch name {
	case "host", "http_host":
		out := subject{kind: rules.Host}
		if s.host != "" {
			out = constant(s.host)
		}
		if name == "http_host" {
			out.note = "the host is compared without its port"
		}
		return out, true
	case "server_name":
		return constant(s.s.firstName), true
	case "scheme":
		if s.secure != s.plain {
			return constant(map[bool]string{true: "https", false: "http"}[s.secure]), true
		}
	case "https":
		if s.secure != s.plain {
			return constant(map[bool]string{true: "on", false: ""}[s.secure]), true
		}
	case "server_port":
		if s.number != "" {
			return constant(s.number), true
		}
	}
	return subject{}, false
}

// ifWords are the parts of a condition: a variable, an operator and a value. The last two
// are empty for one that only tests whether there is a value.
func ifWords(d *directive) (name, op, value string) {
	words := slices.Clone(d.args)
	if len(words) == 0 {
		return "", "", ""
	}
	words[0] = strings.TrimPrefix(words[0], "(")
	words[len(words)-1] = strings.TrimSuffix(words[len(words)-1], ")")
	words = slices.DeleteFunc(words, func(w string) bool { return false })
	if words[0] == "" && len(words) > 1 {
		words = words[1:]
	}
	if len(words) > 1 && words[len(words)-1] == "" && len(words) != 3 {
		words = words[:len(words)-1]
	}
	switch len(words) {
	case 1:
		return words[0], "", ""
	case 2:
		return words[0], words[1], ""
	}
	return words[0], words[1], strings.Join(words[2:], " ")
}

// condition is when the block of an if holds. groups are the variables that its
// expression sets there.
func (v *view) condition(d *directive) (c rules.Condition, groups map[string]string) {
	name, op, value := ifWords(d)
	if strings.HasPrefix(strings.TrimPrefix(name, "!"), "-") && len(name) <= 3 {
		c := rules.Condition{}.Noted("headgate does not read files: they count as absent")
		if strings.HasPrefix(name, "!") {
			c = rules.Holds().Noted(c.Notes[0])
		}
		return c, nil
	}
	variable, ok := strings.CutPrefix(name, "$")
	variable = strings.Trim(variable, "{}")
	if !ok {
		return rules.Impossible("a condition needs a variable"), nil
	}
	var s subject
	if strings.Contains(variable, "$") { // several in one text
		text := v.expandAll(name)
		if s = constant(text); strings.Contains(text, "$") {
			return rules.Impossible("headgate cannot match " + name + " of a request"), nil
		}
	} else {
		s = v.subject(variable)
	}
	value = v.expand(value)
	not := strings.HasPrefix(op, "!")
	c, groups = s.compare(strings.TrimPrefix(op, "!"), value)
	if not {
		return c.Not(), nil
	}
	return c, groups
}

// compare compares with an operator: "" for a nonempty value, =, ~ and ~*, and fold for a
// text in any case.
func (s subject) compare(op, value string) (rules.Condition, map[string]string) {
	if op == "~" || op == "~*" || op == "fold" {
		if op == "~*" {
			value = "(?i)" + value
		}
		if what := checkRegex(value); what != "" && op != "fold" {
			return rules.Impossible(what), nil
		}
	}
	switch {
	case s.why != "":
		return rules.Impossible(s.why), nil
	case s.parts != nil:
		return compareParts(s.parts, op, value), nil
	case s.constant:
		c, groups := s.compareConstant(op, value)
		return c.Noted(s.note), groups
	case s.kind == rules.Host && (op == "=" || op == "fold"):
		return rules.Condition{}, nil // a host in a condition has a site of its own
	case s.kind == rules.Host:
		return rules.Impossible("the host is not known here: name it in server_name"), nil
	case s.kind == rules.Method:
		return methods(op, value), nil
	case s.kind == rules.Path:
		return paths(op, value).Noted(s.note), nil
	case s.cookie:
		return s.compareCookie(op, value), nil
	}
	return s.compareValue(op, value).Noted(s.note), nil
}

func (s subject) compareConstant(op, value string) (rules.Condition, map[string]string) {
	holds := false
	var groups map[string]string
	switch op {
	case "":
		holds = s.value != "" && s.value != "0"
	case "=":
		holds = s.value == value
	case "fold":
		holds = strings.EqualFold(s.value, value)
	default:
		re := regexp.MustCompile(value)
		found := re.FindStringSubmatch(s.value)
		if holds = found != nil; holds {
			groups = map[string]string{}
			for i, name := range re.SubexpNames() {
				if i > 0 && i < 10 {
					groups[string('0'+rune(i))] = found[i]
				}
				if name != "" {
					groups[name] = found[i]
				}
			}
		}
	}
	if holds {
		return rules.Holds(), groups
	}
	return rules.Condition{}, nil
}

// usualMethods are tried on an expression that matches more than a few.
var usualMethods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK"}

func methods(op, value string) (c rules.Condition) {
	switch op {
	case "=", "fold":
		return rules.One(&rules.Atom{Kind: rules.Method, Value: value})
	case "":
		return rules.Holds()
	}
	names, all := rules.Literals(value)
	if !all {
		re := regexp.MustCompile(value)
		for _, m := range usualMethods {
			if re.MatchString(m) {
				names = append(names, m)
			}
		}
		c = c.Noted("the expression was tried at the usual methods")
	}
	for _, m := range names {
		c = c.Or(rules.One(&rules.Atom{Kind: rules.Method, Value: m}))
	}
	return c
}

func paths(op, value string) (c rules.Condition) {
	if op == "=" || op == "fold" {
		op, value = "~", "^"+regexp.QuoteMeta(value)+"$"
	}
	all, ok := rules.Prefixes(value)
	if op == "" || !ok {
		return rules.Impossible("a route is chosen by a prefix of the path, and this expression is none")
	}
	for _, p := range all {
		c = c.Or(rules.One(&rules.Atom{Kind: rules.Path, Value: p.Path})).Noted(p.Note)
	}
	return c
}

// compareValue matches a header or a parameter. What is not sent is empty.
func (s subject) compareValue(op, value string) rules.Condition {
	a := &rules.Atom{Kind: s.kind, Name: s.name}
	if unmatched[strings.ToLower(s.name)] && s.kind == rules.Header {
		return rules.Impossible(s.name + " belongs to one connection, and no route is chosen by it")
	}
	switch {
	case op == "":
		a.Regex = "[^0]|.." // neither empty nor 0
		return rules.One(a)
	case value == "" && op != "~" && op != "~*", value == "^$":
		a.Regex = "."
		return rules.One(a).Not()
	case op == "=":
		a.Value = value
		return rules.One(a)
	case op == "fold":
		a.Value = value
		if strings.ToLower(value) != strings.ToUpper(value) {
			return rules.One(a).Noted("the value is case-sensitive; in a map of nginx, it is not")
		}
		return rules.One(a)
	}
	if a.Regex = value; regexp.MustCompile(value).MatchString("") {
		return rules.Impossible("the expression also matches a value that is not there")
	}
	return rules.One(a)
}

// unmatched are headers that no route is chosen by.
var unmatched = map[string]bool{"connection": true, "content-length": true, "transfer-encoding": true, "te": true, "keep-alive": true, "trailer": true, "expect": true}

func (s subject) compareCookie(op, value string) rules.Condition {
	begin := `(?:^|;[ ]*)(?i:` + regexp.QuoteMeta(s.name) + `)=`
	a := &rules.Atom{Kind: rules.Header, Name: "Cookie"}
	switch {
	case op == "":
		a.Regex = begin + `(?:[^0;]|[^;]{2})`
	case value == "" && (op == "=" || op == "fold"):
		a.Regex = begin + `[^;]`
		return rules.One(a).Not()
	case op == "=":
		a.Regex = begin + regexp.QuoteMeta(value) + `(?:;|$)`
	case op == "fold":
		a.Regex = begin + `(?i:` + regexp.QuoteMeta(value) + `)(?:;|$)`
	default:
		return rules.Impossible("a cookie is matched by its whole value")
	}
	return rules.One(a)
}

// checkRegex returns why an expression cannot be used, "" if it can.
func checkRegex(expr string) string {
	if _, err := regexp.Compile(expr); err != nil {
		return fmt.Sprintf("the expression cannot be used here, since RE2 has no look-arounds and back-references: %v", err)
	}
	return ""
}
