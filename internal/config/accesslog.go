package config

import (
	"iter"
	"path/filepath"
	"strings"

	"headgate/internal/accesslog"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
)

// accessLog reports a log without a destination, and unknown fields.
func (ch *checker) accessLog(at schema.Place) {
	l := &ch.c.AccessLog
	if l.Path == "" && l.Enabled {
		at.Field("path").Problem("the path is empty", "write stdout, stderr or a file, or enabled: false")
	} else if strings.ContainsRune(l.Path, 0) {
		at.Field("path").Problem("the path contains a NUL", "remove it")
	}
	checkLogged(l.RequestHeaders, at.Field("request_headers"))
	checkLogged(l.ResponseHeaders, at.Field("response_headers"))
	ch.logs(at.Root())
	known := accesslog.Omittable()
	for i, name := range l.Omit {
		found := false
		for _, other := range known {
			found = found || other == name
		}
		if !found {
			at.Field("omit").Index(i).Problemf("write one of "+strings.Join(known, ", "), "%q is not a field that can be omitted", name)
		}
	}
	for i, name := range l.RedactQuery {
		if plain := strings.TrimSuffix(name, "*"); plain == "" && name != "*" || strings.ContainsAny(plain, "*?&=;#% ") {
			at.Field("redact_query").Index(i).Problem("not a parameter name", "write one like token, or x_*")
		}
	}
	if l.Format == "combined" {
		for _, f := range []struct {
			name string
			set  bool
		}{{"request_headers", len(l.RequestHeaders) > 0}, {"response_headers", len(l.ResponseHeaders) > 0}, {"omit", len(l.Omit) > 0}} {
			if f.set {
				at.Field(f.name).Problem(f.name+" is only valid with format: json", "write format: json, or remove it")
			}
		}
	}
}

// checkLogged reports names of fields that cannot be logged.
func checkLogged(names []string, at schema.Place) {
	for i, name := range names {
		switch id := header.Lookup(name); {
		case !http1.ValidName(name):
			at.Index(i).Problem("invalid name", "write one like X-Tenant")
		case id == header.Cookie || id == header.SetCookie || id == header.Authorization || id == header.ProxyAuthorization:
			at.Index(i).Problem(name+" carries secrets", "remove it")
		}
	}
}

// maxLogs is how many files proxies may have for their access logs, which each hold
// memory.
const maxLogs = 64

// logs reports proxies whose access log has no destination, and too many of them.
func (ch *checker) logs(root schema.Place) {
	paths := map[string]bool{}
	for o := range ch.c.OwnLogs(root) {
		l, at := o.Log, o.At.Field("access_log").Field("path")
		if l.Path == "" {
			continue
		}
		if strings.ContainsRune(l.Path, 0) {
			at.Problem("the path contains a NUL", "remove it")
		}
		if path := l.File(); !paths[path] {
			paths[path] = true
			if len(paths) == maxLogs+1 {
				at.Problemf("let several proxies share a file; each line contains the name of its proxy", "access logs in more than %d files", maxLogs)
			}
		}
	}
}

// OwnLog is the access log of a proxy.
type OwnLog struct {
	// Log are the settings; At is the place of the proxy.
	Log *ProxyLog
	At  schema.Place
	// Active is whether the proxy is.
	Active bool
}

// OwnLogs returns the access logs of HTTP, TCP and UDP proxies that have their own, by
// name.
func (c *Config) OwnLogs(root schema.Place) iter.Seq[OwnLog] {
	return func(yield func(OwnLog) bool) {
		_ = ownLogs(c.Proxies, c.special().logging, root, "proxies", "proxy", func(p *Proxy) (*ProxyLog, bool) { return p.AccessLog, p.Active }, yield) &&
			ownLogs(c.TCPProxies, sortedNames(c.TCPProxies), root, "tcp_proxies", "TCP proxy", func(p *TCPProxy) (*ProxyLog, bool) { return p.AccessLog, p.Active && c.Here(p.Nodes) }, yield) &&
			ownLogs(c.UDPProxies, sortedNames(c.UDPProxies), root, "udp_proxies", "UDP proxy", func(p *UDPProxy) (*ProxyLog, bool) { return p.AccessLog, p.Active && c.Here(p.Nodes) }, yield)
	}
}

func ownLogs[P any](all map[string]*P, names []string, root schema.Place, kind, noun string, of func(*P) (*ProxyLog, bool), yield func(OwnLog) bool) bool {
	for _, name := range names {
		if l, active := of(all[name]); l != nil && !yield(OwnLog{l, root.Field(kind).Field(name).Called(noun, name), active}) {
			return false
		}
	}
	return true
}

// File returns the name that the common log is opened by.
func (l *AccessLog) File() string { return logFile(l.Path) }

// File returns the name that the log is opened by, "" for the common one.
func (l *ProxyLog) File() string { return logFile(l.Path) }

// logFile returns the one form of the path of a log.
func logFile(path string) string {
	switch path {
	case "", accesslog.Stdout, accesslog.Stderr:
		return path
	}
	return filepath.Clean(path)
}
