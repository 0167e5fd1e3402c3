//go:build unix

package history_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/local"
)

// kills is how often the process is killed: 1000 takes a few minutes.
var kills = flag.Int("kills", 60, "how often a process that saves is killed")

// The environment of a process that saves until it is killed.
const (
	killDir = "HEADGATE_TEST_KILL" // where it saves
	killAt  = "HEADGATE_TEST_AT"   // the number of the point at which it kills itself, 0 for never
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(mountDir); dir != "" {
		os.Exit(saveUnderMounts(dir))
	}
	if dir := os.Getenv(killDir); dir != "" {
		if err := saveUntilKilled(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// text is a document in one generation. Lengths go up and down, over several blocks.
func text(name string, generation int) []byte {
	line := fmt.Sprintf("# %s generation %d\n", name, generation)
	return bytes.Repeat([]byte(line), 100+generation*37%400)
}

// documents is what generation g is made from and what it is. The third document is
// there in even generations only, so that it is made and removed in turn.
func documents(dir string, g int) []history.Document {
	var docs []history.Document
	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml"} {
		d := history.Document{Name: filepath.Join(dir, "docs", name)}
		if name != "c.yaml" || g%2 == 1 {
			d.Was = history.DigestOf(text(name, g-1))
		}
		if name != "c.yaml" || g%2 == 0 {
			d.Data = text(name, g)
		}
		docs = append(docs, d)
	}
	return docs
}

// generationOf returns the generation that the first document has.
func generationOf(dir string) (int, error) {
	data, err := os.ReadFile(filepath.Join(dir, "docs", "a.yaml"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
}

// openBoth opens the store and the history of a directory.
func openBoth(dir string, point func(string)) (*local.Store, *history.History, error) {
	s, err := local.Open(local.Options{Dir: filepath.Join(dir, "state"), Point: point})
	if err != nil {
		return nil, nil, err
	}
	h, err := history.Open(context.Background(), history.Options{Store: s, Dir: s.Dir(), Point: point})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, h, nil
}

// saveUntilKilled saves one generation after the other, and tells each one that was
// acknowledged.
func saveUntilKilled(dir string) error {
	at, err := strconv.Atoi(os.Getenv(killAt))
	if err != nil {
		return err
	}
	points := 0
	s, h, err := openBoth(dir, func(string) {
		if points++; points == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	if err != nil {
		return err
	}
	g, err := generationOf(dir)
	if err != nil {
		return err
	}
	for range 8 {
		g++
		q := history.Request{Documents: documents(dir, g), When: time.Now(), Via: "api", Records: []store.Record{{Stream: store.StreamAudit, Data: fmt.Appendf(nil, "%d", g)}}}
		if g%3 == 0 {
			q.Within = time.Hour
		}
		if _, err := h.Save(context.Background(), q); err != nil {
			return fmt.Errorf("generation %d: %w", g, err)
		}
		fmt.Println("saved", g)
		_, err := s.Commit(context.Background(), store.Change{
			Put:    []store.Entry{{Key: "certificate/shop", Value: text("certificate", g)}, {Key: "user/anna", Value: text("user", g)}},
			Delete: []string{fmt.Sprintf("certificate/old%d", (g+1)%2)},
			Append: []store.Record{{Stream: store.StreamEvents, Data: fmt.Appendf(nil, "%d", g)}},
		})
		if err != nil {
			return err
		}
		_, err = s.Commit(context.Background(), store.Change{Put: []store.Entry{{Key: fmt.Sprintf("certificate/old%d", g%2), Value: []byte("x")}}})
		if err != nil {
			return err
		}
		fmt.Println("committed", g)
	}
	return s.Close()
}

// The process is killed at every point of a save and at random, again and again on the
// same state. Whatever the moment: it starts, the documents are of one generation and
// whole, nothing that was acknowledged is gone, and nothing is left behind.
func TestKilledAtAnyMoment(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"a.yaml": text("a.yaml", 1), "b.yaml": text("b.yaml", 1)} {
		if err := os.WriteFile(filepath.Join(dir, "docs", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A second name makes that it is written in place.
	if err := os.Link(filepath.Join(dir, "docs", "b.yaml"), filepath.Join(dir, "other name of b")); err != nil {
		t.Skip(err)
	}
	saved, committed, killed, acknowledged := 1, 1, 0, 0
	for round := range *kills {
		at, wait := 1+round*7%260, time.Duration(0)
		if round%4 == 3 {
			at, wait = 0, time.Duration(rand.N(60))*time.Millisecond
		}
		s, c, wasKilled := runUntilKilled(t, dir, at, wait)
		if s > saved {
			acknowledged += s - saved
		}
		saved, committed = max(saved, s), max(committed, c)
		if wasKilled {
			killed++
		}
		saved, committed = verifyGeneration(t, dir, saved, committed, fmt.Sprintf("round %d, point %d", round, at))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d processes, %d killed, %d saves acknowledged, none lost", *kills, killed, acknowledged)
	if killed < *kills/2 {
		t.Errorf("only %d of %d processes were killed: the points are too few", killed, *kills)
	}
}

// runUntilKilled runs a process that saves, and returns what it has acknowledged.
func runUntilKilled(t *testing.T, dir string, at int, wait time.Duration) (saved, committed int, killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killDir+"="+dir, killAt+"="+strconv.Itoa(at))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if at == 0 {
		timer := time.AfterFunc(wait, func() { cmd.Process.Kill() })
		defer timer.Stop()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, number, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(number)
		switch word {
		case "saved":
			saved = n
		case "committed":
			committed = n
		default:
			t.Errorf("the process says %q", lines.Text())
		}
	}
	return saved, committed, cmd.Wait() != nil
}

// verifyGeneration opens what a killed process has left.
func verifyGeneration(t *testing.T, dir string, saved, committed int, what string) (int, int) {
	t.Helper()
	s, h, err := openBoth(dir, nil)
	if err != nil {
		t.Fatalf("%s: it does not start: %v", what, err)
	}
	defer s.Close()
	g, err := generationOf(dir)
	if err != nil || g != saved && g != saved+1 {
		t.Errorf("%s: the documents are of generation %d, acknowledged is %d: %v", what, g, saved, err)
	}
	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml"} {
		want := text(name, g)
		if name == "c.yaml" && g%2 == 1 {
			want = nil
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "docs", name)); !bytes.Equal(got, want) {
			t.Errorf("%s: %s has %d bytes, want the %d of generation %d", what, name, len(got), len(want), g)
		}
	}
	verifyHead(t, dir, s, h, g, what)
	if page, err := s.Page(t.Context(), store.StreamAudit, 0, 1); g > 1 && (err != nil || len(page) == 0 || string(page[0].Data) != strconv.Itoa(g)) {
		t.Errorf("%s: the audit tells of %v, want %d: %v", what, page, g, err)
	}
	_, waits, err := h.Pending(t.Context())
	if err != nil || waits != (g%3 == 0) {
		t.Errorf("%s: generation %d waits %v: %v", what, g, waits, err)
	}
	c := verifyCommit(t, s, committed, what)
	for _, pattern := range []string{"docs/.headgate*", "docs/*.edited", "state/intent.json", "state/staged/*", "state/*/.new-*", "state/.new-*"} {
		if left, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v %v", what, left, err)
		}
	}
	return g, c
}

// verifyHead checks that the newest revision is what stands in the documents.
func verifyHead(t *testing.T, dir string, s *local.Store, h *history.History, g int, what string) {
	t.Helper()
	head, ok := h.Head()
	if g == 1 {
		return
	}
	docs, err := h.Documents(t.Context(), head.Number)
	if !ok || err != nil {
		t.Errorf("%s: no head: %v", what, err)
		return
	}
	for _, d := range docs {
		if !bytes.Equal(d.Data, text(filepath.Base(d.Name), g)) {
			t.Errorf("%s: revision %d has not generation %d of %s", what, head.Number, g, d.Name)
		}
	}
}

// verifyCommit checks the entries that are committed beside the documents.
func verifyCommit(t *testing.T, s *local.Store, committed int, what string) int {
	t.Helper()
	if committed == 1 {
		if _, err := s.Get(t.Context(), "user/anna"); errors.Is(err, store.ErrNotFound) {
			return 1
		}
	}
	page, err := s.Page(t.Context(), store.StreamEvents, 0, 1)
	if err != nil || len(page) == 0 {
		t.Errorf("%s: no events: %v", what, err)
		return committed
	}
	c, err := strconv.Atoi(string(page[0].Data))
	if err != nil || c < committed {
		t.Errorf("%s: the events tell of commit %d, acknowledged is %d: %v", what, c, committed, err)
	}
	for key, name := range map[string]string{"certificate/shop": "certificate", "user/anna": "user"} {
		if e, err := s.Get(t.Context(), key); err != nil || !bytes.Equal(e.Value, text(name, c)) {
			t.Errorf("%s: %s is not that of commit %d: %v", what, key, c, err)
		}
	}
	list, err := s.List(t.Context(), "certificate/", "", 100)
	if err != nil {
		t.Error(err)
	}
	for _, m := range list {
		if _, err := s.Get(t.Context(), m.Key); err != nil {
			t.Errorf("%s: %s is listed: %v", what, m.Key, err)
		}
	}
	if _, err := s.Get(t.Context(), fmt.Sprintf("certificate/old%d", (c+1)%2)); c > 1 && !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%s: a certificate that was removed is there: %v", what, err)
	}
	return c
}
