// Package npm reads what Nginx Proxy Manager keeps and writes what headgate makes of
// it: a document, and a report in which every setting has a verdict.
//
// Import reads its database, /data/database.sqlite, without SQLite and without taking
// a lock, so that Nginx Proxy Manager may go on running. FromAPI reads the same over its
// API, for those who keep it in MySQL or PostgreSQL. Columns are looked up by their
// names, since forks and versions differ.
//
// hosts.go has the hosts, advanced.go the lines of nginx that people have added to them,
// access.go access lists and certificates.
package npm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/npm/sqlite"
)

// record is a row of a table, or an object of the API.
type record struct {
	table  string
	id     int64
	fields map[string]any
	seen   map[string]bool // fields that have a verdict, or need none
}

// source is all that is read.
type source struct {
	name   string // the file or the address
	folder string // of the database; empty for the API
	files  importer.Files
	tables map[string][]*record
}

// tables are those that an importer reads.
var tables = []string{"proxy_host", "redirection_host", "dead_host", "stream", "access_list", "access_list_auth", "access_list_client", "certificate", "setting"}

// Import reads the database of Nginx Proxy Manager. An error says what cannot be read;
// nothing is written then.
func Import(name string, files importer.Files) ([]byte, *importer.Report, error) {
	s, err := readDatabase(name, files.Bounded(sqlite.MaxSize, "more than a database of Nginx Proxy Manager has"))
	if err != nil {
		return nil, nil, err
	}
	return translate(s)
}

func readDatabase(name string, files importer.Files) (*source, error) {
	data, wal, err := snapshot(name, files)
	if err != nil {
		return nil, err
	}
	if !sqlite.Is(data) {
		return nil, fmt.Errorf("%s: not a database of SQLite; name the file database.sqlite of Nginx Proxy Manager's data folder", name)
	}
	db, err := sqlite.Open(data, wal)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !slices.Contains(db.Tables(), "proxy_host") {
		return nil, fmt.Errorf("%s: there is no table proxy_host in it, so it is not the database of Nginx Proxy Manager", name)
	}
	s := &source{name: name, folder: filepath.Dir(name), files: files, tables: map[string][]*record{}}
	for _, table := range tables {
		rows, err := db.Rows(table)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, row := range rows {
			s.add(table, row)
		}
	}
	return s, nil
}

const (
	// maxReads is how often a database is read that is written at the moment, and pause
	// how long a change that is under way has to end before the next time.
	maxReads = 20
	pause    = 100 * time.Millisecond
	// walHeader is the part of a write-ahead log that changes when the log is started
	// again.
	walHeader = 32
)

// snapshot reads the database and its write-ahead log in one consistent state. It
// acquires no lock, so both may be written meanwhile: what was read is valid if the log
// was not restarted between, as it then contains every page that the database got since,
// or if there is none and the database did not change.
func snapshot(name string, files importer.Files) (data, wal []byte, err error) {
	var under error
	for range maxReads {
		before, err := readLog(name, files)
		if err != nil {
			return nil, nil, err
		}
		if data, err = files.Read(name); err != nil {
			return nil, nil, err
		}
		if journal, err := files.Read(name + "-journal"); err == nil && len(journal) > 0 {
			under = fmt.Errorf("%s: a change of it is under way or was broken off (%s-journal is there); try again, or stop Nginx Proxy Manager first", name, filepath.Base(name))
			<-time.After(pause)
			continue
		}
		under = nil
		if wal, err = readLog(name, files); err != nil {
			return nil, nil, err
		}
		if len(wal) >= walHeader {
			if bytes.HasPrefix(before, wal[:walHeader]) {
				return data, wal, nil
			}
			continue
		}
		again, err := files.Read(name)
		if err != nil {
			return nil, nil, err
		}
		if len(before) < walHeader && bytes.Equal(data, again) {
			return data, wal, nil
		}
	}
	if under != nil {
		return nil, nil, under
	}
	return nil, nil, fmt.Errorf("%s: it is written all the time; try again, or stop Nginx Proxy Manager first", name)
}

