package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a new process that is a goroutine. It ends at the step that it is told.
type fake struct {
	link  Link
	dies  string // "", or the step after which it ends
	ended chan struct{}
	once  sync.Once

	mu     sync.Mutex
	serves bool
	got    *Inheritance
}

func (f *fake) PID() int               { return 4242 }
func (f *fake) Ended() <-chan struct{} { return f.ended }
func (f *fake) Err() error             { return errors.New("killed") }
func (f *fake) Kill() {
	f.end()
	<-f.ended
}

func (f *fake) end() {
	f.once.Do(func() {
		f.mu.Lock()
		f.serves = false
		f.mu.Unlock()
		f.link.Close()
		close(f.ended)
	})
}

func (f *fake) isServing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serves
}

func (f *fake) run() {
	if f.dies == "start" {
		f.end()
		return
	}
	h, err := Inherit(f.link, "new")
	if err != nil {
		f.end()
		return
	}
	f.mu.Lock()
	f.got = h
	f.mu.Unlock()
	switch f.dies {
	case "inherited":
		f.end()
		return
	case "failed":
		h.Failed(errors.New("the field lost is not known"))
		f.end()
		return
	case "hangs":
		<-f.ended
		return
	}
	if err := h.Serving(); err != nil {
		f.end()
		return
	}
	f.mu.Lock()
	f.serves = true
	f.mu.Unlock()
	if f.dies == "serving" {
		f.end()
	}
}

// service is a process as far as an upgrade goes.
type service struct {
	t        *testing.T
	h        *Handover
	frozen   bool
	released bool
	refuse   error
	release  func()
}

func (s *service) Freeze(context.Context) (*Handover, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	if s.frozen {
		s.t.Error("frozen twice")
	}
	s.frozen = true
	return s.h, nil
}

func (s *service) Release() {
	if !s.frozen || s.released {
		s.t.Error("released in the wrong order")
	}
	s.released = true
	if s.release != nil {
		s.release()
	}
}

func (s *service) Thaw() error {
	if !s.frozen {
		s.t.Error("thawed what was not frozen")
	}
	s.frozen, s.released = false, false
	return nil
}

func replaceWith(t *testing.T, s *service, dies string, timeout time.Duration) (*Successor, *fake, error) {
	t.Helper()
	var f *fake
	o := &Old{Offer: Offer{Version: "old", Generation: 3, PID: os.Getpid()}, Service: s, Log: slog.New(slog.DiscardHandler), Timeout: timeout,
		Start: func() (Process, Link, error) {
			ours, theirs, err := NewLinks()
			if err != nil {
				return nil, nil, err
			}
			f = &fake{link: theirs, dies: dies, ended: make(chan struct{})}
			go f.run()
			return f, ours, nil
		}}
	got, err := o.Replace(t.Context())
	return got, f, err
}

// TestOneOfTwoProcessesServes has the new process end at each step.
func TestOneOfTwoProcessesServes(t *testing.T) {
	for _, c := range []struct{ dies, says string }{
		{"start", "ended before it served"},
		{"inherited", "ended before it served"},
		{"failed", "the new process cannot serve: the field lost is not known"},
		{"hangs", "did not serve within"},
		{"", ""},
	} {
		s := &service{t: t, h: &Handover{}}
		timeout := time.Minute
		if c.dies == "hangs" {
			timeout = 50 * time.Millisecond
		}
		got, f, err := replaceWith(t, s, c.dies, timeout)
		if c.says == "" {
			if err != nil || !s.released || got.Version != "new" {
				t.Errorf("%s: %v, released %v", c.dies, err, s.released)
				continue
			}
			got.Link.Close()
			f.end()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.dies, err, c.says)
		}
		if s.frozen || s.released || f.isServing() {
			t.Errorf("%s: frozen %v, released %v, the new one serves %v", c.dies, s.frozen, s.released, f.isServing())
		}
	}
}

func TestRefusedFreezeEndsTheNewProcess(t *testing.T) {
	s := &service{t: t, refuse: errors.New("a change is being made")}
	_, f, err := replaceWith(t, s, "", time.Minute)
	if !errors.Is(err, s.refuse) {
		t.Errorf("got %v", err)
	}
	<-f.ended
}

