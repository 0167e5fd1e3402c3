package certs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/certs/certstest"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// TestRandomLivesOfFiles has files written, by half, in pairs that do not fit, taken away,
// and switched by a link as Kubernetes does, by a clock of the test's own. What is served
// is always a pair that was there, never none once there was one, and what is there when
// all is quiet.
func TestRandomLivesOfFiles(t *testing.T) {
	testhouse.Lives(t, 1, 4, func(t *testing.T, seed uint64) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { newFolder(t, seed, dir).live() })
	})
}

// folder is where a certificate lies.
type folder struct {
	t     *testing.T
	r     *rand.Rand
	dir   string
	pairs [][2][]byte // chain and key
	turns int
	told  []string
}

func newFolder(t *testing.T, seed uint64, dir string) *folder {
	f := &folder{t: t, r: rand.New(rand.NewPCG(seed, 0)), dir: dir}
	for i := range 4 {
		c := certstest.Sign(t, hosts(fmt.Sprintf("h%d.example", i)), nil)
		f.pairs = append(f.pairs, [2][]byte{certstest.PEM(c), certstest.KeyPEM(t, c)})
	}
	f.change()
	return f
}

// files are the names of the certificate and its key.
func (f *folder) files() [2]string {
	return [2]string{filepath.Join(f.dir, "tls.crt"), filepath.Join(f.dir, "tls.key")}
}

// live lives a life.
func (f *folder) live() {
	names := f.files()
	k := NewKeeper(slog.New(slog.DiscardHandler))
	defer k.Close()
	c := k.Prepare([]Wanted{{Name: "c", Loader: NewFiles(names[0], names[1])}})
	p, _ := c.Pair("c", FilesKey(names[0], names[1]))
	f.pause()
	c.Commit()
	served := p.TLS() != nil
	for range 12 {
		for range 1 + f.r.IntN(5) {
			f.change()
			f.pause()
			if served = served || p.TLS() != nil; served && p.TLS() == nil {
				f.t.Error("none is served any more")
			}
		}
		time.Sleep(5 * pollInterval)
		f.checkServed(p)
		if f.t.Failed() {
			f.t.Logf("%q", f.told)
			return
		}
	}
}

// checkServed checks what is served when nothing changes.
func (f *folder) checkServed(p *Certificate) {
	names := f.files()
	want, err := Load(names[0], names[1])
	got := p.TLS()
	switch problem := p.Status().Problem; {
	case err == nil && (got == nil || !bytes.Equal(got.Certificate[0], want.Certificate[0])):
		f.t.Errorf("another one is served than there is, with the problem %q", problem)
	case err == nil && problem != "":
		f.t.Errorf("the problem %q is over", problem)
	case err != nil && problem != err.Error():
		f.t.Errorf("the problem is %q, and %q is told", err, problem)
	}
}

func (f *folder) pause() { time.Sleep(time.Duration(f.r.IntN(6000)) * time.Millisecond) }

// change changes what lies there.
func (f *folder) change() {
	names := f.files()
	pair := f.pairs[f.r.IntN(len(f.pairs))]
	what := f.r.IntN(8)
	f.told = append(f.told, fmt.Sprint(time.Now().Format("04:05.000 "), what))
	switch what {
	case 0, 1: // as most do
		f.write(names[0], pair[0])
		f.pause()
		f.write(names[1], pair[1])
	case 2:
		f.write(names[f.r.IntN(2)], pair[0])
	case 3: // one after the other, each by half at first
		for i, name := range names {
			f.write(name, pair[i][:f.r.IntN(len(pair[i]))])
			f.pause()
			f.write(name, pair[i])
		}
	case 4:
		os.Remove(names[f.r.IntN(2)])
	case 5, 6: // a folder that is switched as a whole
		f.turns++
		next := filepath.Join(f.dir, fmt.Sprint("..", f.turns))
		if err := os.Mkdir(next, 0o700); err != nil {
			f.t.Fatal(err)
		}
		for i, name := range names {
			f.write(filepath.Join(next, filepath.Base(name)), pair[i])
		}
		f.link(next, filepath.Join(f.dir, "..data"))
		for _, name := range names {
			f.link(filepath.Join("..data", filepath.Base(name)), name)
		}
	case 7: // readable for us at last, which its time does not tell
		if old, err := os.Stat(names[1]); err == nil && old.Size() == int64(len(pair[1])) {
			at := old.ModTime()
			f.write(names[0], pair[0])
			f.write(names[1], bytes.Repeat([]byte{'x'}, len(pair[1])))
			os.Chtimes(names[1], at, at)
			time.Sleep(5 * pollInterval)
			f.write(names[1], pair[1])
			os.Chtimes(names[1], at, at)
		}
	}
}

// write writes a file, in place of a link if it is one.
func (f *folder) write(name string, data []byte) {
	if info, err := os.Lstat(name); err == nil && info.Mode().Type() == fs.ModeSymlink {
		os.Remove(name)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	os.Chtimes(name, time.Now(), time.Now())
}

// link puts a link in the place of what is there.
func (f *folder) link(to, name string) {
	if err := errors.Join(os.Symlink(to, name+".new"), os.Rename(name+".new", name)); err != nil {
		f.t.Fatal(err)
	}
}

// kept are values that can be away.
type kept struct {
	mu   sync.Mutex
	text []byte
	err  error
}

func (k *kept) set(text []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text, k.err = text, err
}

func (k *kept) Load(string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text, k.err
}

func (k *kept) Keep(string, []byte) error { return nil }

var _ store.Values = (*kept)(nil)

// TestAStoredCertificateIsTheLastOne holds that one is taken up that is uploaded between
// its load and its use, and that a store which was away is asked again.
func TestAStoredCertificateIsTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pem := func(host string) []byte {
			c := certstest.Sign(t, hosts(host), nil)
			return append(certstest.PEM(c), certstest.KeyPEM(t, c)...)
		}
		values := &kept{text: pem("before.example")}
		uploads := NewUploads(values)
		k := NewKeeper(slog.New(slog.DiscardHandler))
		defer k.Close()
		served := func(name string) string {
			p := k.pairs[key(name, StoredKey(name))]
			if p.TLS() == nil {
				return p.Status().Problem
			}
			return p.Leaf().DNSNames[0]
		}
		c := k.Prepare([]Wanted{{Name: "one", Loader: uploads.Loader("one")}})
		values.set(pem("after.example"), nil)
		uploads.Changed("one")
		c.Commit()
		synctest.Wait()
		if got := served("one"); got != "after.example" {
			t.Errorf("got %s, want what was uploaded last", got)
		}
		values.set(nil, errors.New("the store is away"))
		c = k.Prepare([]Wanted{{Name: "one", Loader: uploads.Loader("one")}, {Name: "two", Loader: uploads.Loader("two")}})
		c.Commit()
		values.set(pem("back.example"), nil)
		time.Sleep(2 * lookAgain)
		if one, two := served("one"), served("two"); one != "after.example" || two != "back.example" {
			t.Errorf("got %s and %s when the store is back", one, two)
		}
		uploads.Reload()
		synctest.Wait()
		if got := served("one"); got != "back.example" {
			t.Errorf("got %s after a look", got)
		}
	})
}