// readLog reads the write-ahead log; without one it is empty.
func readLog(name string, files importer.Files) ([]byte, error) {
	wal, err := files.Read(name + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return wal, err
}

// add adds a record, unless it was deleted: Nginx Proxy Manager keeps those.
func (s *source) add(table string, fields map[string]any) {
	r := &record{table: table, fields: fields, seen: map[string]bool{}}
	if r.flag("is_deleted") {
		return
	}
	r.id = r.number("id")
	r.ignore("id", "created_on", "modified_on", "owner_user_id", "is_deleted", "owner", "meta")
	s.tables[table] = append(s.tables[table], r)
}

// ignore says that fields need no verdict.
func (r *record) ignore(names ...string) {
	for _, name := range names {
		r.seen[name] = true
	}
}

// text, number, flag and list return a field, and count it as looked at.
func (r *record) text(name string) string {
	r.seen[name] = true
	switch v := r.fields[name].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

func (r *record) number(name string) int64 {
	r.seen[name] = true
	switch v := r.fields[name].(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case bool:
		if v {
			return 1
		}
	case string:
		var n int64
		if _, err := fmt.Sscan(v, &n); err == nil {
			return n
		}
	}
	return 0
}

func (r *record) flag(name string) bool { return r.number(name) != 0 }

// into reads a field that holds JSON, as a text or as it is.
func (r *record) into(name string, to any) error {
	r.seen[name] = true
	var data []byte
	switch v := r.fields[name].(type) {
	case nil:
		return nil
	case string:
		data = []byte(v)
	case []byte:
		data = v
	default:
		var err error
		if data, err = json.Marshal(v); err != nil {
			return err
		}
	}
	if len(data) == 0 {
		return nil
	}
	return json.Unmarshal(data, to)
}

func (r *record) domains() []string {
	var names []string
	if r.into("domain_names", &names) != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(s string) bool { return s == "" })
}

// translator goes through the records.
type translator struct {
	*source
	*importer.Translation

	policies map[int64]string // by id of the access list
	wantTLS  bool
	email    string
}

func translate(s *source) ([]byte, *importer.Report, error) {
	t := &translator{source: s, Translation: importer.NewTranslation("Nginx Proxy Manager"), policies: map[int64]string{}}
	t.Ports.Set("web", importer.NewObject().Set("address", "0.0.0.0:80").Set("protocol", "http").Flow())
	if err := t.accessLists(); err != nil {
		return nil, nil, err
	}
	t.certificates()
	for _, r := range s.tables["proxy_host"] {
		t.proxyHost(r)
	}
	for _, r := range s.tables["redirection_host"] {
		t.redirectionHost(r)
	}
	for _, r := range s.tables["dead_host"] {
		t.deadHost(r)
	}
	for _, r := range s.tables["stream"] {
		t.stream(r)
	}
	for _, r := range s.tables["setting"] {
		t.whole(r)
	}
	t.rest()
	return t.finish()
}

// setting is a field of a record in the report.
type setting struct {
	importer.Origin
	text string
}

// Text is the record, the name of the field and its value.
func (s *setting) Text() string { return s.text }

// setting is a field of a record as a part of the source. A field may be several, one for
// each of its effects.
func (t *translator) setting(r *record, name string) *setting {
	r.seen[name] = true
	return &setting{importer.Origin{File: t.name, Line: int(r.id)}, r.title() + ": " + name + " = " + r.shown(name)}
}

// omit gives a setting of a record a verdict for which nothing is in the document.
func (t *translator) omit(r *record, name string, o importer.Omission, note string, args ...any) {
	t.AddVerdict(t.setting(r, name), o, note, args...)
}

// became gives a setting of a record its verdict with what it became.
func (t *translator) became(r *record, name string, v importer.Verdict, f importer.Field, note string, args ...any) {
	t.Became(t.setting(r, name), v, f, note, args...)
}

// title names a record for people.
func (r *record) title() string {
	text := strings.ReplaceAll(r.table, "_", " ") + " " + fmt.Sprint(r.id)
	for _, name := range []string{"name", "nice_name", "incoming_port"} {
		if v := r.fields[name]; v != nil && v != "" {
			return text + " (" + fmt.Sprint(v) + ")"
		}
	}
	if names := r.domains(); len(names) > 0 {
		return text + " (" + names[0] + ")"
	}
	return text
}

// secrets are never shown.
var secrets = []string{"password", "meta", "certificate_key"}

func (r *record) shown(name string) string {
	if slices.Contains(secrets, name) {
		return "…"
	}
	switch v := r.fields[name].(type) {
	case nil:
		return "null"
	case string:
		return strings.Join(strings.Fields(v), " ")
	case int64, float64, bool:
		return fmt.Sprint(v)
	}
	data, err := json.Marshal(r.fields[name])
	if err != nil {
		return "…"
	}
	return string(data)
}

// rest adds a verdict to every nonempty field without one.
func (t *translator) rest() {
	for _, table := range tables {
		for _, r := range t.tables[table] {
			for _, name := range slices.Sorted(maps.Keys(r.fields)) {
				if r.seen[name] {
					continue
				}
				switch v := r.fields[name].(type) {
				case nil:
				case string:
					if v != "" && v != "0" && v != "[]" && v != "{}" && v != "null" {
						t.omit(r, name, importer.Impossible, "headgate does not know this field")
					}
				case map[string]any: // an object that the API expands
				default:
					if text := fmt.Sprint(v); text != "0" && text != "false" && text != "[]" {
						t.omit(r, name, importer.Impossible, "headgate does not know this field")
					}
				}
			}
		}
	}
}

// recordOf is the record that an entry is about.
func recordOf(e importer.Entry) string {
	title, _, _ := strings.Cut(e.Directive, ": ")
	return title
}

func (t *translator) finish() ([]byte, *importer.Report, error) {
	if t.wantTLS {
		t.Ports.Set("websecure", importer.NewObject().Set("address", "0.0.0.0:443").Set("protocol", "https").Flow())
	}
	data, report, err := t.Finish("the database of Nginx Proxy Manager", "setting", []string{t.name})
	slices.SortStableFunc(report.Entries, func(a, b importer.Entry) int { return cmp.Compare(recordOf(a), recordOf(b)) })
	return data, report, err
}
