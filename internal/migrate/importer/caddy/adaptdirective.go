package caddy

import (
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// directive makes the routes of one directive. What has no routes, or is none of Caddy's
// own directives, gets its verdict here.
func (b *block) directive(d *directive) []entry {
	switch name := d.name(); name {
	case "tls", "bind", "log", "handle_errors", "log_skip", "skip_log", "log_append", "log_name", "tracing":
		return b.aside(d)
	case "metrics":
		b.a.t.leaveOut(d, "/metrics is at the admin address")
		return nil
	case "handle_path":
		return b.handlePath(d)
	case "header":
		return b.header(d)
	case "request_header":
		return b.requestHeader(d)
	case "rewrite":
		return b.rewrite(d)
	case "forward_auth":
		return b.forwardAuth(d)
	default:
		make := makerOf(name)
		if make == nil {
			return b.unknown(d)
		}
		e, words, ok := b.matched(d)
		if !ok {
			return nil
		}
		if h := make(b, d, expanded(words)); h != nil {
			e.handlers = []*value{h}
			return []entry{e}
		}
	}
	return nil
}

// maker makes the handler of a directive, of the arguments behind its matcher.
type maker func(b *block, d *directive, words []string) *value

// makerOf returns the maker of a directive, nil if there is none.
func makerOf(name string) maker {
	switch name {
	case "handle", "route":
		return func(b *block, d *directive, _ []string) *value { return b.subroute(d, d.block, name == "handle") }
	case "respond", "abort", "redir":
		return map[string]maker{"respond": respond, "abort": abort, "redir": redir}[name]
	case "error":
		return failure
	case "method":
		return func(_ *block, d *directive, words []string) *value {
			return handler(d, "rewrite").put(d, "method", strings.Join(words, " "))
		}
	case "uri":
		return uri
	case "basic_auth", "basicauth":
		return basicAuth
	case "encode":
		return func(b *block, d *directive, words []string) *value {
			b.a.t.inside(d, importer.Ignored, "the algorithms, the minimum size and the media types are headgate's own")
			return handler(d, "encode").set("encodings", texts(d, words))
		}
	case "request_body":
		return requestBody
	case "reverse_proxy":
		return func(b *block, d *directive, words []string) *value { return b.reverseProxy(d, words) }
	case "file_server":
		return fileServer
	case "php_fastcgi":
		return phpFastCGI
	case "root", "vars":
		return func(b *block, d *directive, words []string) *value {
			return handler(d, "vars").put(d, name, strings.Join(words, " "))
		}
	case "map", "push", "templates", "acme_server", "try_files", "invoke", "intercept", "copy_response", "copy_response_headers", "fs":
		return func(b *block, d *directive, words []string) *value {
			b.a.t.inside(d, importer.Impossible, "a part of "+name)
			return handler(d, name).put(d, "arguments", strings.Join(words, " "))
		}
	}
	return nil
}

// aside handles directives that make no route.
func (b *block) aside(d *directive) []entry {
	switch t := b.a.t; d.name() {
	case "tls", "bind": // read with the site's addresses
	case "handle_errors":
		b.errors = append(b.errors, d)
	default:
		t.sayAll(d, importer.Ignored, "requests of all hosts are logged and measured")
	}
	return nil
}

// unknown is a directive of a plugin, or none.
func (b *block) unknown(d *directive) []entry {
	b.a.t.leaveOut(d, "headgate does not know the directive %s", d.name())
	return nil
}

// leaveOut reports that a directive with its block was left out, and adds a check for a
// person.
func (t *translator) leaveOut(d *directive, why string, args ...any) {
	t.sayAll(d, importer.Impossible, why, args...)
	t.Check("%s:%d: %s was left out: %s", d.File, d.Line, d.Text(), sprintf(why, args))
}

// inside gives what is in the block of a directive one verdict.
func (t *translator) inside(d *directive, v importer.Omission, note string) {
	for _, c := range d.block {
		t.sayAll(c, v, "%s", note)
	}
}

// handlePath is handle with a prefix that is removed.
func (b *block) handlePath(d *directive) []entry {
	pattern := d.arg(0)
	if !strings.HasPrefix(pattern, "/") {
		b.a.t.leaveOut(d, "handle_path has a path")
		return nil
	}
	strip := strings.TrimSuffix(strings.TrimSuffix(pattern, "*"), "/")
	h := b.subroute(d, d.block, true)
	routes := h.get("routes")
	first := object(d).set("handle", list(d, handler(d, "rewrite").set("strip_path_prefix", text(d, strip))))
	routes.list = append([]*value{first}, routes.list...)
	return []entry{{by: d, set: object(d).add(d, "path", pattern), path: pattern, handlers: []*value{h}}}
}

// respond is: respond [STATUS | BODY [STATUS]] { body TEXT; close }.
func respond(b *block, d *directive, words []string) *value {
	h := handler(d, "static_response")
	switch {
	case len(words) == 1 && isStatus(words[0]):
		h.put(d, "status_code", words[0])
	case len(words) > 0:
		h.put(d, "body", words[0])
		if len(words) > 1 {
			h.put(d, "status_code", words[1])
		}
	}
	for _, c := range d.block {
		switch c.name() {
		case "body":
			h.put(c, "body", expand(c.arg(0)))
		case "close":
			h.put(c, "close", "true")
		}
	}
	return h
}

func isStatus(text string) bool {
	n, err := strconv.Atoi(text)
	return len(text) == 3 && err == nil && n > 0
}

func abort(_ *block, d *directive, _ []string) *value {
	return handler(d, "static_response").put(d, "abort", "true")
}

// failure is: error [STATUS | MESSAGE [STATUS]] { message TEXT }.
func failure(b *block, d *directive, words []string) *value {
	h := handler(d, "error")
	if len(words) > 0 {
		status := words[len(words)-1]
		if len(words) == 2 || isStatus(status) {
			h.put(d, "status_code", status)
		}
	}
	b.a.t.inside(d, importer.Ignored, "the text of the error, which is for the log")
	return h
}

// redir is: redir TO [STATUS | permanent | temporary | html].
func redir(b *block, d *directive, words []string) *value {
	if len(words) == 0 {
		b.a.t.leaveOut(d, "it has no target")
		return nil
	}
	status := "302"
	if len(words) > 1 {
		status = words[1]
	}
	switch status {
	case "permanent":
		status = "301"
	case "temporary":
		status = "302"
	case "html":
		b.a.t.Check("%s:%d: %s: a page that redirects became a redirect", d.File, d.Line, d.Text())
		status = "302"
	}
	h := handler(d, "static_response").put(d, "status_code", status)
	return h.set("headers", object(d).add(d, "Location", words[0]))
}

// rewrite is: rewrite [MATCHER] TO, where a path alone is no matcher.
func (b *block) rewrite(d *directive) []entry {
	e, words, ok := entry{by: d}, d.args(), true
	if len(words) > 1 {
		e, words, ok = b.matched(d)
	}
	if !ok || len(words) != 1 {
		if ok {
			b.a.t.leaveOut(d, "it has no target")
		}
		return nil
	}
	e.handlers = []*value{handler(d, "rewrite").put(d, "uri", expand(words[0]))}
	return []entry{e}
}

// uri is: uri [MATCHER] strip_prefix|strip_suffix|replace|path_regexp|query ….
func uri(b *block, d *directive, words []string) *value {
	h := handler(d, "rewrite")
	if len(words) < 2 {
		b.a.t.leaveOut(d, "only strip_prefix, replace and path_regexp can be translated")
		return nil
	}
	switch op, arg := words[0], words[1]; {
	case op == "strip_prefix":
		return h.put(d, "strip_path_prefix", "/"+strings.TrimPrefix(arg, "/"))
	case op == "strip_suffix":
		return h.put(d, "strip_path_suffix", arg)
	case op == "replace" && len(words) > 2:
		one := object(d).put(d, "find", arg).put(d, "replace", words[2])
		if len(words) > 3 {
			one.put(d, "limit", words[3])
		}
		return h.set("uri_substring", list(d, one))
	case op == "path_regexp" && len(words) > 2:
		return h.set("path_regexp", list(d, object(d).put(d, "find", arg).put(d, "replace", words[2])))
	}
	b.a.t.leaveOut(d, "only strip_prefix, replace and path_regexp can be translated")
	return nil
}

// basicAuth is: basic_auth [MATCHER] [ALGORITHM [REALM]] { NAME HASH }.
func basicAuth(_ *block, d *directive, words []string) *value {
	h := handler(d, "authentication")
	basic := h.at(d, "providers", "http_basic")
	if len(words) > 1 {
		basic.put(d, "realm", words[1])
	}
	accounts := list(d)
	for _, c := range d.block {
		accounts.list = append(accounts.list, object(c).put(c, "username", c.name()).put(c, "password", c.arg(0)))
	}
	basic.set("accounts", accounts)
	return h
}

func requestBody(b *block, d *directive, _ []string) *value {
	h := handler(d, "request_body")
	for _, c := range d.block {
		if n, ok := bytesOf(c.arg(0)); c.name() == "max_size" && ok {
			h.put(c, "max_size", n)
		} else {
			b.a.t.leaveOut(c, "headgate has no such bound")
		}
	}
	return h
}

// bytesOf reads a size such as 10MB, whose units are powers of 1000, or 10MiB.
func bytesOf(size string) (string, bool) {
	digits := strings.TrimRight(size, "BbIiKkMmGg ")
	n, err := strconv.ParseFloat(digits, 64)
	unit, known := map[string]float64{"": 1, "b": 1, "kb": 1e3, "k": 1e3, "mb": 1e6, "m": 1e6, "gb": 1e9, "g": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}[strings.ToLower(strings.TrimSpace(size[len(digits):]))]
	return strconv.FormatInt(int64(n*unit), 10), err == nil && known && n >= 0 && n*unit < 1<<60
}

// header is: header [MATCHER] [+|-|?|>]NAME [VALUE [REPLACEMENT]], or such lines in a block.
func (b *block) header(d *directive) []entry {
	e, words, ok := b.matched(d)
	if !ok {
		return nil
	}
	always, absent := handler(d, "headers"), handler(d, "headers")
	if len(words) > 0 {
		to := always
		if strings.HasPrefix(words[0], "?") {
			to = absent
		}
		headerOp(to.at(d, "response"), d, words)
	}
	for _, c := range d.block {
		to := always
		switch {
		case c.name() == "defer":
			always.at(c, "response").put(c, "deferred", "true")
			continue
		case strings.HasPrefix(c.name(), "?"):
			to = absent
		}
		headerOp(to.at(d, "response"), c, c.words)
	}
	var out []entry
	for _, h := range []*value{always, absent} {
		if h.get("response").is() {
			one := e
			one.handlers = []*value{h}
			out = append(out, one)
		}
	}
	return out
}

// headerOp adds an operation on a field.
func headerOp(ops *value, d *directive, words []string) {
	words = expanded(words)
	name := strings.TrimSuffix(words[0], ":")
	value := ""
	if len(words) > 1 {
		value = words[1]
	}
	bare := strings.TrimLeft(name, "+-?>")
	switch name[:min(1, len(name))] {
	case "+":
		ops.at(d, "add").add(d, canonical(bare), value)
	case "-":
		ops.add(d, "delete", bare)
		ops.put(d, "deferred", "true")
	case "?":
		ops.at(d, "require", "headers").set(canonical(bare), text(d, ""))
		ops.at(d, "set").add(d, canonical(bare), value)
	default:
		if strings.HasPrefix(name, ">") {
			ops.put(d, "deferred", "true")
		}
		if len(words) > 2 {
			one := object(d).put(d, "search_regexp", value).set("replace", text(d, words[2]))
			at := ops.at(d, "replace")
			if at.fields[canonical(bare)] == nil {
				at.set(canonical(bare), list(d))
			}
			at.fields[canonical(bare)].list = append(at.fields[canonical(bare)].list, one)
			return
		}
		ops.at(d, "set").set(canonical(bare), list(d, text(d, value)))
	}
}

func (b *block) requestHeader(d *directive) []entry {
	e, words, ok := b.matched(d)
	if !ok {
		return nil
	}
	h := handler(d, "headers")
	if len(words) > 0 {
		headerOp(h.at(d, "request"), d, words)
	}
	for _, c := range d.block {
		headerOp(h.at(d, "request"), c, c.words)
	}
	h.get("request").drop("deferred")
	e.handlers = []*value{h}
	return []entry{e}
}

func (v *value) drop(name string) {
	delete(v.fields, name)
	for i, k := range v.keys {
		if k == name {
			v.keys = append(v.keys[:i:i], v.keys[i+1:]...)
			return
		}
	}
}
