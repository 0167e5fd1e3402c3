package forwardauth

import (
	"errors"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// signin is where a browser is sent to sign in.
type signin struct {
	template exchange.Template
	// before and after surround the URL of the page when rd is true.
	before, after string
	rd            bool
}

// parseSignin compiles a sign-in URL.
func parseSignin(text string) (*signin, error) {
	begins := func(prefix string) bool { return len(text) > len(prefix) && strings.HasPrefix(text, prefix) }
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '<' || r == '>' || r == '\\' }):
		return nil, errors.New("the URL contains invalid characters; write it percent-encoded")
	case strings.HasPrefix(text, "//"), !strings.HasPrefix(text, "/") && !begins("http://") && !begins("https://") && !begins("{scheme}://"):
		return nil, errors.New("the URL starts with neither https:// nor /; write it as https://auth.example.com/")
	}
	template, err := exchange.ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	s := &signin{template: template}
	fixed, ok := template.Fixed()
	if !ok {
		return s, nil
	}
	before, fragment, hasFragment := strings.Cut(fixed, "#")
	_, query, hasQuery := strings.Cut(before, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); name == "rd" {
			return s, nil
		}
	}
	switch {
	case !hasQuery:
		before += "?"
	case query != "":
		before += "&"
	}
	s.rd, s.before = true, before+"rd="
	if hasFragment {
		s.after = "#" + fragment
	}
	return s, nil
}

// answer makes a an answer that sends the client to sign in.
func (s *signin) answer(a *exchange.Answer, ex *exchange.Exchange) {
	rq := &ex.Request
	b := ex.Text.Buffer()
	if s.rd {
		b = append(b, s.before...)
		from := len(b)
		for _, part := range [...]string{rq.Scheme, "://", rq.Host, rq.Path, rq.Query} {
			b = append(b, part...)
		}
		b = append(escape(b, from), s.after...)
	} else {
		b = s.template.AppendEscaped(b, ex, escape)
	}
	a.Status = 302
	a.Fields = []header.Field{
		{ID: header.Location, Name: header.Location.String(), Value: ex.Text.End(b)},
		{ID: header.CacheControl, Name: header.CacheControl.String(), Value: "no-store"},
	}
}

// escape encodes the value of a variable, which starts at from. In a query,
// characters with a meaning there are encoded; before it, those that a path may
// contain stay as they are.
func escape(b []byte, from int) []byte {
	const digits = "0123456789ABCDEF"
	value := string(b[from:])
	inQuery := strings.IndexByte(string(b[:from]), '?') >= 0
	b = b[:from]
	for i := range len(value) {
		c := value[i]
		if plain(c) || !inQuery && strings.IndexByte("/:%[]@!$&'()*+,;=", c) >= 0 {
			b = append(b, c)
			continue
		}
		b = append(b, '%', digits[c>>4], digits[c&15])
	}
	return b
}

func plain(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '-' || c == '.' || c == '_' || c == '~'
}

// navigates reports whether a request is a browser's that opens a page: only then
// does a redirect lead a person anywhere. Scripts get the 401.
func navigates(rq *exchange.Request) bool {
	if rq.Method != "GET" || rq.Upgrade != "" {
		return false
	}
	if mode, ok := rq.Header.Lookup("Sec-Fetch-Mode"); ok {
		return header.EqualFold(mode, "navigate")
	}
	if with, ok := rq.Header.Lookup("X-Requested-With"); ok && header.EqualFold(with, "XMLHttpRequest") {
		return false
	}
	for _, f := range rq.Header.All() {
		if f.ID == header.Accept && acceptsHTML(f.Value) {
			return true
		}
	}
	return false
}

// acceptsHTML reports whether an Accept field names a page.
func acceptsHTML(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, _ := strings.Cut(part, ";")
		kind = strings.TrimSpace(kind)
		if !header.EqualFold(kind, "text/html") && !header.EqualFold(kind, "application/xhtml+xml") {
			continue
		}
		q := strings.ReplaceAll(params, " ", "")
		return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
	}
	return false
}
