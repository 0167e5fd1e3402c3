package compare

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"headgate/internal/config"
)

// FromRoutes makes requests from a configuration: for each host of each active proxy
// its routes' paths and the borders of these, over http and https if the proxy is on
// such a port. Expressions, and proxies for every host, get hosts in domains. Notes
// say what cannot be made into a request.
func FromRoutes(c *config.Config, domains ...string) (requests []Request, notes []string) {
	owner := ProxyOf(c)
	for _, name := range slices.Sorted(maps.Keys(c.Proxies)) {
		p := c.Proxies[name]
		if p == nil || !p.Active {
			continue
		}
		hosts, skipped := hostsOf(p, domains, func(host string) bool { return owner(Request{Host: host}) == name })
		if skipped > 0 {
			notes = append(notes, fmt.Sprintf("proxy %s: no request can be made from hosts that are expressions (%d); name a domain with --domain, or give a list with --from", name, skipped))
		}
		if len(hosts) == 0 && skipped == 0 {
			notes = append(notes, fmt.Sprintf("proxy %s answers for every host; name a domain with --domain, or give a list with --from to compare it", name))
		}
		for _, scheme := range schemesOf(c, p) {
			for _, host := range hosts {
				for _, path := range pathsOf(p) {
					requests = append(requests, Request{Method: http.MethodGet, Scheme: scheme, Host: host, Target: path, Proxy: name})
				}
			}
		}
	}
	return requests, notes
}

// maxHosts limits the hosts of one proxy that are compared.
const maxHosts = 20

// hostsOf returns names for requests; a wildcard results in one that it matches, an
// expression in those in domains. owns reports whether the proxy serves a host.
// expressions counts those without any.
func hostsOf(p *config.Proxy, domains []string, owns func(host string) bool) (hosts []string, expressions int) {
	list, err := p.Hosts()
	if err != nil {
		return nil, 0
	}
	for _, h := range list {
		switch h.Class {
		case config.HostRegex:
			in := slices.DeleteFunc(hostsIn(domains, h), func(host string) bool { return !owns(host) })
			if hosts = append(hosts, in...); len(in) == 0 {
				expressions++
			}
		case config.HostWildcard:
			hosts = append(hosts, strings.Replace(h.String(), "*", "headgate-compare", 1))
		default:
			hosts = append(hosts, h.String())
		}
	}
	if len(list) == 0 {
		hosts = slices.DeleteFunc(slices.Clone(domains), func(host string) bool { return !owns(host) })
	}
	return hosts[:min(len(hosts), maxHosts)], expressions
}

func schemesOf(c *config.Config, p *config.Proxy) []string {
	var http, https bool
	for name, port := range c.Ports {
		if port == nil || !port.Active || len(p.Ports) > 0 && !slices.Contains(p.Ports, name) {
			continue
		}
		http = http || port.Protocol == config.HTTP
		https = https || port.Protocol == config.HTTPS
	}
	var out []string
	if http {
		out = append(out, "http")
	}
	if https {
		out = append(out, "https")
	}
	return out
}

