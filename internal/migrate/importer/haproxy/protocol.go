package haproxy

import (
	"slices"
	"strings"
)

// protocol is the protocol of the clients of a port, as far as lines tcp-request
// match it.
type protocol string

const (
	speaksTLS  protocol = "TLS"
	speaksHTTP protocol = "HTTP"
)

// protocolTerm is one ACL of a condition; without a protocol it matches something else.
type protocolTerm struct {
	protocol protocol
	not      bool
}

// protocolQuestion is the condition of a line, read for protocols alone: alternatives of
// terms that all have to hold.
type protocolQuestion struct {
	any    [][]protocolTerm
	unless bool
}

// askedProtocols reads the condition of a line tcp-request.
func askedProtocols(s *section, d *directive) (q protocolQuestion) {
	at := slices.IndexFunc(d.words, func(w string) bool { return w == "if" || w == "unless" })
	if at < 0 {
		return q
	}
	q.unless = d.words[at] == "unless"
	words, not, list := d.words[at+1:], false, []protocolTerm(nil)
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "or" || w == "||" {
			q.any, list = append(q.any, list), nil
			continue
		}
		for strings.HasPrefix(w, "!") {
			not, w = !not, w[1:]
		}
		if w == "" {
			continue
		}
		term := protocolTerm{protocolOfACL(s, w), not}
		if end := slices.Index(words[i:], "}"); w == "{" && end > 0 {
			term.protocol = protocolOf(words[i+1 : i+end])
			i += end
		}
		list, not = append(list, term), false
	}
	q.any = append(q.any, list)
	return q
}

// protocolOfACL is the protocol that all lines of a named ACL match, "" if there is
// none.
func protocolOfACL(s *section, name string) protocol {
	var all []protocol
	for _, d := range s.own("acl") {
		if d.arg(0) == name && len(d.words) > 2 {
			all = append(all, protocolOf(d.words[2:]))
		}
	}
	if len(all) == 0 && name == "HTTP" {
		return speaksHTTP // HAProxy has it by itself
	}
	if all = slices.Compact(all); len(all) != 1 {
		return ""
	}
	return all[0]
}

// protocolOf is the protocol that the words of an ACL match.
func protocolOf(words []string) protocol {
	switch strings.Join(words, " ") {
	case "req_ssl_hello_type 1", "req.ssl_hello_type 1", "req_ssl_sni -m found", "req.ssl_sni -m found", "req_ssl_sni found", "req.ssl_sni found":
		return speaksTLS
	case "req_proto_http", "req.proto_http":
		return speaksHTTP
	}
	return ""
}

// about reports whether any ACL matches a protocol.
func (q protocolQuestion) about() bool {
	return slices.ContainsFunc(q.any, func(list []protocolTerm) bool {
		return slices.ContainsFunc(list, func(t protocolTerm) bool { return t.protocol != "" })
	})
}

// under reports whether the condition holds always, or never, for clients that speak a
// protocol. Neither means that it cannot be known.
func (q protocolQuestion) under(spoken protocol) (always, never bool) {
	if spoken == "" {
		return false, false
	}
	never = true
	for _, list := range q.any {
		all, none := len(list) > 0, false
		for _, t := range list {
			all = all && t.protocol == spoken && !t.not
			none = none || t.protocol == spoken && t.not
		}
		always, never = always || all, never && none
	}
	if q.unless {
		return never, always
	}
	return always, never
}
