package control

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// serves returns a question whether an address answers with a status.
func serves(address string, wanted int) func() bool {
	return func() bool { return status(address) == wanted }
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestTheFileIsWatched(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	testhouse.Eventually(t, "the first file is served", serves(at[0], 201))
	next := func(what string, wanted int, change func(text string)) {
		t.Helper()
		change(document(wanted, "a "+at[0]))
		testhouse.Eventually(t, what, serves(at[0], wanted))
	}
	next("written in place", 202, func(text string) { write(t, h.file, text) })
	next("an editor's rename", 203, func(text string) {
		write(t, h.file+".swp", text)
		rename(t, h.file, h.file+"~")
		rename(t, h.file+".swp", h.file)
	})
	next("a rename that keeps size and time", 204, func(text string) {
		info, err := os.Stat(h.file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, h.file+".new", text)
		if err := os.Chtimes(h.file+".new", info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		rename(t, h.file+".new", h.file)
	})
	next("half, then whole", 205, func(text string) {
		write(t, h.file, text[:len(text)/2])
		testhouse.Eventually(t, "the half is refused", func() bool { return h.c.Status().Refused != nil })
		expectStatus(t, at[0], 204)
		write(t, h.file, text)
	})
	next("deleted, and made again", 206, func(text string) {
		if err := os.Remove(h.file); err != nil {
			t.Fatal(err)
		}
		testhouse.Eventually(t, "the absence is told", func() bool {
			r := h.c.Status().Refused
			return r != nil && strings.Contains(r.Problems[0], "no such file")
		})
		expectStatus(t, at[0], 205)
		write(t, h.file, text)
	})
}

func TestWhatIsServedIsNotAppliedAgain(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	text := document(201, "a "+at[0])
	h := start(t, text)
	p := h.c.Plan()
	write(t, h.file, text)
	write(t, h.file, strings.Replace(text, "status: 201", "status: 9999", 1))
	testhouse.Eventually(t, "the wrong one is refused", func() bool { return h.c.Status().Refused != nil })
	if h.c.Plan() != p || h.log.count("configuration applied") != 1 {
		t.Error("the same content was applied again")
	}
	write(t, h.file, text)
	testhouse.Eventually(t, "the refusal is over", func() bool { return h.c.Status().Refused == nil })
}

func TestLinksAreFollowedWhenTheyAreSwapped(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := prepare(t, "")
	dir := filepath.Dir(h.file)
	version := func(name string, status int) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "headgate.yaml"), document(status, "a "+at[0]))
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	version("..1", 201)
	version("..2", 202)
	link("..1", "..data")
	if err := os.Remove(h.file); err != nil {
		t.Fatal(err)
	}
	link(filepath.Join("..data", "headgate.yaml"), "headgate.yaml")
	h.run()
	expectStatus(t, at[0], 201)
	link("..2", "..data_tmp")
	rename(t, filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
	testhouse.Eventually(t, "the swapped file is served", serves(at[0], 202))
}

func TestOtherFilesOfTheDirectoryDoNotPutAChangeOff(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	done := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				os.WriteFile(filepath.Join(filepath.Dir(h.file), "access.log"), []byte("x"), 0o600)
			}
		}
	})
	write(t, h.file, document(202, "a "+at[0]))
	testhouse.Eventually(t, "the change is served", serves(at[0], 202))
	close(done)
	busy.Wait()
}

func TestADirectoryThatCannotBeReadLeavesEverything(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	dir := filepath.Dir(h.file)
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := h.c.Reload(); err == nil {
		t.Error("it was read")
	}
	expectStatus(t, at[0], 201)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, h.file, document(202, "a "+at[0]))
	testhouse.Eventually(t, "the change is served", serves(at[0], 202))
}

func TestReloadOfABrokenFileIsRefused(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	before := snapshot(h)
	write(t, h.file, "version: 1\nports: [\n")
	if err := h.c.Reload(); err == nil || !strings.Contains(err.Error(), h.file+":") {
		t.Errorf("got %v, want the place of the mistake", err)
	}
	before.same(t, h)
	expectStatus(t, at[0], 201)
}

func TestReloadAndWatchTogetherEndWithTheNewestFile(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	h := start(t, document(200, "a "+at[0]))
	done := make(chan struct{})
	var reloads sync.WaitGroup
	for range 3 {
		reloads.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = h.c.Reload() // a file that is half written is refused
				}
			}
		})
	}
	for i := range 30 {
		write(t, h.file+".new", document(201+i, "a "+at[0]))
		rename(t, h.file+".new", h.file)
	}
	close(done)
	reloads.Wait()
	testhouse.Eventually(t, "the newest file is served", serves(at[0], 230))
	if r := h.c.Status().Refused; r != nil {
		t.Errorf("refused: %v", r.Problems)
	}
}
