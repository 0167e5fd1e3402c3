package npm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/npm/sqlite"
	"headgate/internal/setting/password"
)

// The schema of version 2, as far as it is read, with rows of every kind.
const database = `
CREATE TABLE proxy_host (id integer not null primary key autoincrement, created_on datetime, modified_on datetime, owner_user_id integer, is_deleted integer not null default '0',
  domain_names json not null, forward_host varchar(255), forward_port integer, access_list_id integer default '0', certificate_id integer default '0', ssl_forced integer default '0',
  caching_enabled integer default '0', block_exploits integer default '0', advanced_config text default '', meta json, allow_websocket_upgrade integer default '0', http2_support integer default '0',
  forward_scheme varchar(255) default 'http', enabled integer default '1', locations json, hsts_enabled integer default '0', hsts_subdomains integer default '0');
INSERT INTO proxy_host (domain_names, forward_host, forward_port, access_list_id, certificate_id, ssl_forced, caching_enabled, block_exploits, meta, allow_websocket_upgrade, http2_support, locations, hsts_enabled) VALUES
  ('["wiki.example.com","www.wiki.example.com"]', '192.168.1.20', 3000, 1, 1, 1, 1, 1, '{}', 1, 1, '[{"path":"/drawings/","forward_scheme":"http","forward_host":"192.168.1.21","forward_port":8080,"advanced_config":""},{"path":"/sub","forward_scheme":"https","forward_host":"10.0.0.5/base","forward_port":"8443"},{"path":"~ \\.php$","forward_scheme":"http","forward_host":"x","forward_port":1}]', 1);
INSERT INTO proxy_host (domain_names, forward_host, forward_port, forward_scheme, advanced_config, enabled, is_deleted) VALUES
  ('["nas.example.com"]', 'nas', 5001, 'https', 'proxy_read_timeout 600s;', 0, 0), ('["gone.example.com"]', 'x', 1, 'http', '', 1, 1), ('["bad.example.com"]', '$odd', 0, 'http', '', 1, 0);
ALTER TABLE proxy_host ADD COLUMN odd_field varchar(9) default '';
UPDATE proxy_host SET odd_field = 'says' WHERE id = 1;
CREATE TABLE redirection_host (id integer primary key, is_deleted integer default 0, domain_names json, forward_domain_name text, preserve_path integer, forward_scheme text, forward_http_code integer, certificate_id integer, enabled integer default 1, meta json);
INSERT INTO redirection_host VALUES (1, 0, '["old.example.com"]', 'new.example.com', 1, '$scheme', 308, 0, 1, '{}'), (2, 0, '["short.example.com"]', 'new.example.com', 0, 'https', 300, 0, 1, '{}');
CREATE TABLE dead_host (id integer primary key, is_deleted integer default 0, domain_names json, certificate_id integer, enabled integer default 1);
INSERT INTO dead_host VALUES (1, 0, '["dead.example.com"]', 0, 1);
CREATE TABLE stream (id integer primary key, is_deleted integer default 0, incoming_port integer, forwarding_host text, forwarding_port integer, tcp_forwarding integer, udp_forwarding integer, enabled integer default 1);
INSERT INTO stream VALUES (1, 0, 2222, '192.168.1.20', 22, 1, 0, 1), (2, 0, 53, '192.168.1.2', 53, 1, 1, 1);
CREATE TABLE access_list (id integer primary key, is_deleted integer default 0, name text, satisfy_any integer default 0, pass_auth integer default 0, meta json);
INSERT INTO access_list VALUES (1, 0, 'Family & Friends', 1, 0, '{}'), (2, 0, 'Nobody', 0, 1, '{}');
CREATE TABLE access_list_auth (id integer primary key, access_list_id integer, username text, password text, meta json);
INSERT INTO access_list_auth VALUES (1, 1, 'ada', 'correct horse', '{}');
CREATE TABLE access_list_client (id integer primary key, access_list_id integer, address text, directive text, meta json);
INSERT INTO access_list_client VALUES (1, 1, '192.168.0.0/16', 'allow', '{}'), (2, 1, '203.0.113.7', 'allow', '{}'), (3, 2, '10.0.0.1', 'deny', '{}'), (4, 1, 'my.host', 'allow', '{}');
CREATE TABLE certificate (id integer primary key, is_deleted integer default 0, provider text, nice_name text, domain_names json, expires_on text, meta json);
INSERT INTO certificate VALUES (1, 0, 'letsencrypt', 'wiki', '["wiki.example.com"]', '2027-01-01', '{"letsencrypt_email":"ada@example.com","letsencrypt_agree":true,"dns_challenge":false}'), (2, 0, 'other', 'nas', '["nas.example.com"]', '2027-01-01', '{}');
CREATE TABLE setting (id text primary key, name text, description text, value text, meta json);
INSERT INTO setting VALUES ('default-site', 'Default Site', '', 'redirect', '{"redirect":"https://example.com/"}');
`

