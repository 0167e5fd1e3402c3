package fcgi

import (
	"strconv"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// Script is what a request runs.
type Script struct {
	// Filename is the path of the script as the server has it, Root the folder of the site.
	Filename, Root string
	// Name is the path of the script in the URL, decoded; PathInfo is what follows it, "" or
	// beginning with a slash.
	Name, PathInfo string
	// Params are further parameters. They replace those of the same name.
	Params []Param
}

// Param is a parameter beside those of CGI.
type Param struct{ Name, Value string }

// Scripts is where the feature that maps paths to scripts puts the one of an exchange. An
// exchange without one, such as a health check, names the script by its path.
var Scripts = exchange.NewSlot[Script](false)

// software is the value of SERVER_SOFTWARE.
const software = "headgate"

// params is the list under construction.
type params struct {
	b    []byte
	over []Param
}

// add adds a parameter, unless an operator has set it.
func (p *params) add(name, value string) {
	for i := range p.over {
		if p.over[i].Name == name {
			return
		}
	}
	p.b = appendPair(p.b, name, value)
}

// AppendParams appends the parameters of a request (RFC 3875, section 4.1), encoded for
// AppendBegin. host is the authority that the server gets.
func AppendParams(b []byte, ex *exchange.Exchange, host string) []byte {
	rq := &ex.Request
	script := Scripts.Get(ex)
	if script == nil {
		script = &Script{Filename: rq.Path, Name: rq.Path}
	}
	p := params{b: b, over: script.Params}
	p.add("GATEWAY_INTERFACE", "CGI/1.1")
	p.add("SERVER_SOFTWARE", software)
	p.add("REQUEST_METHOD", rq.Method)
	p.add("REQUEST_SCHEME", rq.Scheme)
	p.add("REQUEST_URI", rq.Path+rq.Query)
	p.add("SCRIPT_FILENAME", script.Filename)
	p.add("SCRIPT_NAME", script.Name)
	p.add("PATH_INFO", script.PathInfo)
	p.add("DOCUMENT_ROOT", script.Root)
	p.add("DOCUMENT_URI", script.Name+script.PathInfo)
	query := rq.Query
	if query != "" {
		query = query[1:]
	}
	p.add("QUERY_STRING", query)
	p.add("SERVER_PROTOCOL", rq.Proto.String())
	p.addPeers(ex, host)
	p.addContent(rq)
	// PHP trusts the status that a server has set, to know that it is not run directly.
	p.add("REDIRECT_STATUS", "200")
	if ex.User != "" {
		p.add("REMOTE_USER", ex.User)
	}
	p.add("HTTP_HOST", host)
	p.addFields(&rq.Header)
	for i := range p.over {
		p.b = appendPair(p.b, p.over[i].Name, p.over[i].Value)
	}
	return p.b
}

// addPeers adds who has sent the request to whom.
func (p *params) addPeers(ex *exchange.Exchange, host string) {
	client := ex.ClientIP.Unmap()
	if client.IsValid() {
		p.add("REMOTE_ADDR", client.String())
	} else {
		p.add("REMOTE_ADDR", ex.Conn.Peer)
	}
	if client == ex.Conn.Remote.Addr().Unmap() {
		p.add("REMOTE_PORT", strconv.Itoa(int(ex.Conn.Remote.Port())))
	}
	if local := ex.Conn.Local.Addr(); local.IsValid() {
		p.add("SERVER_ADDR", local.Unmap().String())
	}
	name, port := splitHost(host)
	if port == "" {
		if port = "80"; ex.Request.Scheme == "https" {
			port = "443"
		}
	}
	p.add("SERVER_NAME", name)
	p.add("SERVER_PORT", port)
	if ex.Request.Scheme == "https" {
		p.add("HTTPS", "on")
	}
}

// splitHost splits an authority. IPv6 addresses keep their brackets.
func splitHost(host string) (name, port string) {
	for i := len(host) - 1; i >= 0 && host[i] != ']'; i-- {
		if host[i] == ':' {
			return host[:i], host[i+1:]
		}
	}
	return host, ""
}

// addContent adds type and length of the body. The methods that usually have a body say
// that theirs is empty.
func (p *params) addContent(rq *exchange.Request) {
	if rq.Header.Has(header.ContentType) {
		p.add("CONTENT_TYPE", rq.Header.Get(header.ContentType))
	}
	if rq.Length > 0 || rq.Method == "POST" || rq.Method == "PUT" || rq.Method == "PATCH" {
		p.b = appendPair(p.b, "CONTENT_LENGTH", strconv.FormatInt(max(rq.Length, 0), 10))
	}
}

// addFields adds the header fields. Names that differ only in characters which no variable
// can have would be the same variable, so that a client could replace a field that headgate
// sets: only letters, digits and hyphens are passed. Proxy is not passed, because programs
// read HTTP_PROXY as the address of their proxy (CVE-2016-5385).
func (p *params) addFields(h *header.List) {
	all := h.All()
	for i := range all {
		f := &all[i]
		switch f.ID {
		case header.Host, header.ContentLength, header.ContentType, header.Expect:
			continue
		}
		if f.ID.HopByHop() || header.Odd(f.Name) || header.EqualFold(f.Name, "Proxy") || seenBefore(all[:i], f.Name) {
			continue
		}
		p.add(variable(f.Name), joined(all[i:], f.Name))
	}
}

func seenBefore(all []header.Field, name string) bool {
	for i := range all {
		if all[i].Is(name) {
			return true
		}
	}
	return false
}

// joined returns the values of all fields with the name of the first as one list (RFC 9110,
// section 5.3). Cookies are separated by semicolons.
func joined(all []header.Field, name string) string {
	value, separator := all[0].Value, ", "
	if all[0].Is("Cookie") {
		separator = "; "
	}
	for i := 1; i < len(all); i++ {
		if all[i].Is(name) {
			value += separator + all[i].Value
		}
	}
	return value
}

// variable returns the name of the parameter of a header field (RFC 3875, section 4.1.18).
func variable(name string) string {
	b := make([]byte, 0, len("HTTP_")+len(name))
	b = append(b, "HTTP_"...)
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '-':
			c = '_'
		case 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}
