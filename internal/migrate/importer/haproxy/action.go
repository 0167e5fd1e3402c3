package haproxy

import (
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// rules reads http-request and redirect of a section. f is the frontend, nil in a
// backend.
func (t *translator) rules(s *section, acls map[string]condition, f *front) (out []*rule) {
	rewritten := false
	for _, d := range append(s.rules("http-request"), s.own("redirect")...) {
		words, c := t.splitIf(s, d, acls)
		if d.name() == "http-request" {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if f != nil && f.redirectsAll(words, c) {
			f.toHTTPS, f.redirect = d, &rule{d: d, when: c, became: fields("redirects")}
			f.redirect.act, f.redirectNote = redirect(words[1:])
			f.redirectAt = len(out)
			t.ruled(d)
			continue
		}
		r := t.action(s, d, words, c)
		if r == nil {
			continue
		}
		if rewritten && asksForPaths(r.when) {
			t.ruled(d, "the path is matched as the client sent it, not as a line above rewrote it")
		}
		rewritten = rewritten || slices.Contains([]string{"set-path", "replace-path", "set-uri", "replace-uri"}, words[0])
		out = append(out, r)
	}
	return out
}

func asksForPaths(c condition) bool {
	return slices.ContainsFunc(c.Any, func(list []literal) bool {
		return slices.ContainsFunc(list, func(l literal) bool { return l.Kind == rules.Path })
	})
}

// redirectsAll reports whether a line redirects all requests without TLS to https,
// except those of certificate authorities.
func (f *front) redirectsAll(words []string, c condition) bool {
	if len(words) < 3 || words[0] != "redirect" || words[1] != "scheme" || words[2] != "https" || len(c.Any) != 1 {
		return false
	}
	plain := !slices.ContainsFunc(f.ports, func(p *port) bool { return p.secure })
	for _, l := range c.Any[0] {
		switch {
		case l.Kind == rules.TLS && l.Not:
			plain = true
		case l.Kind == rules.Path && l.Not && strings.HasPrefix(l.Value, "/.well-known"):
		default:
			return false
		}
	}
	return plain
}

// action makes a rule of one line; nil says that it has its verdict and does nothing.
func (t *translator) action(s *section, d *directive, words []string, c condition) *rule {
	name, args := words[0], words[1:]
	keepsOut := name == "deny" || name == "tarpit" || name == "reject" || name == "silent-drop" || name == "auth"
	if !keepsOut {
		c = routable(c)
	}
	if c.Problem == "" && keepsOut {
		c.Problem = refusable(c, name == "auth")
	}
	if c.Problem != "" {
		if t.AddVerdict(d, importer.Impossible, "%s", c.Problem); keepsOut {
			t.Check("%s:%d: %s could not be translated, and what it protects is open: protect it before the cutover", d.File, d.Line, d.Text())
		}
		return nil
	}
	r := &rule{d: d, when: c}
	note := ""
	switch name {
	case "deny", "tarpit", "reject", "silent-drop":
		r.became = fields("ip_filter", "rate_limit", "fixed_response")
		r.refuse, note = t.refusal(s, d, name, r)
	case "auth":
		r.refuse, note = t.login(d, c)
		r.became = fields("basic_auth", "fixed_response")
	case "allow":
		r.act, r.became = func(o *outcome) { o.passed = true }, fields("servers", "fixed_response", "redirects")
	case "redirect":
		r.act, note = redirect(args)
		r.became = fields("redirects")
	case "return":
		r.act, note = t.answer(d, args)
		r.became = fields("fixed_response")
	case "set-header", "add-header", "del-header", "replace-header", "replace-value":
		r.act, r.became, note = headerAction("request", name, args)
	case "set-path", "replace-path", "replace-uri":
		r.act, note = rewrite(name, args)
		r.became = fields("rewrite")
	default:
		return nil // the table knows it, or it is unknown
	}
	if r.act == nil && r.refuse == nil {
		if t.AddVerdict(d, importer.Impossible, "%s", note); keepsOut {
			t.Check("%s:%d: %s could not be translated, and what it protects is open: protect it before the cutover", d.File, d.Line, d.Text())
		}
		return nil
	}
	t.ruled(d, append(slices.Clone(c.Notes), note)...)
	if keepsOut && slices.ContainsFunc(c.Notes, func(n string) bool { return strings.Contains(n, "whole segments") }) {
		t.Check("%s:%d: %s: %s: look whether that opens anything", d.File, d.Line, d.Text(), strings.Join(c.Notes, "; "))
	}
	return r
}

// refusable says why clients cannot be kept out by a condition.
func refusable(c condition, login bool) string {
	for _, list := range c.Any {
		count := map[rules.Kind]int{}
		denied := 0
		for _, l := range list {
			if l.Kind == rules.Client && l.Not && slices.ContainsFunc(list, func(o literal) bool { return o.Kind == rules.Rate }) {
				continue // who is not counted
			}
			if l.Kind == rules.Client || l.Kind == rules.Rate || l.Kind == rules.Login || l.Kind == rules.SNI {
				count[l.Kind]++
				if !l.Not {
					denied++
				}
			}
		}
		switch {
		case len(count) > 1:
			return "addresses, rates and sign-in cannot be combined in a condition"
		case count[rules.SNI] > 0:
			return "in mode http the host of the request chooses"
		case login != (count[rules.Login] == 1 && denied == 0):
			return "a password is required by http-request auth unless { http_auth(LIST) }"
		case count[rules.Rate] > 0 && (count[rules.Rate] != 1 || denied != 1):
			return "a rate is compared by one gt or ge"
		}
	}
	return ""
}

// refusal is deny and its likes.
func (t *translator) refusal(s *section, d *directive, name string, r *rule) (func(*outcome, []literal), string) {
	status, note := 403, ""
	if name == "tarpit" {
		status, note = 500, "the client is answered at once"
	} else if name != "deny" {
		note = "the client gets 403, the connection is not closed without an answer"
	}
	for _, word := range []string{"deny_status", "status"} {
		if n, err := strconv.Atoi(d.after(word)); err == nil && n >= 200 && n < 600 {
			status = n
		}
	}
	if slices.ContainsFunc(deniedPage, d.has) {
		note = strings.TrimPrefix(note+"; the page and the headers of the answer are left out", "; ")
	}
	lists := t.lists(s, d)
	if list := bannedBy(condition{Any: lists}); list != nil {
		if len(lists) > 1 {
			return nil, "a ban rule is made of one condition: write each alternative on a line of its own"
		}
		name, text, what := t.ban(s, d, list, map[bool]string{true: "reject"}[name == "silent-drop" || name == "reject"])
		if what != "" {
			return nil, what
		}
		r.became = func(importer.Object) importer.Field { return t.Bans.Field(name) }
		return func(*outcome, []literal) {}, text
	}
	limit, period := importer.NewObject(), ""
	for _, l := range slices.Concat(lists...) {
		if l.Kind != rules.Rate || period != "" {
			continue
		}
		if period = t.period(s, d); period == "" {
			return nil, "there is no stick-table with http_req_rate that counts clients by src"
		}
	}
	return func(o *outcome, who []literal) {
		rate := slices.IndexFunc(who, func(l literal) bool { return l.Kind == rules.Rate })
		switch {
		case len(who) == 0:
			o.fixed, o.over = importer.NewObject().Set("status", status), true
		case rate >= 0:
			n, _ := strconv.Atoi(who[rate].Value)
			limit.Set("requests", n).Set("period", period)
			if exempt := exempted(who); len(exempt) > 0 {
				limit.Set("exempt", importer.Networks(exempt))
			}
			o.feature("rate_limit", limit.Flow())
		case len(who) > 1 && slices.ContainsFunc(who, func(l literal) bool { return !l.Not }):
			networks, _ := clientsOf(condition{Any: [][]literal{who}})
			o.refuse(networks)
		case who[0].Not:
			o.allowOnly(who)
		default:
			o.refuse(networksOf(who[0]))
		}
	}, t.refusalNote(s, d, note, status)
}

// deniedPage are the words of deny that say what the answer has besides of its status.
var deniedPage = []string{"errorfile", "errorfiles", "string", "lf-string", "file", "lf-file", "hdr"}

// lists are the lists of a line's condition.
func (t *translator) lists(s *section, d *directive) [][]literal {
	_, c := t.splitIf(s, d, t.acls(s))
	return c.Any
}

func (t *translator) refusalNote(s *section, d *directive, note string, status int) string {
	for _, l := range slices.Concat(t.lists(s, d)...) {
		switch {
		case l.Kind == rules.Rate:
			return "rate_limit: who is over it gets 429, the requests come back steadily, and IPv6 clients are counted by their /64 network"
		case l.Kind == rules.Client && status != 403:
			return "ip_filter answers 403"
		}
	}
	return note
}

// period is the time over which a stick-table counts requests of addresses.
func (t *translator) period(s *section, d *directive) string {
	c, ok := t.counted(s, d, "http_req_rate")
	if !ok || c.period == 0 {
		return ""
	}
	t.Became(c.table, importer.Close, importer.Through(d), "clients are counted where rate_limit is")
	t.Became(c.track, importer.Same, importer.Through(d), "rate_limit counts each client's address")
	return importer.ShortDuration(c.period)
}

// login requires a password of a userlist.
func (t *translator) login(d *directive, c condition) (func(*outcome, []literal), string) {
	if len(c.Any) == 0 {
		return func(*outcome, []literal) {}, ""
	}
	auths := map[string]importer.Object{}
	note := "the challenge names UTF-8, and an address with many wrong passwords gets 429 for a while"
	for _, l := range slices.Concat(c.Any...) {
		if l.Kind != rules.Login {
			continue
		}
		auth, what := t.userlist(d, l.Name)
		if what != "" {
			note += "; " + what
		}
		if auth.Len() == 0 {
			t.Check("%s:%d: no user can sign in until basic_auth has users (%s)", d.File, d.Line, what)
		}
		auths[l.Name] = auth
	}
	return func(o *outcome, who []literal) {
		auth := auths[who[len(who)-1].Name]
		if auth.Len() == 0 {
			o.fixed, o.over = importer.NewObject().Set("status", 403), true
			return
		}
		auth.Set("forward_credentials", true) // HAProxy passes the password on to servers
		o.feature("basic_auth", auth)
	}, note
}

// redirect sends clients elsewhere.
func redirect(args []string) (func(*outcome), string) {
	if len(args) < 2 {
		return nil, "a redirect has a kind and a target"
	}
	value, what := format(args[1], true)
	if what != "" {
		return nil, what
	}
	status, note := 302, ""
	drop := slices.Contains(args, "drop-query")
	for i, w := range args {
		switch {
		case w == "code" && i+1 < len(args):
			status, _ = strconv.Atoi(args[i+1])
		case w == "set-cookie" || w == "clear-cookie" || w == "append-slash" || w == "ignore-empty":
			note = "the option " + w + " is left out"
		}
	}
	if status != 301 && status != 302 && status != 303 && status != 307 && status != 308 {
		return nil, "not a status of a redirect"
	}
	switch args[0] {
	case "scheme":
		value = args[1] + "://{host}{path}"
		note = "the host is sent without its port"
	case "prefix":
		if value = strings.TrimSuffix(value, "/") + "{path}"; strings.HasPrefix(args[1], "/") || args[1] == "" {
			note = "Location is relative, as with HAProxy"
		}
	case "location":
		if base, keeps := strings.CutSuffix(value, "{uri}"); keeps {
			value = base + "{path}"
		} else {
			drop = !strings.Contains(value, "?")
		}
		if strings.HasPrefix(value, "/") && !strings.Contains(value, "{") {
			note = "a request for the target itself gets 404, where HAProxy sends it there again"
		}
	default:
		return nil, "a redirect is by location, prefix or scheme"
	}
	if drop {
		value += "?"
	}
	rule := importer.NewObject().Set("regex", "^").Set("target", strings.ReplaceAll(value, "{uri}", "{path}")).Set("status", status).Flow()
	return func(o *outcome) {
		o.features.Set("redirects", []importer.Object{rule})
		o.fixed, o.over = importer.NewObject().Set("status", 404), true
	}, note
}

// answer is http-request return.
func (t *translator) answer(d *directive, args []string) (func(*outcome), string) {
	o := importer.NewObject().Set("status", 200)
	var extra []importer.Object
	body, note := "", ""
	for i := 0; i+1 < len(args); i += 2 {
		value := args[i+1]
		switch args[i] {
		case "status":
			n, err := strconv.Atoi(value)
			if err != nil || n < 200 || n > 599 {
				return nil, "not a status that is sent"
			}
			o.Set("status", n)
		case "content-type":
			o.Set("content_type", value)
		case "string":
			body = literalText(value)
		case "lf-string":
			text, what := format(value, false)
			if what != "" {
				return nil, what
			}
			body = text
		case "file":
			data, err := t.read(t.path(d, value))
			if err != nil || len(data) > maxPage {
				return nil, "the file cannot be read, or is larger than 64 KiB"
			}
			body = literalText(string(data))
		case "hdr":
			if i+2 >= len(args) {
				return nil, "hdr has a name and a value"
			}
			text, what := format(args[i+2], false)
			if what != "" {
				return nil, what
			}
			if i++; framing[strings.ToLower(value)] {
				note = "the field " + value + " is left out: connections and the framing of messages are headgate's own"
				continue
			}
			extra = append(extra, importer.NewObject().Set("direction", "response").Set("name", value).Set("value", text).Flow())
		case "errorfile", "lf-file", "errorfiles":
			return nil, "write the body as fixed_response: {status, body}"
		default:
			i--
		}
	}
	if body != "" {
		o.Set("body", body)
		if !o.Has("content_type") {
			note = "the type of the content is text/plain with its charset"
		}
	}
	return func(out *outcome) {
		out.fixed, out.over = o, true
		out.always = append(out.always, extra...)
	}, note
}

// maxPage is the largest body of an answer.
const maxPage = 64 << 10