// TestReasonArrivesWhileTheStateIsSent has the new process fail at the first message and
// end, while the old one is still sending: the operator reads the reason all the same.
func TestReasonArrivesWhileTheStateIsSent(t *testing.T) {
	s := &service{t: t, h: &Handover{}}
	for i := range 300 { // more than fits into the socket
		s.h.State = append(s.h.State, Part{fmt.Sprint(i), make([]byte, maxPiece)})
	}
	o := &Old{Service: s, Log: slog.New(slog.DiscardHandler), Timeout: time.Minute, Start: func() (Process, Link, error) {
		ours, theirs, err := NewLinks()
		if err != nil {
			return nil, nil, err
		}
		f := &fake{link: theirs, ended: make(chan struct{})}
		go func() {
			f.link.Send(&Message{Kind: kindHello, Protocol: Protocol, ReadableFrom: ReadableFrom}, nil)
			f.link.Receive()
			f.link.Send(&Message{Kind: kindFailed, Reason: "the limit of open files is too low"}, nil)
			f.end()
		}()
		return f, ours, nil
	}}
	if _, err := o.Replace(t.Context()); err == nil || err.Error() != "the new process cannot serve: the limit of open files is too low" {
		t.Errorf("got %v", err)
	}
}

// TestEverythingArrives sends more descriptors and longer parts than one message has.
func TestEverythingArrives(t *testing.T) {
	s := &service{t: t, h: &Handover{}}
	for i := range 2*maxFiles + 7 {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		fmt.Fprint(f, i)
		s.h.Files = append(s.h.Files, File{fmt.Sprint("file ", i), f})
	}
	long := []byte("\"" + strings.Repeat("0123456789", 3*maxPiece/10) + "\"")
	s.h.State = []Part{{"long", long}, {"empty", nil}, {"short", []byte(`{"known":1,"later":2}`)}}
	got, f, err := replaceWith(t, s, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Link.Close()
	f.mu.Lock()
	h := f.got
	f.mu.Unlock()
	if h.Old != (Offer{Version: "old", Generation: 3, PID: os.Getpid()}) || h.Generation() != 4 {
		t.Errorf("got %+v, generation %d", h.Old, h.Generation())
	}
	for i := range 2*maxFiles + 7 {
		file := h.TakeFile(fmt.Sprint("file ", i))
		if file == nil {
			t.Fatalf("descriptor %d is missing", i)
		}
		b := make([]byte, 10)
		n, _ := file.ReadAt(b, 0)
		file.Close()
		if string(b[:n]) != fmt.Sprint(i) {
			t.Errorf("descriptor %d is of a file with %q", i, b[:n])
		}
	}
	if left := h.CloseFiles(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	f.end()
}

// TestPiecesThatAreNotAsAnnounced are refused, and no descriptor of them stays open.
func TestPiecesThatAreNotAsAnnounced(t *testing.T) {
	short, err := memoryFile([]byte("short"))
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	for _, c := range []struct {
		name  string
		m     Message
		files []*os.File
		want  string
	}{
		{"a file that is too short", Message{Size: 6}, []*os.File{short}, "EOF"},
		{"no file", Message{Size: 6}, nil, "without its file"},
		{"two files", Message{Size: 5}, []*os.File{short, short}, "without its file"},
		{"too large", Message{Size: 101}, []*os.File{short}, "too large"},
		{"below zero", Message{Size: -1}, []*os.File{short}, "too large"},
		{"too much data", Message{Data: make([]byte, 101)}, nil, "too large"},
	} {
		a, b, err := NewLinks()
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Send(&c.m, c.files); err != nil {
			t.Fatal(err)
		}
		m, files, err := b.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if data, err := readPiece(m, files, 100); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.name, data, err, c.want)
		}
		for _, f := range files {
			if f.Close() == nil {
				t.Errorf("%s: a descriptor was left open", c.name)
			}
		}
		a.Close()
		b.Close()
	}
}

func TestStateIsReadByName(t *testing.T) {
	a, b, err := NewLinks()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	go func() {
		a.Receive()
		sendHandover(a, Offer{}, &Handover{State: []Part{{"one", []byte(`{"known":1,"later":2}`)}, {"of a later version", []byte("{}")}}})
	}()
	h, err := Inherit(b, "new")
	if err != nil {
		t.Fatal(err)
	}
	var one struct{ Known int }
	if !h.Part("one", &one) || one.Known != 1 {
		t.Errorf("got %+v", one)
	}
	if h.Part("absent", &one) || h.Part("one", new([]int)) {
		t.Error("a part that cannot be read was read")
	}
	b.Close()
}

