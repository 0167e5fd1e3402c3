package files

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/upstream/fcgi"
)

// Scripts is the source of a route that runs the scripts of a folder on FastCGI servers. It
// decides which file a path means: a script, for which the servers are called, or a file that
// is sent. It is immutable.
type Scripts struct {
	files      *source
	servers    exchange.Source
	settings   *FastCGI
	buffers    *buffers
	serverRoot string
	prefix     string // of the route, "" if it is not stripped
	front      string // the script for paths without a file, "" for none
	params     []fcgi.Param
}

// CompileScripts returns the source of a route whose servers speak FastCGI. Relative paths
// begin in dir. Settings that were checked give no error.
func CompileScripts(c *FastCGI, dir string, route exchange.Route, servers exchange.Source, env exchange.Env) (*Scripts, error) {
	plain, err := Compile(&Config{Root: c.Root, Index: c.index()}, dir, exchange.Route{}, env)
	if err != nil {
		return nil, err
	}
	s := &Scripts{files: plain.(*source), servers: servers, settings: c, buffers: sharedBuffers(env)}
	if s.serverRoot = strings.TrimSuffix(c.ServerRoot, "/"); c.ServerRoot == "" {
		if s.serverRoot, err = filepath.Abs(s.files.folder.path); err != nil {
			return nil, err
		}
	}
	if route.Strip {
		s.prefix = route.Prefix
	}
	if c.FrontController {
		for _, name := range c.index() {
			if c.isScript(name) {
				s.front = name
				break
			}
		}
	}
	for _, p := range c.Params {
		s.params = append(s.params, fcgi.Param{Name: p.Name, Value: p.Value})
	}
	return s, nil
}

// Describe returns "fastcgi", the folder, and the servers.
func (s *Scripts) Describe() string {
	return "fastcgi(" + s.files.folder.path + ") → " + s.servers.Describe()
}

// Respond runs the script that the path of ex means, or sends the file.
func (s *Scripts) Respond(ex *exchange.Exchange) *exchange.Answer {
	scripted, answer := s.Find(ex)
	if answer != nil || !scripted {
		return answer
	}
	return s.buffers.respond(ex, s.servers, int64(s.settings.RequestBuffer))
}

// Find decides what a request means. It returns true if that is a script, which is then on
// the exchange for the servers; otherwise it has made the response, or returns the answer.
func (s *Scripts) Find(ex *exchange.Exchange) (scripted bool, answer *exchange.Answer) {
	rest := ex.Request.Target
	if rest == "" {
		rest = "/"
	}
	if name, info, err := s.split(&ex.Text, rest); err == nil {
		return true, s.run(ex, name, info)
	} else if !isMissing(err) {
		return false, answerTo(err, name)
	}
	name, slash, ok := nameOf(&ex.Text, rest)
	if ok {
		scripted, answer, found := s.file(ex, name, slash)
		if found {
			return scripted, answer
		}
	}
	if s.front == "" {
		return false, exchange.Fail(exchange.NotFound, "fastcgi: there is no file or script for the path")
	}
	switch regular, err := s.regular(s.front); {
	case err != nil:
		return false, answerTo(err, s.front)
	case !regular:
		return false, exchange.Fail(exchange.NotFound, "fastcgi: "+s.front+" is not a regular file")
	}
	return true, s.run(ex, s.front, "")
}

// split finds the first script that exists on the way of a path, and returns its name and
// the decoded rest. The error is missing if there is none. Only a whole segment is a script:
// what a segment such as x.jpg contains is not run because /a.php follows it.
func (s *Scripts) split(text *exchange.Text, rest string) (name, info string, err error) {
	for i := 1; i <= len(rest); i++ {
		if i < len(rest) && rest[i] != '/' || !s.settings.isScript(rest[strings.LastIndexByte(rest[:i], '/')+1:i]) {
			continue
		}
		name, _, ok := nameOf(text, rest[:i])
		if !ok {
			break
		}
		switch regular, err := s.regular(name); {
		case err != nil && !isMissing(err):
			return name, "", err
		case err != nil || !regular:
			continue
		}
		info, ok := pathInfo(text, rest[i:])
		if !ok {
			break
		}
		return name, info, nil
	}
	return "", "", errNotRegular
}

// regular reports whether a name below the root is a regular file.
func (s *Scripts) regular(name string) (bool, error) {
	info, err := s.files.folder.lookup(".", name)
	return err == nil && info.Mode().IsRegular(), err
}

