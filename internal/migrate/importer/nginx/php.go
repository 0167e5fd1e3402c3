package nginx

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// scriptExprs are the expressions of locations that match paths of PHP scripts, and maybe of
// what follows them. Others could leave paths out that headgate would run.
var scriptExprs = []string{`\.php$`, `\.php(/|$)`, `\.php(?:/|$)`, `\.php($|/)`, `\.php(?:$|/)`, `[^/]\.php(/|$)`, `[^/]\.php(?:/|$)`, `^(.+\.php)(.*)$`, `^(.+\.php)(/.*)?$`, `^.+\.php(/|$)`}

// withoutInfo is the expression that leaves paths below scripts to other locations.
const withoutInfo = `\.php$`

// cgiParams are the parameters that every script gets, with the variable that means the same.
var cgiParams = map[string]string{
	"QUERY_STRING": "$query_string", "REQUEST_METHOD": "$request_method", "CONTENT_TYPE": "$content_type", "CONTENT_LENGTH": "$content_length", "SCRIPT_NAME": "$fastcgi_script_name",
	"DOCUMENT_ROOT": "$document_root", "SERVER_PROTOCOL": "$server_protocol", "REQUEST_SCHEME": "$scheme", "REMOTE_ADDR": "$remote_addr", "REMOTE_PORT": "$remote_port", "SERVER_ADDR": "$server_addr",
	"HTTPS": "$https", "PATH_INFO": "$fastcgi_path_info", "HTTP_HOST": "$http_host", "GATEWAY_INTERFACE": "CGI/1.1", "REDIRECT_STATUS": "200", "HTTP_PROXY": "",
	"REQUEST_URI": "", "DOCUMENT_URI": "", "SERVER_PORT": "", "SERVER_NAME": "", "REMOTE_USER": "", "SERVER_SOFTWARE": "",
}

// paramName is the name of a parameter that can be set.
var paramName = regexp.MustCompile(`^[A-Za-z0-9_]{1,128}$`)

// php makes the route run the PHP scripts of a root and serve its other files, as a location
// for them beside the route's does.
func (c *content) php() bool {
	l := c.scriptLocation()
	if l == nil {
		return false
	}
	scope := l.scope(c.around)
	pass := l.d.find("fastcgi_pass")
	folder, own := c.scope.last("root"), scope.last("root")
	if len(pass) != 1 || !c.runs(pass[0].arg(0)) || folder == nil || own == nil || folder.arg(0) != own.arg(0) || strings.Contains(folder.arg(0), "$") {
		return false
	}
	root := path.Clean(folder.arg(0))
	settings := importer.NewObject().Set("root", c.t.path(root))
	say, ok := c.params(scope, root, settings)
	if !ok || !c.phpIndex(settings) {
		return false
	}
	tries, front, note := c.frontController()
	if !front {
		settings.Set("front_controller", false)
	}
	c.servers("fcgi", pass[0].arg(0), "")
	c.o.Set("fastcgi", settings)
	if c.path != "" {
		c.o.Set("strip_prefix", false)
	}
	for _, f := range say {
		f()
	}
	c.scriptTimes(scope)
	if tries != nil {
		c.became(tries, verdictOf(note), "fastcgi", note)
	}
	c.became(folder, importer.Close, "fastcgi", "names that begin with a dot and files whose name contains .php are not sent; Content-Type comes from headgate's table of extensions")
	c.became(pass[0], importer.Same, "servers", "")
	c.scriptVerdicts(l, front)
	c.t.Check("proxy %s, path %s: headgate must be able to search %s and to connect to %s", c.name, orRoot(c.path), root, c.o.Objects("servers")[0].Text("url"))
	return true
}

// scriptLocation returns the location that runs the scripts of the route, nil if there is none
// or if it can run others than headgate would.
func (c *content) scriptLocation() *location {
	var scripts []*location
	every(c.locations, func(l *location) {
		if len(l.d.find("fastcgi_pass", "uwsgi_pass", "scgi_pass")) > 0 {
			scripts = append(scripts, l)
		}
	})
	if c.location != nil && (c.location.kind == byPrefixAt || len(c.location.d.find("alias")) > 0) {
		return nil // nginx runs no script there, or one of another folder
	}
	if len(scripts) != 1 || scripts[0].kind != byExpr || scripts[0].around != nil || !slices.Contains(scriptExprs, scripts[0].path) {
		return nil
	}
	return scripts[0]
}

// phpIndex sets the files for a folder. It reports false if index.php would run and does not
// for nginx.
func (c *content) phpIndex(settings importer.Object) bool {
	index := c.scope.last("index")
	switch {
	case index == nil:
		settings.Set("index", []string{"index.html"}) // nginx's own
	case !slices.Contains(index.args, "index.php"):
		return false
	default:
		c.index(settings)
	}
	return true
}

// scriptTimes sets the time limits of the location for scripts, which replace those of the
// route.
func (c *content) scriptTimes(s scope) {
	for _, d := range s.level("fastcgi_read_timeout") {
		c.readTimeout(d)
	}
	for _, d := range s.level("fastcgi_connect_timeout") {
		c.connectTimeout(d)
	}
	for _, d := range s.level("fastcgi_send_timeout") {
		c.t.AddVerdict(d, importer.Ignored, "request bodies have the idle time-out of the port")
	}
}

