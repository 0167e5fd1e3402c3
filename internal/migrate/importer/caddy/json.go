package caddy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// FromAPI reads the configuration of a Caddy that runs, from its admin address, such as
// http://127.0.0.1:2019.
func FromAPI(ctx context.Context, client *http.Client, address, token string) ([]byte, *importer.Report, error) {
	base, err := importer.Base(address, "Caddy", "http://127.0.0.1:2019")
	if err != nil {
		return nil, nil, err
	}
	name := base + "/config/"
	data, err := importer.Fetch(ctx, client, name, token)
	if err != nil {
		return nil, nil, err
	}
	t := newTranslator(&reader{files: []string{name}})
	if err := t.adapted(name, data); err != nil {
		return nil, nil, err
	}
	return t.finish()
}

// value is a place in Caddy's JSON: an object, a list, or a single value.
type value struct {
	importer.Origin
	path string // apps.http.servers.srv0.listen.0

	text   string
	object bool
	isList bool
	keys   []string
	fields map[string]*value
	list   []*value

	// by is the directive of a Caddyfile that the value was made from; nil in JSON.
	by *directive
}

// directive returns the whole directive that a value was made from; nil in JSON.
func (v *value) directive() *directive {
	if v.by != nil && v.by.of != nil {
		return v.by.of
	}
	return v.by
}

// maxValues bounds what is read of one configuration.
const maxValues = 500_000

// looksLikeJSON reports whether a file is Caddy's JSON and no Caddyfile, whose global
// options also start with a brace.
func looksLikeJSON(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n\ufeff")
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	rest := bytes.TrimLeft(data[1:], " \t\r\n")
	return len(rest) > 0 && rest[0] == '"'
}

// jsonReader reads JSON with the lines of its parts.
type jsonReader struct {
	file  string
	data  []byte
	d     *json.Decoder
	at    int64 // how far lines are counted
	line  int
	count int
}

// parseJSON reads a configuration. The error has the line of what cannot be read.
func parseJSON(file string, data []byte) (*value, error) {
	p := &jsonReader{file: file, data: data, d: json.NewDecoder(bytes.NewReader(data)), line: 1}
	p.d.UseNumber()
	root, err := p.value("", 0)
	if err == nil {
		if _, err = p.d.Token(); err == io.EOF {
			return root, nil
		} else if err == nil {
			err = errors.New("something follows the configuration")
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errors.New("the file ends inside of the configuration")
	}
	p.here()
	return nil, fmt.Errorf("%s:%d: %w", file, p.line, err)
}

// here counts lines up to where the decoder is.
func (p *jsonReader) here() int {
	to := min(p.d.InputOffset(), int64(len(p.data)))
	p.line += bytes.Count(p.data[p.at:to], []byte("\n"))
	p.at = to
	return p.line
}

func (p *jsonReader) value(path string, depth int) (*value, error) {
	token, err := p.d.Token()
	if err != nil {
		return nil, err
	}
	if p.count++; p.count > maxValues || depth > maxDepth*2 {
		return nil, errors.New("nested too deep, or too much for one configuration")
	}
	v := &value{Origin: importer.Origin{File: p.file, Line: p.here()}, path: path}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return v, p.object(v, depth)
		}
		v.isList = true
		for i := 0; p.d.More(); i++ {
			one, err := p.value(joinPath(path, strconv.Itoa(i)), depth+1)
			if err != nil {
				return nil, err
			}
			v.list = append(v.list, one)
		}
		_, err := p.d.Token()
		return v, err
	case string:
		v.text = t
	case nil:
	default:
		v.text = fmt.Sprint(t)
	}
	return v, nil
}