// pathInfo decodes what follows the script in a path. A dot segment or a NUL that was encoded
// would be another path for the script than for headgate.
func pathInfo(text *exchange.Text, rest string) (string, bool) {
	b := text.Buffer()
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		if c == '%' && i+2 < len(rest) {
			c, i = unhex(rest[i+1])<<4|unhex(rest[i+2]), i+2
		}
		b = append(b, c)
	}
	for segment := range bytes.SplitSeq(b, []byte{'/'}) {
		if string(segment) == "." || string(segment) == ".." {
			return "", false
		}
	}
	return text.End(b), bytes.IndexByte(b, 0) < 0
}

// run puts a script on the exchange.
func (s *Scripts) run(ex *exchange.Exchange, name, info string) *exchange.Answer {
	file := s.serverRoot + "/" + name
	ex.Note("script " + file)
	fcgi.Scripts.Put(ex, fcgi.Script{
		Filename: file, Root: s.serverRoot, Name: ex.Text.Join(s.prefix, "/", name), PathInfo: info, Params: s.params,
	})
	return nil
}

// file serves the file or folder of a name. It reports false for found if there is none.
func (s *Scripts) file(ex *exchange.Exchange, name string, slash bool) (scripted bool, answer *exchange.Answer, found bool) {
	if slash {
		return s.folderIndex(ex, name)
	}
	f, err := s.static(name)
	switch {
	case err == nil:
		return false, s.send(ex, f), true
	case errors.Is(err, errFolder):
		if s.hasIndex(&ex.Text, name) {
			return false, s.files.toFolder(ex), true
		}
		return false, nil, false
	case isMissing(err):
		return false, nil, false
	}
	return false, answerTo(err, name), true
}

// folderIndex serves or runs the index file of a folder.
func (s *Scripts) folderIndex(ex *exchange.Exchange, name string) (scripted bool, answer *exchange.Answer, found bool) {
	for _, index := range s.files.index {
		full := below(&ex.Text, name, index)
		if s.settings.isScript(index) {
			regular, err := s.regular(full)
			switch {
			case regular:
				return true, s.run(ex, full, ""), true
			case err != nil && !isMissing(err):
				return false, answerTo(err, full), true
			}
			continue
		}
		f, err := s.static(full)
		switch {
		case err == nil:
			return false, s.send(ex, f), true
		case !isMissing(err) && !errors.Is(err, errFolder):
			return false, answerTo(err, full), true
		}
	}
	return false, nil, false
}

// hasIndex reports whether a folder has an index file.
func (s *Scripts) hasIndex(text *exchange.Text, name string) bool {
	for _, index := range s.files.index {
		if regular, _ := s.regular(below(text, name, index)); regular && (s.settings.isScript(index) || s.settings.Static) {
			return true
		}
	}
	return false
}

func below(text *exchange.Text, dir, name string) string {
	if dir == "." {
		return name
	}
	return text.Join(dir, "/", name)
}

// static opens a file that may be sent: one of another name than a script's.
func (s *Scripts) static(name string) (*found, error) {
	f, err := s.files.openRegular(name)
	if err == nil && (!s.settings.Static || s.isSource(name)) {
		f.Close()
		return nil, errNotRegular
	}
	return f, err
}

// isSource reports whether a file may be source text of a script, such as wp-config.php~,
// whatever the case of its name.
func (s *Scripts) isSource(name string) bool {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	for _, part := range append(s.settings.scripts(), ".ph", ".inc") {
		if at := strings.Index(name, strings.ToLower(part)); at >= 0 && (part != ".ph" || phpExtension(name[at+1:])) {
			return true
		}
	}
	return false
}

// phpExtension reports whether a name goes on like an extension that PHP is configured for
// somewhere: php, php3 to php8, phtml, phar, pht and phps.
func phpExtension(rest string) bool {
	for _, start := range []string{"php", "pht", "phar"} {
		if strings.HasPrefix(rest, start) {
			return true
		}
	}
	return false
}

// send answers with a file.
func (s *Scripts) send(ex *exchange.Exchange, f *found) *exchange.Answer {
	if m := ex.Request.Method; m != "GET" && m != "HEAD" {
		f.Close()
		return notAllowed
	}
	ex.Note("file " + filepath.Join(s.files.folder.path, filepath.FromSlash(f.name)))
	return s.files.serve(ex, f)
}
