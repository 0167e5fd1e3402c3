package redirects

import (
	"fmt"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// longest is how long a Location may become, in bytes.
const longest = 16 << 10

// target is the compiled target of a rule. It is immutable.
//
// What a client writes must never choose the host that others are sent to. So
// every part knows where it stands: in the authority only {host}, {authority} and labels in
// front of a written domain may stand, and a value behind the authority has to
// begin a path; a path target never comes out with two slashes in front.
type target struct {
	parts    []placed
	absolute bool
	// ownQuery says that a ? is written, so that the request's query is dropped.
	ownQuery bool
	fragment string // with its #
}

// placed is a part of a target, and where it stands.
type placed struct {
	exchange.Part
	role role
}

// role is how the value of a part is put in.
type role uint8

const (
	asWritten  role = iota // a text
	scheme                 // of the request
	host                   // the request's host in the authority
	hostName               // the same without its port
	label                  // a group in front of the rest of a host name
	beginsPath             // a value right behind the authority
	inPath                 // a value in the path
	inQuery                // a value behind a question mark
	wholeQuery             // {query}
)

// fault is what is wrong with a target, and how to fix it.
type fault struct{ what, remedy string }

// newTarget gives every part its role.
func newTarget(r *exchange.Replacement) (*target, *fault) {
	t := &target{}
	parts := r.Parts()
	begun, f := t.checkStart(parts)
	if f != nil {
		return nil, f
	}
	w := walk{t: t, authority: t.absolute}
	for i := range parts {
		p := parts[i]
		switch {
		case i == 0 && p.Variable == "scheme":
			t.parts = append(t.parts, placed{p, scheme})
			continue
		case i == begun.part:
			t.parts = append(t.parts, placed{exchange.Part{Text: p.Text[:begun.at], Group: -1}, asWritten})
			p.Text = p.Text[begun.at:]
		}
		next := ""
		if i+1 < len(parts) {
			next = parts[i+1].Text
		}
		if f := w.part(p, next); f != nil {
			return nil, f
		}
	}
	if w.authority && !w.named {
		return nil, &fault{"the target has no host", "write one behind ://"}
	}
	return t, nil
}

// beginning is where the text that begins a target ends.
type beginning struct{ part, at int }

var badBegin = &fault{"the target begins with neither a path nor a scheme", "write /path, https://host/path or {scheme}://{host}/path"}

// checkStart checks the start of a target.
func (t *target) checkStart(parts []exchange.Part) (beginning, *fault) {
	i := 0
	if len(parts) > 1 && parts[0].Variable == "scheme" {
		i = 1
	}
	if len(parts) == 0 || parts[i].Variable != "" || parts[i].Group >= 0 {
		return beginning{}, badBegin
	}
	text := parts[i].Text
	for _, with := range []string{"://", "http://", "https://"} {
		if (i == 1) == (with == "://") && len(text) >= len(with) && header.EqualFold(text[:len(with)], with) {
			t.absolute = true
			return beginning{i, len(with)}, nil
		}
	}
	switch {
	case i == 1 || text[0] != '/':
		return beginning{}, badBegin
	case strings.HasPrefix(text, "//"):
		return beginning{}, &fault{"the target begins with //, which is another host", "write https:// in front of a host, or one slash"}
	}
	return beginning{i, 1}, nil
}

// walk goes over the parts of a target from left to right.
type walk struct {
	t         *target
	authority bool
	named     bool // the authority has something in it
	fragment  bool
}

func (w *walk) part(p exchange.Part, next string) *fault {
	switch {
	case p.Variable == "" && p.Group < 0:
		return w.text(p.Text)
	case w.fragment:
		return &fault{"a variable or group follows the #", "remove it: only plain text is allowed there"}
	case w.authority:
		return w.inAuthority(p, next)
	}
	how := inPath
	switch {
	case p.Variable == "query":
		how = wholeQuery
	case w.t.ownQuery:
		how = inQuery
	}
	w.t.parts = append(w.t.parts, placed{p, how})
	return nil
}

func (w *walk) text(text string) *fault {
	if text == "" {
		return nil
	}
	if strings.ContainsAny(text, " \t\\\"<>") {
		return &fault{"the target contains a character that is not allowed in a URL", "percent-encode spaces, \\, <, > and quotes"}
	}
	if w.fragment {
		w.t.fragment += encodePlain(text)
		return nil
	}
	if w.authority {
		end := strings.IndexAny(text, "/?#")
		switch {
		case end == 0 && !w.named:
			return &fault{"the target has no host", "write one behind ://"}
		case end < 0:
			end = len(text)
		default:
			w.authority = false
		}
		if !ascii(text[:end]) {
			return &fault{"the target's host is not in its ASCII form", "write it with xn--"}
		}
		w.named = true
	}
	text = encodePlain(text)
	if i := strings.IndexByte(text, '#'); i >= 0 {
		w.fragment = true
		w.t.fragment, text = text[i:], text[:i]
	}
	w.t.ownQuery = w.t.ownQuery || strings.Contains(text, "?")
	w.t.parts = append(w.t.parts, placed{exchange.Part{Text: text, Group: -1}, asWritten})
	return nil
}

// inAuthority checks a value in the authority or right behind it.
func (w *walk) inAuthority(p exchange.Part, next string) *fault {
	how := beginsPath
	switch {
	case p.Variable == "host", p.Variable == "authority" && strings.HasPrefix(next, ":"):
		how = hostName
	case p.Variable == "authority":
		how = host
	case p.Group >= 0 && !w.named && len(next) > 1 && next[0] == '.' && next[1] != '/':
		how = label
	case !w.named:
		return &fault{"what a client writes would be the host that it is sent to", "write the host, or a domain behind the group: https://$1.example.com/"}
	case p.Group < 0 && p.Variable != "path":
		return &fault{"{" + p.Variable + "} is in the host", "write a / in front of it"}
	}
	w.named = true
	w.t.parts = append(w.t.parts, placed{p, how})
	return nil
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// encodePlain percent-encodes what is not ASCII in a text that is written.
func encodePlain(s string) string {
	if ascii(s) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= 0x80 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