func makeDatabase(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("not run: sqlite3 is not installed")
	}
	folder := filepath.Join(t.TempDir(), "data")
	custom := filepath.Join(folder, "custom_ssl", "npm-2")
	if err := os.MkdirAll(custom, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fullchain.pem", "privkey.pem"} {
		if err := os.WriteFile(filepath.Join(custom, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(folder, "database.sqlite")
	if out, err := exec.Command(program, name, database).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

func TestImport(t *testing.T) {
	name := makeDatabase(t)
	data, report, err := Import(name, importer.Files{})
	if err != nil {
		t.Fatal(err)
	}
	got := plain(data)
	for _, want := range []string{
		"virtual_hosts: [wiki.example.com, www.wiki.example.com]", "    redirect_http_to_https: true", "acme: letsencrypt", "email: ada@example.com", "use: [family-friends]",
		"{direction: request, name: X-Real-IP, value: {client_ip}}", "max-age=63072000; preload", "- path: /drawings\n        strip_prefix: false", "https://10.0.0.5:8443/base",
		"active: false", "request_timeout: 600s", "url: https://nas:5001/, tls: {insecure_skip_verify: true}", "target: {scheme}://new.example.com{path}", "status: 308", "tcp-2222:", "tcp-53:", "udp-53:", "address: 192.168.1.20:22",
		"allow: [192.168.0.0/16, 203.0.113.7]", "deny: [0.0.0.0/0, ::/0]", "name: ada", "custom_ssl/npm-2/fullchain.pem", "default-site:", "target: https://example.com/?\n        status: 301", "websecure: {address: 0.0.0.0:443, protocol: https}",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if _, _, problems := config.Load("headgate.yaml", data); len(problems) > 0 {
		t.Errorf("the document is not valid: %v", problems)
	}
	for _, no := range []string{"correct horse", "gone.example.com"} {
		if strings.Contains(got, no) || strings.Contains(fmt.Sprint(report), no) {
			t.Errorf("%q is told", no)
		}
	}
	_, rest, _ := strings.Cut(got, "password_hash: ")
	hash, err := password.Parse(strings.SplitN(rest, "\n", 2)[0])
	if err != nil || hash == nil {
		t.Errorf("the hash cannot be read: %v", err)
	}
	for _, want := range []string{"requires both, which is stricter", "advanced: 1 of its 1 lines of nginx are not the same", `"~ \\.php$" was left out`, "$odd", "my.host"} {
		if !strings.Contains(strings.Join(report.Check, "\n"), want) {
			t.Errorf("nothing to look at about %q: %q", want, report.Check)
		}
	}
	everyFieldHasAVerdict(t, name, report)
}

// plain is a document without quotes.
func plain(data []byte) string { return strings.NewReplacer("'", "", `"`, "").Replace(string(data)) }

// Nothing is silent: each column of each row that says something is in the report, or is
// known to say nothing.
func everyFieldHasAVerdict(t *testing.T, name string, report *importer.Report) {
	t.Helper()
	if !strings.Contains(fmt.Sprint(report.Entries), "odd_field = says") {
		t.Error("an unknown field is not told")
	}
	s, err := readDatabase(name, importer.Files{}.Bounded(sqlite.MaxSize, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := translate(s); err != nil {
		t.Fatal(err)
	}
	for table, records := range s.tables {
		for _, r := range records {
			for field, value := range r.fields {
				if !r.seen[field] && value != nil && fmt.Sprint(value) != "0" && fmt.Sprint(value) != "" {
					t.Errorf("%s %d: nobody looked at %s = %v", table, r.id, field, value)
				}
			}
		}
	}
}

// The API gives the same, without passwords.
func TestFromAPI(t *testing.T) {
	name := makeDatabase(t)
	s, err := readDatabase(name, importer.Files{}.Bounded(sqlite.MaxSize, ""))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if rq.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		for _, q := range asked {
			if q.path != rq.URL.RequestURI() {
				continue
			}
			rows := []map[string]any{}
			for _, r := range s.tables[q.table] {
				rows = append(rows, asAPI(s, r))
			}
			_ = json.NewEncoder(w).Encode(rows)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	got, report, err := FromAPI(t.Context(), http.DefaultClient, server.URL, "secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"wiki.example.com", "use: [family-friends]", "tcp-2222:", "password_hash: \n", "allow: [192.168.0.0/16"} {
		if !strings.Contains(plain(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if !strings.Contains(fmt.Sprint(report.Check), "needs a password") {
		t.Errorf("%q", report.Check)
	}
	if _, _, err := FromAPI(t.Context(), http.DefaultClient, server.URL, "other"); err == nil || !strings.Contains(err.Error(), "the token is missing, wrong") {
		t.Error(err)
	}
	for _, address := range []string{"", "ftp://x", "127.0.0.1:81", "http://ada:secret@127.0.0.1"} {
		if _, _, err := FromAPI(t.Context(), http.DefaultClient, address, "secret"); err == nil {
			t.Errorf("%q was asked", address)
		}
	}
}

// asAPI returns a record as the API tells it: JSON and flags are values, and access
// lists have their entries.
func asAPI(s *source, r *record) map[string]any {
	out := map[string]any{}
	for name, value := range r.fields {
		if text, ok := value.(string); ok && (strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{")) {
			value = json.RawMessage(text)
		}
		if name == "enabled" || name == "preserve_path" {
			value = value == int64(1)
		}
		out[name] = value
	}
	if r.table == "access_list" {
		items, clients := []any{}, []any{}
		for _, e := range s.tables["access_list_auth"] {
			if e.number("access_list_id") == r.id {
				items = append(items, map[string]any{"id": e.id, "username": e.fields["username"], "password": "", "hint": "c****"})
			}
		}
		for _, e := range s.tables["access_list_client"] {
			if e.number("access_list_id") == r.id {
				clients = append(clients, map[string]any{"id": e.id, "address": e.fields["address"], "directive": e.fields["directive"]})
			}
		}
		out["items"], out["clients"] = items, clients
	}
	return out
}

func TestFilesThatAreNotItsDatabase(t *testing.T) {
	dir := t.TempDir()
	text, other := filepath.Join(dir, "text"), filepath.Join(dir, "other.sqlite")
	if err := os.WriteFile(text, []byte("server {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skip("not run: sqlite3 is not installed")
	}
	if out, err := exec.Command("sqlite3", other, "CREATE TABLE t (a)").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	name := makeDatabase(t)
	if err := os.WriteFile(name+"-journal", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{text: "not a database", other: "no table proxy_host", name: "try again, or stop", filepath.Join(dir, "none"): "no such file"} {
		if _, _, err := Import(file, importer.Files{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// A database that is written while it is read is read again.
func TestDatabaseThatIsWritten(t *testing.T) {
	const name = "database.sqlite"
	header := func(first byte) []byte { return append(bytes.Repeat([]byte{first}, walHeader), first) }
	for what, c := range map[string]struct {
		data, wal [][]byte // by the number of the reading, the last for all after it
		want      string
	}{
		"at rest":             {[][]byte{{1}}, [][]byte{nil}, "1/"},
		"written without log": {[][]byte{{1}, {2}}, [][]byte{nil}, "2/"},
		"a log that grows":    {[][]byte{{1}, {2}}, [][]byte{header(7), append(header(7), 8)}, "1/8"},
		"a log begins anew":   {[][]byte{{1}, {2}}, [][]byte{header(7), header(8), header(8)}, "2/8"},
		"a log goes away":     {[][]byte{{1}, {2}}, [][]byte{header(7), nil}, "2/"},
	} {
		reads := map[string]int{}
		next := func(name string, all [][]byte) []byte {
			i := min(reads[name], len(all)-1)
			reads[name]++
			return all[i]
		}
		files := importer.Files{Read: func(file string) ([]byte, error) {
			switch file {
			case name:
				return next(file, c.data), nil
			case name + "-wal":
				if wal := next(file, c.wal); wal != nil {
					return wal, nil
				}
			}
			return nil, fs.ErrNotExist
		}}
		data, wal, err := snapshot(name, files)
		last := ""
		if len(wal) > 0 {
			last = fmt.Sprint(wal[len(wal)-1])
		}
		if got := fmt.Sprintf("%d/%s", data[0], last); err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", what, got, err, c.want)
		}
	}
	// One that uses a journal is read when the change has ended.
	reads := 0
	files := importer.Files{Read: func(file string) ([]byte, error) {
		switch {
		case file == name:
			return []byte{1}, nil
		case strings.HasSuffix(file, "-journal"):
			if reads++; reads < 3 {
				return []byte("x"), nil
			}
		}
		return nil, fs.ErrNotExist
	}}
	if data, _, err := snapshot(name, files); err != nil || data[0] != 1 || reads < 3 {
		t.Errorf("with a journal: %v, %v after %d looks", data, err, reads)
	}
	n := byte(0)
	restless := importer.Files{Read: func(file string) ([]byte, error) {
		if n++; file == name {
			return []byte{n}, nil
		}
		return nil, fs.ErrNotExist
	}}
	if _, _, err := snapshot(name, restless); err == nil || !strings.Contains(err.Error(), "written all the time") {
		t.Errorf("got %v", err)
	}
}
