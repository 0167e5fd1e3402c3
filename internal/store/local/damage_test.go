package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
)

func commitOne(t *testing.T, s *Store, key, value string) {
	t.Helper()
	if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: key, Value: []byte(value)}}}); err != nil {
		t.Fatalf("Commit(%s) = %v", key, err)
	}
}

func valueOf(t *testing.T, s *Store, key string) string {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if errors.Is(err, store.ErrNotFound) {
		return "absent"
	}
	if err != nil {
		t.Errorf("Get(%s) = %v", key, err)
	}
	return string(e.Value)
}

// fill writes enough that state.db has many pages of each kind.
func fillUp(t *testing.T, s *Store) {
	t.Helper()
	for i := range 20 {
		var c store.Change
		for j := range 30 {
			c.Put = append(c.Put, store.Entry{Key: fmt.Sprintf("user/%03d", 30*i+j), Value: bytes.Repeat([]byte("v"), 40+j)})
			c.Append = append(c.Append, store.Record{Stream: "audit", Data: bytes.Repeat([]byte("r"), 100)})
		}
		c.Put = append(c.Put, store.Entry{Key: "certificate/a", Value: fmt.Appendf(nil, "certificate %d", i)})
		if _, err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	commitOne(t, s, "webhook/large", strings.Repeat("overflow ", 5000))
}

// Each page of state.db is damaged in turn, in several ways. Whatever becomes of it,
// the store opens, the files that traffic needs are there, writes work, and what is
// in the database is either right or back to the copy.
func TestADamagedDatabaseNeverStopsTheStart(t *testing.T) {
	master := t.TempDir()
	s := openDir(t, Options{Dir: master})
	fillUp(t, s)
	if err := s.copy(); err != nil {
		t.Fatal(err)
	}
	commitOne(t, s, "user/late", "after the copy")
	commitOne(t, s, "user/later", "so that both meta pages know the commit before")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(master, dbName))
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	ways := map[string]func(p []byte){
		"zeroes":  func(p []byte) { clear(p) },
		"garbage": func(p []byte) { copy(p, bytes.Repeat([]byte("\xa5\x5a\xff"), len(p)/3)) },
		"a bit":   func(p []byte) { p[len(p)/3] ^= 0x10 },
		"head":    func(p []byte) { copy(p[8:], "\xff\xff\xff\xff\xff\xff\xff\xff") },
	}
	restored := 0
	for way, damage := range ways {
		for i := 0; i*page < len(whole); i += 1 + len(whole)/page/10 {
			hurt := bytes.Clone(whole)
			damage(hurt[i*page : (i+1)*page])
			restored += openDamaged(t, fmt.Sprintf("%s in page %d", way, i), master, hurt)
		}
	}
	// A commit that power was lost in leaves one meta page torn: the other one counts, and no
	// copy, which is older.
	for i := range 2 {
		torn := bytes.Clone(whole)
		clear(torn[i*page+pageHeader : i*page+pageHeader+metaBytes])
		if openDamaged(t, fmt.Sprintf("meta page %d torn", i), master, torn) != 0 {
			t.Errorf("meta page %d is torn, and the copy was used", i)
		}
	}
	restored += openDamaged(t, "cut off", master, whole[:len(whole)/2])
	restored += openDamaged(t, "meta only", master, whole[:2*page])
	restored += openDamaged(t, "no database", master, []byte("nothing of the kind"))
	if restored < 4 {
		t.Errorf("the copy was used %d times: the damage was none", restored)
	}
	t.Logf("the copy was used %d times", restored)
}