func TestProgressAndStop(t *testing.T) {
	s := &service{t: t, h: &Handover{}}
	got, f, err := replaceWith(t, s, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for !f.isServing() {
		time.Sleep(time.Millisecond)
	}
	if err := got.Report(17); err != nil {
		t.Fatal(err)
	}
	for {
		if p, ok := f.got.Draining(); ok && p.Connections == 17 {
			if p.Version != "old" || p.Generation != 3 || p.PID != os.Getpid() {
				t.Errorf("got %+v", p)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	left := f.got.Stop()
	if !got.Stopped() {
		t.Error("the old process was not asked to end")
	}
	got.Link.Close()
	<-left
	if _, ok := f.got.Draining(); ok || f.got.Stop() != nil {
		t.Error("the old process is believed to be there")
	}
	f.end()
}

func TestOtherVersionsAreRefusedWithAReason(t *testing.T) {
	for _, m := range []*Message{{Protocol: ReadableFrom - 1, ReadableFrom: 0, Version: "0.1"}, {Protocol: Protocol + 5, ReadableFrom: Protocol + 1, Version: "9"}} {
		if err := compatible(m); err == nil || !strings.Contains(err.Error(), "restart instead") {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if err := compatible(&Message{Protocol: Protocol + 5, ReadableFrom: Protocol}); err != nil {
		t.Errorf("a later version that can be read: %v", err)
	}
}

// TestRandomLives lets new processes end at random steps, one after the other: at each
// moment one process serves, and the old one can always continue.
func TestRandomLives(t *testing.T) {
	steps := []string{"start", "inherited", "failed", ""}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &service{t: t, h: &Handover{State: []Part{{"p", []byte(strings.Repeat(" ", r.IntN(3*maxPiece)))}}}}
		for range 5 {
			dies := steps[r.IntN(len(steps))]
			got, f, err := replaceWith(t, s, dies, time.Minute)
			if (err == nil) != (dies == "") || s.released != (dies == "") || s.frozen != (dies == "") {
				t.Fatalf("seed %d, new process ended at %q: %v, released %v, frozen %v", seed, dies, err, s.released, s.frozen)
			}
			if err == nil { // the new one dies later: the old one continues
				f.end()
				got.Link.Close()
				s.Thaw()
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"kind":"hello","version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		if again, err := encode(m); err != nil {
			t.Fatalf("%q: %v", b, err)
		} else if _, err := decode(again); err != nil {
			t.Fatalf("%q: %v", again, err)
		}
	})
}

func TestEnvironmentOfTheNewProcess(t *testing.T) {
	got := environment([]string{"A=1", "LISTEN_PID=7", "LISTEN_FDS=2", "LISTEN_FDNAMES=a:b", "WATCHDOG_PID=7", "WATCHDOG_USEC=30", "NOTIFY_SOCKET=/x", Variable + "=3"})
	if want := []string{"A=1", "WATCHDOG_USEC=30", "NOTIFY_SOCKET=/x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLinkEnds(t *testing.T) {
	a, b, err := NewLinks()
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	if _, _, err := b.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
	b.Close()
}

// TestPartsOfTheDrainArrive sends parts after the new process serves: each comes whole and
// in order, one that it does not know is ignored.
func TestPartsOfTheDrainArrive(t *testing.T) {
	a, b, err := NewLinks()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		a.Receive() // hello
		sendHandover(a, Offer{}, &Handover{})
		a.Receive() // serving
		a.Send(&Message{Kind: kindAcknowledged}, nil)
		s := &Successor{Link: a}
		s.Send(Part{"unknown", []byte("x")})
		s.Send(Part{"late", []byte(strings.Repeat("a", 3*maxPiece))})
		a.Send(&Message{Kind: "of a later version"}, nil)
		s.Send(Part{"late", []byte("b")})
		s.Report(3)
		a.Close()
	}()
	h, err := Inherit(b, "new")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	h.Late("late", func(data []byte) { got = append(got, string(data)) })
	if err := h.Serving(); err != nil {
		t.Fatal(err)
	}
	<-h.mu.ended
	if len(got) != 2 || len(got[0]) != 3*maxPiece || got[1] != "b" {
		t.Errorf("got %d parts", len(got))
	}
}