func (p *jsonReader) object(v *value, depth int) error {
	v.object, v.fields = true, map[string]*value{}
	for p.d.More() {
		key, err := p.d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		line := p.here()
		one, err := p.value(joinPath(v.path, name), depth+1)
		if err != nil {
			return err
		}
		one.Line = line
		if v.fields[name] == nil {
			v.keys = append(v.keys, name)
		}
		v.fields[name] = one
	}
	_, err := p.d.Token()
	return err
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// get returns the value below names, an empty one if there is none. It is called in hundreds
// of places: inlined, it makes the binary 130 kB larger.
//
//go:noinline
func (v *value) get(names ...string) *value {
	for _, name := range names {
		next := v.fields[name]
		if next == nil {
			missing := &value{Origin: importer.Origin{File: v.File, Line: v.Line}, path: joinPath(v.path, name)}
			missing.Skip()
			return missing
		}
		v = next
	}
	return v
}

// is reports whether there is anything.
func (v *value) is() bool { return v.object || v.isList || v.text != "" }

// texts are the values of a list; a single value is a list of one.
func (v *value) texts() (out []string) {
	for _, c := range v.list {
		out = append(out, c.text)
	}
	if v.text != "" {
		out = append(out, v.text)
	}
	return out
}

// leaves calls each with every value below that holds no others.
func (v *value) leaves(each func(*value)) {
	if len(v.keys)+len(v.list) == 0 {
		each(v)
	}
	for _, k := range v.keys {
		v.fields[k].leaves(each)
	}
	for _, c := range v.list {
		c.leaves(each)
	}
}

// Text is the field with its value, without secrets.
func (v *value) Text() string {
	path := strings.ToLower(v.path)
	for _, secret := range []string{"password", "secret", "token", "api_key", "mac_key", "hash", "provider."} {
		if strings.Contains(path, secret) {
			return v.path + ": …"
		}
	}
	return v.path + ": " + v.text
}

// sayValue gives all values below one a verdict for which nothing is in the document,
// Ignored or Impossible.
func (t *translator) sayValue(v *value, verdict importer.Verdict, note string, args ...any) {
	t.verdict(v, verdict, importer.Field{}, sprintf(note, args))
}

// structure gives a verdict to what acts through other values. A directive has that of the
// others.
func (t *translator) structure(v *value, note string) {
	v.leaves(func(leaf *value) {
		if leaf.by == nil {
			t.AddVerdict(leaf, importer.Ignored, "%s", note)
		}
		leaf.Skip()
	})
}

// Became gives a part, or all values below one, the verdict Same or Close, and names what
// they became. The verdict of a value made from a directive is the directive's.
func (t *translator) Became(p importer.Part, verdict importer.Verdict, f importer.Field, note string, args ...any) bool {
	if v, ok := p.(*value); ok {
		t.verdict(v, verdict, f, sprintf(note, args))
		return true
	}
	return t.Translation.Became(p, verdict, f, note, args...)
}

func (t *translator) verdict(v *value, verdict importer.Verdict, f importer.Field, note string) {
	v.leaves(func(leaf *value) {
		first := !leaf.Settled()
		switch named := verdict == importer.Same || verdict == importer.Close; {
		case leaf.by == nil:
			t.Translation.Became(leaf, verdict, f, "%s", note)
		case first:
			leaf.Skip()
			t.worse(leaf.by, verdict, f, note)
		case named:
			t.Translation.Became(leaf.directive(), verdict, f, "%s", note)
		}
	})
}

// amend says of what a value became that it is close, and why.
func (t *translator) amend(v *value, note string) {
	v.leaves(func(leaf *value) {
		var p importer.Part = leaf
		if d := leaf.directive(); d != nil {
			p = d
		}
		if had := p.Place().Verdict(); had == importer.Same || had == importer.Close {
			t.Amend(p, importer.Close, note)
		}
	})
}

// duration returns a time of Caddy's JSON: nanoseconds, or a text.
func (v *value) duration() string {
	n, err := strconv.ParseInt(v.text, 10, 64)
	switch {
	case err != nil:
		return v.text
	case n%1_000_000_000 == 0:
		return strconv.FormatInt(n/1_000_000_000, 10) + "s"
	}
	return strconv.FormatInt(max(1, n/1_000_000), 10) + "ms"
}

func (v *value) number() int {
	n, _ := strconv.Atoi(v.text)
	return n
}

// adapted translates a configuration in JSON.
func (t *translator) adapted(name string, data []byte) error {
	root, err := parseJSON(name, data)
	if err != nil {
		return err
	}
	apps := root.get("apps")
	if len(apps.get("http", "servers").keys) == 0 {
		return fmt.Errorf("%s: nothing of Caddy's HTTP server is in it: there is no apps.http.servers", name)
	}
	if p := apps.get("http", "http_port"); p.is() {
		t.http = p.text
		t.Became(p, importer.Same, importer.ByItself(), "the port web")
	}
	if p := apps.get("http", "https_port"); p.is() {
		t.https = p.text
		t.Became(p, importer.Same, importer.ByItself(), "the port websecure")
	}
	t.tlsApp(apps.get("tls"))
	t.servers(apps.get("http", "servers"))
	for _, part := range []struct{ path, note string }{
		{"admin", "about Caddy itself"}, {"logging", "requests of all hosts are logged"}, {"storage", "certificates are kept in the state directory"},
		{"apps.pki", "headgate has no authority of its own"}, {"apps.http.grace_period", "drain_timeout of a port"}, {"apps.http.shutdown_delay", "about Caddy itself"}, {"apps.http.metrics", "metrics are at the admin address"},
	} {
		v := root.get(strings.Split(part.path, ".")...)
		if v.is() {
			t.sayValue(v, importer.Ignored, "%s", part.note)
		}
	}
	root.leaves(func(leaf *value) {
		t.AddVerdict(leaf, importer.Impossible, "headgate does not know this key here, or what it belongs to could not be translated")
	})
	return nil
}