// openDamaged opens a state with a damaged database and returns 1 if the copy was put
// in its place.
func openDamaged(t *testing.T, what, master string, db []byte) (restored int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(master)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, dbName), db, 0o600); err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o700)
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Errorf("%s: Open = %v", what, err)
		return 0
	}
	defer s.Close()
	if got := valueOf(t, s, "certificate/a"); got != "certificate 19" {
		t.Errorf("%s: the certificate is %q", what, got)
	}
	for i := range 600 {
		if got := valueOf(t, s, fmt.Sprintf("user/%03d", i)); got != strings.Repeat("v", 40+i%30) {
			t.Errorf("%s: user/%03d is %q", what, i, got)
		}
	}
	if got := valueOf(t, s, "webhook/large"); got != strings.Repeat("overflow ", 5000) {
		t.Errorf("%s: the large value is %q", what, got[:min(len(got), 20)])
	}
	for before := store.Sequence(0); ; {
		page, err := s.Page(t.Context(), "audit", before, 100)
		if err != nil {
			t.Errorf("%s: Page = %v", what, err)
		}
		if len(page) < 100 {
			break
		}
		before = page[len(page)-1].Sequence
	}
	commitOne(t, s, "user/new", "x")
	aside, err := filepath.Glob(filepath.Join(dir, dbName+".broken-*"))
	if err != nil {
		t.Fatal(err)
	}
	late := valueOf(t, s, "user/late")
	if (late == "after the copy") != (len(aside) == 0) {
		t.Errorf("%s: what came after the copy is %q, set aside are %v", what, late, aside)
	}
	if len(aside) > 0 {
		events, err := s.Page(t.Context(), store.StreamEvents, 0, 1)
		var event struct {
			Type string `json:"type"`
			Data struct {
				Aside string `json:"aside"`
			} `json:"data"`
		}
		if err != nil || len(events) == 0 || json.Unmarshal(events[0].Data, &event) != nil || event.Type != "store.restored" || event.Data.Aside == "" {
			t.Errorf("%s: no event tells of it: %v, %v", what, events, err)
		}
		return 1
	}
	return 0
}

func TestDamageWithoutACopyLosesNoFiles(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	commitOne(t, s, "certificate/a", "pem")
	commitOne(t, s, "user/a", "x")
	s.Close()
	if err := os.WriteFile(filepath.Join(dir, dbName), bytes.Repeat([]byte("x"), 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openDir(t, Options{Dir: dir})
	if got := valueOf(t, s, "certificate/a"); got != "pem" {
		t.Errorf("the certificate is %q", got)
	}
	if got := valueOf(t, s, "user/a"); got != "absent" {
		t.Errorf("the user is %q", got)
	}
}

func TestADatabaseThatIsGoneComesBackFromItsCopy(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	commitOne(t, s, "user/a", "x")
	if err := s.copy(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	os.Remove(filepath.Join(dir, dbName))
	s = openDir(t, Options{Dir: dir})
	if got := valueOf(t, s, "user/a"); got != "x" {
		t.Errorf("the user is %q", got)
	}
}

func TestCopiesAreMadeDailyAndThreeAreKept(t *testing.T) {
	clock, dir := newClock(), t.TempDir()
	s := openDir(t, Options{Dir: dir, Clock: func() time.Time { return clock.now() }})
	commitOne(t, s, "user/a", "x")
	for day := range 6 {
		s.care(t.Context())
		s.care(t.Context())
		all := s.copies()
		if want := min(day+1, keptCopies); len(all) != want {
			t.Fatalf("day %d: %d copies, want %d", day, len(all), want)
		}
		// What counts is the file's time: it is set to the test's clock.
		if err := os.Chtimes(all[0], clock.now(), clock.now()); err != nil {
			t.Fatal(err)
		}
		if err := verify(all[0]); err != nil {
			t.Error(err)
		}
		clock.advance(24 * time.Hour)
	}
}

// Damage that comes while headgate runs is found by the next read and mended.
func TestDamageWhileRunningIsMended(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	fillUp(t, s)
	if err := s.copy(); err != nil {
		t.Fatal(err)
	}
	_, before, err := s.Snapshot(t.Context(), "node/")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, dbName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	page := int64(os.Getpagesize())
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size()-2*page)), 2*page); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for i := range 600 {
		if got := valueOf(t, s, fmt.Sprintf("user/%03d", i)); got != strings.Repeat("v", 40+i%30) {
			t.Fatalf("user/%03d is %q", i, got)
		}
	}
	commitOne(t, s, "user/new", "x")
	_, after, err := s.Snapshot(t.Context(), "node/")
	if err != nil || after.Revision <= before.Revision {
		t.Errorf("the revision is %d after %d: %v", after.Revision, before.Revision, err)
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, dbName+".broken-*")); len(aside) != 1 {
		t.Errorf("set aside: %v", aside)
	}
}