// pathsOf returns the paths of the routes, something below each, and something that
// only looks like being below.
func pathsOf(p *config.Proxy) []string {
	all := map[string]bool{"/": true, "/headgate-compare?q=1": true}
	for _, r := range p.Routes {
		if path := strings.TrimSuffix(r.Path, "/"); path != "" {
			for _, end := range []string{"", "/", "/headgate-compare?q=1", "-headgate-compare"} {
				all[(&url.URL{Path: path}).EscapedPath()+end] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// maxLine bounds a line of a list, in bytes.
const maxLine = 64 << 10

// FromList reads requests, one a line: a URL, a method and a URL, or a line of an
// access log (JSON lines of headgate, Caddy or Traefik; the combined form of nginx and
// Apache, which names no host: host is then used). Requests that are there twice are
// sent once. At most n are returned, spread over the list. proxyOf says which proxy a
// request belongs to; nil if that is not known.
func FromList(r io.Reader, host string, n int, proxyOf func(Request) string) (requests []Request, notes []string, err error) {
	lines := bufio.NewReaderSize(r, maxLine)
	seen := map[string]bool{}
	number, odd, firstOdd := 0, 0, 0
	for {
		text, whole, err := readWhole(lines)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("read line %d: %w", number+1, err)
		}
		number++
		line := strings.TrimSpace(text)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rq, ok := readLine(line, host)
		if !ok || !whole {
			if odd++; odd == 1 {
				firstOdd = number
			}
			continue
		}
		if key := rq.Method + " " + rq.URL(); !seen[key] && len(seen) < 10*maxRequests {
			seen[key] = true
			requests = append(requests, rq)
		}
	}
	if odd > 0 {
		notes = append(notes, fmt.Sprintf("%d lines were left out, the first is line %d: they are no URL and no line of an access log that names a host (give --host for logs without)", odd, firstOdd))
	}
	if len(requests) > n {
		notes = append(notes, fmt.Sprintf("%d of %d different requests are compared; --limit sets how many", n, len(requests)))
		requests = Spread(requests, n)
	}
	if proxyOf != nil {
		for i := range requests {
			requests[i].Proxy = proxyOf(requests[i])
		}
	}
	return requests, notes, nil
}

// readWhole reads a line, and reports whether it is within the bound.
func readWhole(r *bufio.Reader) (line string, whole bool, err error) {
	part, more, err := r.ReadLine()
	line, whole = string(part), !more
	for more && err == nil {
		_, more, err = r.ReadLine()
	}
	if errors.Is(err, io.EOF) && !whole {
		err = nil
	}
	return line, whole, err
}

// Spread keeps n requests from the whole of a list.
func Spread(all []Request, n int) []Request {
	kept := make([]Request, 0, n)
	for i := range n {
		kept = append(kept, all[i*len(all)/n])
	}
	return kept
}

// readLine reads a line in the first form that fits it.
func readLine(line, host string) (Request, bool) {
	if strings.HasPrefix(line, "{") {
		return readJSON(line)
	}
	words := strings.Fields(line)
	if len(words) >= 1 && len(words) <= 2 {
		method, text := http.MethodGet, words[len(words)-1]
		if len(words) == 2 {
			method = words[0]
		}
		return fromURL(method, text)
	}
	return readCombined(line, host)
}

func fromURL(method, text string) (Request, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || !isToken(method) {
		return Request{}, false
	}
	return valid(Request{Method: method, Scheme: u.Scheme, Host: u.Host, Target: targetOf(text)})
}

// targetOf cuts path and query out of a URL as they are written.
func targetOf(text string) string {
	text, _, _ = strings.Cut(text, "#")
	_, rest, _ := strings.Cut(text, "://")
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return "/"
	case rest[i] == '?':
		return "/" + rest[i:]
	}
	return rest[i:]
}

// readJSON reads a line as headgate, Caddy or Traefik write it.
func readJSON(line string) (Request, bool) {
	var l struct {
		Method, Scheme, Host, Path, Query string // headgate
		Request                           struct {
			Method, Host, URI string
			TLS               *struct{} `json:"tls"`
		} // Caddy
		RequestMethod, RequestHost, RequestPath, RequestScheme string // Traefik
	}
	if json.Unmarshal([]byte(line), &l) != nil {
		return Request{}, false
	}
	switch {
	case l.Request.Host != "":
		scheme := "http"
		if l.Request.TLS != nil {
			scheme = "https"
		}
		return valid(Request{Method: l.Request.Method, Scheme: scheme, Host: l.Request.Host, Target: l.Request.URI})
	case l.RequestHost != "":
		return valid(Request{Method: l.RequestMethod, Scheme: orHTTPS(l.RequestScheme), Host: l.RequestHost, Target: l.RequestPath})
	case l.Host != "":
		target := l.Path
		if l.Query != "" {
			target += "?" + l.Query
		}
		return valid(Request{Method: l.Method, Scheme: orHTTPS(l.Scheme), Host: l.Host, Target: target})
	}
	return Request{}, false
}

func orHTTPS(scheme string) string {
	if scheme == "" {
		return "https"
	}
	return scheme
}

// readCombined reads the request line out of the combined form; the word before the
// address may be the host (the form "vcombined").
func readCombined(line, host string) (Request, bool) {
	head, rest, ok := strings.Cut(line, ` "`)
	if !ok {
		return Request{}, false
	}
	end := strings.Index(rest, `" `)
	if end < 0 {
		return Request{}, false
	}
	parts := strings.Split(rest[:end], " ")
	if len(parts) != 3 || !strings.HasPrefix(parts[2], "HTTP/") {
		return Request{}, false
	}
	scheme := "https"
	if first, _, _ := strings.Cut(head, " "); host == "" && isHost(first) {
		var port string
		if h, p, err := net.SplitHostPort(first); err == nil {
			first, port = h, p
		}
		if host = first; port == "80" {
			scheme = "http"
		}
	}
	return valid(Request{Method: parts[0], Scheme: scheme, Host: host, Target: parts[1]})
}

// isHost distinguishes the host of vcombined from a client's address.
func isHost(word string) bool {
	name := word
	if h, _, err := net.SplitHostPort(word); err == nil {
		name = h
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err != nil && strings.Contains(name, ".")
}

func valid(rq Request) (Request, bool) {
	rq.Method = strings.ToUpper(rq.Method)
	ok := isToken(rq.Method) && rq.Host != "" && !strings.ContainsAny(rq.Host, "/?#@ ") && strings.HasPrefix(rq.Target, "/") &&
		(rq.Scheme == "http" || rq.Scheme == "https") && !strings.ContainsFunc(rq.Target, func(c rune) bool { return c <= ' ' || c == 0x7f })
	return rq, ok
}

func isToken(s string) bool {
	return s != "" && len(s) <= 32 && !strings.ContainsFunc(s, func(c rune) bool {
		return !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '-')
	})
}
