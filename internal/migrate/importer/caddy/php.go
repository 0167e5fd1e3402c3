package caddy

import (
	"path"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// scripts are the PHP scripts of requests, as php_fastcgi runs them. What has an answer of
// its own before is not asked, and what is a file but no script goes on to file_server.
type scripts struct {
	servers  []importer.Object
	dials    []*value        // of the servers
	settings importer.Object // all but root
	by       *value
	static   bool // a file_server of the same folder follows
	bounds   importer.Object
}

// The paths that php_fastcgi tries by itself, as Caddy's JSON has them.
const (
	pathItself   = "{http.request.uri.path}"
	foundFile    = "{http.matchers.file.relative}"
	slashedPath  = "{http.request.orig_uri.path}/"
	defaultSplit = ".php"
)

// phpFastCGI is: php_fastcgi [matcher] upstreams { root, split, index, try_files, env, … }.
func phpFastCGI(b *block, d *directive, words []string) *value {
	h := handler(d, "php_fastcgi")
	upstreams, to := list(d), h.at(d, "transport")
	h.set("upstreams", upstreams)
	for _, w := range words {
		dial, _, _ := dialOf(w)
		upstreams.list = append(upstreams.list, object(d).put(d, "dial", dial))
	}
	for _, o := range d.block {
		words := expanded(o.args())
		switch name := o.name(); name {
		case "root", "dial_timeout", "read_timeout", "write_timeout":
			to.put(o, name, strings.Join(words, " "))
		case "resolve_root_symlink", "capture_stderr":
			to.put(o, name, "true")
		case "split":
			to.set("split_path", texts(o, words))
		case "env":
			if len(words) == 2 {
				to.at(o, "env").put(o, words[0], words[1])
			} else {
				b.a.t.leaveOut(o, "a parameter has a name and a value")
			}
		case "index":
			h.put(o, "index", strings.Join(words, " "))
		case "try_files":
			h.set("try_files", texts(o, words))
		default:
			b.proxyOption(h, o)
		}
	}
	return h
}

// phpRoutes returns the handler of the routes that php_fastcgi is in Caddy's JSON, and how
// many they are; nil if the list does not begin with them.
func phpRoutes(list []*value) (h *value, n int) {
	isMatch := func(r *value, field string) *value {
		if m := r.get("match").list; len(m) == 1 && len(r.get("handle").list) == 1 {
			return m[0].get(field)
		}
		return r.get("match", "none")
	}
	handle := func(r *value) *value { return r.get("handle").list[0] }
	var index, tries *value
	if n < len(list) {
		file := isMatch(list[n], "file")
		if one := file.get("try_files").texts(); len(one) == 1 && strings.HasPrefix(one[0], pathItself+"/") && handle(list[n]).get("status_code").text == "308" &&
			slices.Equal(handle(list[n]).get("headers", "Location").texts(), []string{slashedPath}) {
			index = file.get("try_files")
			n++
		}
	}
	if n < len(list) {
		file := isMatch(list[n], "file")
		if file.get("split_path").is() && handle(list[n]).get("uri").text == foundFile {
			tries = file.get("try_files")
			n++
		}
	}
	if n == len(list) || (index == nil) != (tries == nil) {
		return nil, 0
	}
	paths := isMatch(list[n], "path").texts()
	if len(paths) == 0 || len(list[n].get("handle").list) != 1 {
		return nil, 0
	}
	h = handle(list[n])
	split := h.get("transport", "split_path").texts()
	for i := range split {
		split[i] = "*" + split[i]
	}
	if h.get("handler").text != "reverse_proxy" || h.get("transport", "protocol").text != "fastcgi" || !slices.Equal(paths, split) {
		return nil, 0
	}
	if tries != nil {
		h.set("try_files", tries).set("index", index.list[0])
	} else {
		h.set("index", &value{Origin: h.Origin, path: joinPath(h.path, "index"), text: "off"})
		h.get("index").Skip()
	}
	return h, n + 1
}

// php translates php_fastcgi, and reverse_proxy with the transport fastcgi in its routes.
func (w *walker) php(h *value, c rules.Condition, parts []*value) {
	p := &scripts{settings: importer.NewObject(), bounds: importer.NewObject(), by: h}
	if why := w.phpSettings(h, p); why != "" {
		w.noHandler(h, c, why+"; here it answers 404")
		return
	}
	if !w.phpServers(h, p) {
		w.noHandler(h, c, "it has no servers that can be named; here it answers 404")
		return
	}
	w.phpTransport(h.get("transport"), p)
	w.balance(h, p.bounds)
	for _, name := range h.keys {
		switch name {
		case "handler", "upstreams", "transport", "index", "try_files", "load_balancing":
		default:
			w.t.lost(h.get(name), "write it at the route: checks, headers and limits of php_fastcgi are not translated")
		}
	}
	w.later = append(w.later, h)
	if !w.routable(h, c, func(o *result) {
		if o.folder.root == "" || strings.Contains(o.folder.root, "{") || o.folder.unknown || o.folder.spa || o.rewrite.Len() > 0 || o.strip != "" {
			o.answer(fixedStatus(404))
			w.t.Check("%s:%d: the folder of php_fastcgi cannot be translated; its requests get 404", h.File, h.Line)
			return
		}
		own := *p
		o.php = &own
	}) {
		return
	}
	for _, part := range parts {
		w.t.structure(part, "a part of php_fastcgi")
	}
}

// phpSettings reads which scripts run, and returns why that cannot be said.
func (w *walker) phpSettings(h *value, p *scripts) (why string) {
	index := "index.php"
	if v := h.get("index"); v.is() {
		index = strings.TrimPrefix(v.text, pathItself+"/")
	}
	tries := []string{pathItself, pathItself + "/" + index, index}
	if v := h.get("try_files"); v.is() {
		tries = v.texts()
	}
	front := false
	for i, file := range tries {
		switch file = strings.Replace(file, "{path}", pathItself, 1); {
		case index == "off":
		case file == pathItself, file == pathItself+"/"+index:
		case i == len(tries)-1 && strings.TrimPrefix(file, "/") == index:
			front = true
		case i == len(tries)-1 && file == "=404":
		default:
			return "fastcgi tries the path, the index of a folder and the index of the root, not " + file
		}
	}
	switch {
	case index == "off":
		return "headgate runs the index script of a folder, and index off does not"
	case strings.Contains(index, "/") || strings.Contains(index, "{"):
		return "the index is no name of a file"
	case !slices.Contains(tries, pathItself+"/"+index) && !slices.Contains(tries, "{path}/"+index):
		return "headgate runs the index script of a folder, and try_files does not"
	}
	p.settings.Set("index", []string{index})
	if !front {
		p.settings.Set("front_controller", false)
	}
	if split := h.get("transport", "split_path"); split.is() {
		for _, s := range split.texts() {
			if !strings.HasPrefix(s, ".") || strings.ContainsAny(s[1:], "./{") || s == "." {
				return "split has the extensions of scripts, not " + s
			}
		}
		if all := split.texts(); !slices.Equal(all, []string{defaultSplit}) {
			p.settings.Set("split_path", all)
		}
	}
	return ""
}

// phpServers reads the addresses of the servers. It reports false without any.
func (w *walker) phpServers(h *value, p *scripts) bool {
	for _, u := range h.get("upstreams").list {
		dial := u.get("dial")
		url := "fcgi://" + dial.text
		_, ok := serverURL("http://" + dial.text)
		if socket, unix := strings.CutPrefix(dial.text, "unix/"); unix {
			url, ok = "fcgi+unix:"+socket, strings.HasPrefix(socket, "/") && !strings.ContainsAny(socket, ":{")
		}
		if !ok {
			w.t.sayValue(u, importer.Impossible, "not an address of a server that can be translated")
			w.t.Check("%s:%d: %q is not an address of a server that can be translated", u.File, u.Line, dial.text)
			continue
		}
		one := importer.NewObject().Set("url", url)
		p.servers, p.dials = append(p.servers, one.Flow()), append(p.dials, dial)
	}
	return len(p.servers) > 0
}

// phpTransport reads the parameters and the times.
func (w *walker) phpTransport(v *value, p *scripts) {
	if root := v.get("root"); root.is() {
		p.settings.Set("server_root", path.Clean(root.text))
		w.t.Became(root, importer.Same, p.settings.Field("server_root"), "fastcgi.server_root")
	}
	w.t.Became(v.get("split_path"), importer.Same, p.settings.Field("split_path").Or(p.settings.Field("index")), "fastcgi.split_path")
	var params []importer.Object
	for _, name := range v.get("env").keys {
		text := v.get("env", name).text
		if strings.Contains(text, "{") {
			w.t.lost(v.get("env", name), "parameters have fixed values; scripts get the header fields of the request as HTTP_ parameters")
			continue
		}
		one := importer.NewObject().Set("name", name).Set("value", text)
		params = append(params, one.Flow())
		w.t.Became(v.get("env", name), importer.Same, one.Field("value"), "fastcgi.params")
	}
	if len(params) > 0 {
		p.settings.Set("params", params)
	}
	if d := v.get("dial_timeout"); d.is() {
		p.bounds.Set("timeouts", importer.NewObject().Set("connect", d.duration()).Flow())
		w.t.Became(d, importer.Same, p.bounds.Field("timeouts"), "timeouts.connect")
	}
	if d := v.get("read_timeout"); d.is() {
		p.bounds.Set("request_timeout", d.duration())
		w.t.Became(d, importer.Close, p.bounds.Field("request_timeout"), "request_timeout is the time until the script sends its first output")
	}
	w.t.sayValue(v.get("write_timeout"), importer.Ignored, "request_timeout includes it")
	w.t.Became(v.get("capture_stderr"), importer.Same, importer.ByItself(), "what scripts write to standard error is logged")
	w.t.sayValue(v.get("resolve_root_symlink"), importer.Ignored, "links in the path of the root are not resolved")
	if w.t.structure(v.get("protocol"), "the scheme of the server says it"); v.object && len(v.keys) == 0 {
		w.t.structure(v, "it has the defaults")
	}
}

// setPHP sets what runs the scripts of a route.
func (o *result) setPHP(out importer.Object, routePath string) {
	p := o.php
	settings := importer.NewObject().Set("root", o.folder.root).Merge(p.settings)
	if !p.static {
		settings.Set("static", false)
	}
	out.Merge(p.bounds)
	out.Set("servers", p.servers).Set("fastcgi", settings.Flow())
	if routePath != "" {
		out.Set("strip_prefix", false)
	}
	field, t := out.Field("fastcgi"), o.w.t
	note := "only scripts that exist in the root run; names that begin with a dot and files whose name contains .php are not sent"
	if !p.static {
		note = "only scripts that exist in the root run; other files get 404, which Caddy answers with an empty 200"
	}
	t.Became(p.by.get("handler"), importer.Close, field, "%s", note)
	for i, dial := range p.dials {
		t.Became(dial, importer.Same, p.servers[i].Field("url"), "servers")
	}
	for _, v := range []*value{p.by.get("index"), p.by.get("try_files")} {
		t.Became(v, importer.Same, field, "fastcgi")
	}
	if o.folder.rootBy != nil {
		t.Became(o.folder.rootBy, importer.Same, field, "fastcgi.root")
	}
	t.Check("%s:%d: headgate must be able to search %s and to connect to %s", p.by.File, p.by.Line, o.folder.root, p.servers[0].Text("url"))
}

// besidePHP lets a handler that comes after php_fastcgi act on what that passes on: files
// that are no scripts. A file_server of the same folder sends them. With another handler
// between, they get 404: it may be one that protects them.
func (o *result) besidePHP(by *value) {
	why := ""
	switch root := by.get("root").text; {
	case by.get("handler").text != "file_server":
		why = by.label() + " comes after php_fastcgi"
	case root != "" && root != o.folder.root:
		why = "file_server has another folder than php_fastcgi"
	}
	if why != "" {
		o.w.t.Check("%s:%d: %s: files that are no scripts get 404", by.File, by.Line, why)
		o.over = true
		return
	}
	o.php.static, o.over = true, true
	t, field := o.w.t, importer.ByItself()
	t.Became(by.get("handler"), importer.Close, field, "fastcgi sends the files of its root: Content-Type of unknown extensions is application/octet-stream, which Caddy leaves out")
	t.Became(by.get("root"), importer.Same, field, "fastcgi.root")
	for _, name := range []string{"index_names", "precompressed_order", "browse"} {
		t.sayValue(by.get(name), importer.Ignored, "folders without an index script run that of the root; compression compresses files")
	}
}
