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
}

// maxValues bounds what is read of one configuration.
const maxValues = 500_000

// looksLikeJSON reports whether a file is Caddy's JSON and no Caddyfile, whose global
// options begin with a brace, too.
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

// get returns the value below names, an empty one if there is none.
func (v *value) get(names ...string) *value {
	for _, name := range names {
		next := v.fields[name]
		if next == nil {
			missing := &value{Origin: importer.Origin{File: v.File, Line: v.Line}, path: joinPath(v.path, name)}
			missing.Settle()
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

// sayValue gives all values below one their verdict.
func (t *translator) sayValue(v *value, verdict importer.Verdict, note string, args ...any) {
	v.leaves(func(leaf *value) { t.Say(leaf, verdict, note, args...) })
}

// sayNote is sayValue with the verdict that a note stands for.
func (t *translator) sayNote(v *value, note string) {
	verdict := importer.Same
	if note != "" {
		verdict = importer.Close
	}
	t.sayValue(v, verdict, "%s", note)
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
		t.sayValue(p, importer.Same, "the port web")
	}
	if p := apps.get("http", "https_port"); p.is() {
		t.https = p.text
		t.sayValue(p, importer.Same, "the port websecure")
	}
	t.tlsApp(apps.get("tls"))
	servers := apps.get("http", "servers")
	for _, name := range servers.keys {
		t.jsonServer(name, servers.fields[name])
	}
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
		t.Say(leaf, importer.Impossible, "headgate does not know this key here, or what it belongs to could not be taken over")
	})
	return nil
}

// tlsApp takes certificates of files, and the authority.
func (t *translator) tlsApp(v *value) {
	for _, one := range v.get("certificates", "load_files").list {
		name := "caddy-" + strconv.Itoa(t.Certificates.Len()+1)
		t.Certificates.Set(name, importer.NewObject().Set("cert_file", one.get("certificate").text).Set("key_file", one.get("key").text))
		t.sayValue(one.get("certificate"), importer.Same, "certificates.%s", name)
		t.sayValue(one.get("key"), importer.Same, "certificates.%s", name)
		t.sayValue(one.get("tags"), importer.Ignored, "certificates are chosen by the names in them")
	}
	for _, p := range v.get("automation", "policies").list {
		t.sayValue(p.get("subjects"), importer.Close, "the hosts of the proxies that name the acme entry are ordered")
		for _, issuer := range p.get("issuers").list {
			t.issuer(issuer)
		}
	}
	t.sayValue(v.get("certificates", "automate"), importer.Same, "acme: main orders the hosts of the proxies")
}

// issuer takes an authority.
func (t *translator) issuer(v *value) {
	switch module := v.get("module").text; module {
	case "acme", "zerossl":
		if email := v.get("email"); email.is() {
			t.email = email.text
			t.sayValue(email, importer.Same, "acme.main.email")
		}
		if ca := v.get("ca"); ca.is() {
			t.ca = ca.text
			t.sayValue(ca, importer.Same, "acme.main.directory")
		}
		if dns := v.get("challenges", "dns"); dns.is() {
			t.sayValue(dns, importer.Close, "give acme.main.dns the provider and its credentials")
			t.Check("certificates came by DNS at %s: set acme.main.dns", dns.get("provider", "name").text)
		}
		t.wantACME = true
		t.sayValue(v.get("module"), importer.Same, "acme.main")
	case "internal":
		t.sayValue(v, importer.Close, "the self-signed certificate of headgate")
	default:
		t.sayValue(v, importer.Impossible, "certificates come by ACME or from files")
	}
}