// scriptVerdicts says of the location for scripts what runs.
func (c *content) scriptVerdicts(l *location, front bool) {
	note := "only scripts that exist are run, and what follows the first of them in a path is PATH_INFO"
	if l.path == withoutInfo {
		note += "; nginx runs no script for paths below one"
	}
	if front {
		note += "; the path of a script that does not exist runs index.php"
	}
	if tries := l.d.find("try_files"); len(tries) > 0 {
		c.became(tries[0], importer.Close, "fastcgi", note)
	}
	c.became(l.d, importer.Close, "fastcgi", note)
	if index := c.scope.last("index"); index != nil {
		c.became(index, importer.Same, "fastcgi", "")
	}
	c.t.routed[l.d] = true
}

// runs reports whether fastcgi_pass names servers that headgate can have: an address, or an
// upstream of addresses.
func (c *content) runs(text string) bool {
	up := c.t.upstreams[text]
	if up == nil {
		return isFastCGI(text)
	}
	servers := up.find("server")
	return len(servers) > 0 && !slices.ContainsFunc(servers, func(d *directive) bool { return !isFastCGI(d.arg(0)) })
}

// isFastCGI reports whether a text is a socket, or a host with a port.
func isFastCGI(text string) bool {
	if socket, ok := strings.CutPrefix(text, "unix:"); ok {
		return strings.HasPrefix(socket, "/") && !strings.ContainsAny(socket, "$:")
	}
	host, port, ok := strings.Cut(text, ":")
	return ok && host != "" && port != "" && !strings.ContainsAny(text, "$/[")
}

// params sets what fastcgi_param says. It returns what adds the verdicts, and false if a
// script would be another one than for nginx.
func (c *content) params(s scope, root string, settings importer.Object) (say []func(), ok bool) {
	verdict := func(d *directive, note string) {
		say = append(say, func() { c.became(d, verdictOf(note), "fastcgi", note) })
	}
	var list []importer.Object
	seen := map[string]bool{}
	for _, d := range slices.Backward(s.level("fastcgi_param")) { // the last of a name holds
		name, value := d.arg(0), d.arg(1)
		usual, computed := cgiParams[name]
		switch {
		case seen[name]:
			verdict(d, "")
		case name == "SCRIPT_FILENAME":
			if ok = c.scriptFile(d, root, settings, verdict); !ok {
				return nil, false
			}
		case computed && value == usual:
			verdict(d, "")
		case computed && strings.Contains(value, "$"):
			verdict(d, "headgate sets "+name+" of each request itself")
		case strings.Contains(value, "$") || strings.HasPrefix(name, "HTTP_") || !paramName.MatchString(name) || slices.Contains(neverSet, name):
			say = append(say, func() {
				c.lost(d, "parameters have fixed values; scripts get the header fields of the request as HTTP_ parameters")
			})
		default:
			list = append(list, importer.NewObject().Set("name", name).Set("value", value).Flow())
			verdict(d, "")
		}
		seen[name] = true
	}
	if len(list) > 0 {
		slices.Reverse(list)
		settings.Set("params", list)
	}
	for _, name := range []string{"fastcgi_index", "fastcgi_split_path_info"} {
		if d := s.last(name); d != nil {
			verdict(d, "index and split_path of fastcgi decide this")
		}
	}
	return say, ok
}

// neverSet are parameters that headgate sets itself for each request.
var neverSet = []string{"PATH_TRANSLATED", "REQUEST_METHOD", "CONTENT_LENGTH", "PATH_INFO"}

// scriptFile reads the value of SCRIPT_FILENAME: the root, or the folder on the server. It
// reports false for another one.
func (c *content) scriptFile(d *directive, root string, settings importer.Object, verdict func(*directive, string)) bool {
	value, cut := strings.CutSuffix(d.arg(1), "$fastcgi_script_name")
	switch {
	case d.arg(1) == "$request_filename", cut && (value == "$document_root" || path.Clean(value) == root):
		verdict(d, "")
	case cut && value == "$realpath_root":
		verdict(d, "links in the path of the root are not resolved")
	case cut && strings.HasPrefix(value, "/") && !strings.Contains(value, "$"):
		settings.Set("server_root", path.Clean(value))
		verdict(d, "headgate looks for the scripts in root, "+root)
	default:
		return false
	}
	return true
}

// frontController returns the try_files of the route, whether paths without a file run
// index.php, and what of it is not done.
func (c *content) frontController() (d *directive, front bool, note string) {
	if d = c.scope.last("try_files"); d == nil {
		return nil, false, ""
	}
	last := len(d.args) - 1
	for i, arg := range d.args {
		file, query, _ := strings.Cut(arg, "?")
		switch {
		case i < last && (arg == "$uri" || arg == "$uri/"):
		case i == last && (file == "/index.php" || file == "index.php"):
			if front = true; query != "" && query != "$args" && query != "$query_string" && query != "$is_args$args" {
				note = join(note, "QUERY_STRING is the query of the client; scripts get the path from REQUEST_URI")
			}
		case i == last && (file == "/index.php$is_args$args" || arg == "/index.php$is_args$query_string"):
			front = true
		case i == last && arg == "=404":
		default:
			note = join(note, arg+" is not tried")
		}
	}
	return d, front, note
}
