package geo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/file"
	"headgate/internal/server/download"
)

// The times of databases.
const (
	// filePause is how often a file is looked at.
	filePause = 10 * time.Second
	// old is from which age on a database whose licence says nothing of it is an issue:
	// a tenth of the addresses has moved by then.
	old = 180 * 24 * time.Hour
)

// State is the state of a database.
type State struct {
	// Name is country or asn.
	Name string `json:"name"`
	// Location is the file or URL, without credentials and query.
	Location string `json:"location"`
	// State is loading, ready, or error if it could not be loaded: then the last valid one
	// is used.
	State string `json:"state"`
	// Since is when the state changed last.
	Since time.Time `json:"since"`
	// Type is the type in the database.
	Type string `json:"type,omitempty"`
	// Built is when the database was made; absent if none was loaded.
	Built time.Time `json:"built,omitzero"`
	// Attribution is the attribution that the licence of the database requires.
	Attribution string `json:"attribution,omitempty"`
	// Next is when it will be downloaded next.
	Next time.Time `json:"next,omitzero"`
	// Issues are problems that need an operator.
	Issues []string `json:"issues,omitempty"`
}

// source is a database that is kept up to date.
type source struct {
	// constant
	name     string
	settings Source
	dir      string
	o        *Options
	changed  func()

	current atomic.Pointer[database]

	stamp file.Stamp // of the file that was read last; owned by load, then by follow

	mu struct {
		sync.Mutex
		state, failure string
		since, next    time.Time
		loaded         time.Time
	}
}

func newSource(name string, settings Source, dir string, o *Options, changed func()) *source {
	s := &source{name: name, settings: settings, dir: dir, o: o, changed: changed}
	s.mu.state, s.mu.since = "loading", o.Clock()
	return s
}

// database returns the database in use, nil if there is none. s may be nil.
func (s *source) database() *database {
	if s == nil {
		return nil
	}
	return s.current.Load()
}

// State returns the state of the database.
func (s *source) State() State {
	s.mu.Lock()
	out := State{Name: s.name, Location: s.settings.File, State: s.mu.state, Since: s.mu.since, Next: s.mu.next}
	failure := s.mu.failure
	s.mu.Unlock()
	if s.settings.URL != "" {
		out.Location = download.Shown(s.settings.URL)
	}
	if failure != "" {
		out.Issues = append(out.Issues, failure)
	}
	d := s.database()
	if d == nil {
		out.Issues = append(out.Issues, "no database was loaded yet: allow lets in no client by country or network, and deny refuses none")
		return out
	}
	l, age := d.licence(), s.o.Clock().Sub(d.built())
	out.Type, out.Built, out.Attribution = d.reader.Metadata.DatabaseType, d.built(), l.attribution
	switch {
	case l.age > 0 && age > l.age:
		out.Issues = append(out.Issues, fmt.Sprintf("the database is %d days old, and its licence allows %d", days(age), days(l.age)))
	case age > old:
		out.Issues = append(out.Issues, fmt.Sprintf("the database is %d days old", days(age)))
	}
	return out
}

func days(d time.Duration) int { return int(d / (24 * time.Hour)) }

// load reads the file, or the database that was kept.
func (s *source) load() {
	if s.settings.File != "" {
		s.readFile()
		return
	}
	name := s.kept()
	if name == "" {
		return
	}
	info, err := os.Stat(name)
	if err != nil {
		return // there is none
	}
	data, err := file.Read(name, maxBytes, "too large")
	if err == nil {
		err = s.install(data, info.ModTime())
	}
	if err != nil {
		s.o.Log.Warn("the saved geo database cannot be used", "database", s.name, "error", err)
	}
}

// path returns where the file is.
func (s *source) path() string {
	if filepath.IsAbs(s.settings.File) {
		return s.settings.File
	}
	return filepath.Join(s.dir, s.settings.File)
}

func (s *source) readFile() {
	s.stamp = file.StampOf(s.path()) // before, so that a change meanwhile is found
	data, err := file.Read(s.path(), maxBytes, fmt.Sprintf("more than %d MiB", maxBytes>>20))
	if err == nil {
		if err = s.install(data, s.o.Clock()); err != nil {
			err = fmt.Errorf("read %s: %w", s.settings.File, err)
		}
	}
	if err != nil {
		s.fail(err)
	}
}

// kept returns the name of the file where a downloaded database is kept, "" for none.
func (s *source) kept() string {
	if s.o.Dir == "" {
		return ""
	}
	of := sha256.Sum256([]byte(s.settings.URL))
	return filepath.Join(s.o.Dir, s.name+"-"+hex.EncodeToString(of[:6])+".mmdb")
}

// install makes a database the current one.
func (s *source) install(data []byte, loaded time.Time) error {
	d, err := openDatabase(data)
	if err != nil {
		return err
	}
	s.current.Store(d)
	s.changed()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.failure, s.mu.loaded = "", loaded
	if s.mu.state != "ready" {
		s.mu.state, s.mu.since = "ready", s.o.Clock()
	}
	s.o.Log.Info("geo database loaded", "database", s.name, "type", d.reader.Metadata.DatabaseType, "built", d.built().Format(time.DateOnly))
	return nil
}

// fail notes that the database could not be loaded. The one in use stays.
func (s *source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.failure != err.Error() {
		s.o.Log.Warn("geo database cannot be loaded", "database", s.name, "error", err)
	}
	s.mu.failure = err.Error()
	if s.mu.state != "error" {
		s.mu.state, s.mu.since = "error", s.o.Clock()
	}
}

// follow keeps the database up to date.
func (s *source) follow(ctx context.Context) {
	if s.settings.File != "" {
		for clock.Sleep(ctx, s.o.filePause) {
			if file.StampOf(s.path()) != s.stamp {
				s.readFile()
			}
		}
		return
	}
	client := download.New(s.o.Agent, s.o.Roots)
	defer client.Close()
	client.Follow(ctx, s.due(), download.Follower{
		URL: s.settings.URL, Max: maxBytes, Interval: s.settings.Interval.D(), Planned: s.plan, Take: s.downloaded,
	})
}

// downloaded takes a database that was downloaded into use and keeps it.
func (s *source) downloaded(data []byte, err error) error {
	if errors.Is(err, download.ErrUnchanged) {
		s.unchanged()
		return nil
	}
	if err == nil {
		err = s.install(data, s.o.Clock())
	}
	if err != nil {
		s.fail(fmt.Errorf("download: %w", err))
		return err
	}
	s.keep(data)
	return nil
}

// unchanged notes that the server still has the database that is in use, so that a restart
// does not download it again before it is due.
func (s *source) unchanged() {
	now := s.o.Clock()
	s.mu.Lock()
	s.mu.failure, s.mu.loaded = "", now
	if s.mu.state != "ready" {
		s.mu.state, s.mu.since = "ready", now
	}
	s.mu.Unlock()
	if name := s.kept(); name != "" {
		_ = os.Chtimes(name, now, now) // one that cannot be dated is downloaded again
	}
}

func (s *source) keep(data []byte) {
	name := s.kept()
	if name == "" {
		return
	}
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = file.Replace(name, data)
	}
	if err != nil {
		s.o.Log.Warn("geo database cannot be saved for the next start", "database", s.name, "error", err)
	}
}

// due returns when the database is downloaded first.
func (s *source) due() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return download.First(s.settings.Interval.D(), s.mu.loaded, s.o.Clock())
}

func (s *source) plan(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.next = s.o.Clock().Add(pause)
}
