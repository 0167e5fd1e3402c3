package http2

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// sunk is a connection that keeps what is written to it.
type sunk struct {
	w      Writer
	got    bytes.Buffer
	writes int
	fault  error
	passed int
	wrote  func()
	broken chan any
}

func (s *sunk) WriteNow(b []byte) error {
	s.got.Write(b)
	s.writes++
	return s.fault
}

func (s *sunk) WroteLocked() {
	if s.wrote != nil {
		s.wrote()
	}
}

func (s *sunk) FailedLocked(err error) { s.w.EndLocked(err) }

func (s *sunk) PassLocked() {
	s.passed++
	s.w.WriteAsideLocked()
}

func (s *sunk) add(text string) {
	s.w.Lock()
	s.w.Out = append(s.w.Space(), text...)
	s.w.Unlock()
}

func TestWhatManyCollectIsWrittenOnce(t *testing.T) {
	s := &sunk{}
	s.w.Init(s, 4, 1<<10)
	s.w.Active = 50
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for j := range 20 {
				s.add(fmt.Sprintf("%02d:%02d;", i, j))
				s.w.Flush()
			}
		})
	}
	all.Wait()
	s.w.Lock()
	s.w.FinishLocked()
	s.w.Unlock()
	next := [50]int{}
	for _, item := range bytes.Split(bytes.TrimSuffix(s.got.Bytes(), []byte(";")), []byte(";")) {
		var i, j int
		if fmt.Sscanf(string(item), "%d:%d", &i, &j); next[i] != j {
			t.Fatalf("goroutine %d: %q came after %d others of it", i, item, next[i])
		}
		next[i]++
	}
	for i, n := range next {
		if n != 20 {
			t.Errorf("%d pieces of goroutine %d came, want 20", n, i)
		}
	}
}

// A goroutine that writes for others is let go in the end, and another takes over.
func TestAWriterPassesOnWhatIsLeft(t *testing.T) {
	s := &sunk{}
	s.w.Init(s, 3, 1<<10)
	more := 5
	s.wrote = func() {
		if more--; more > 0 {
			s.w.Out = append(s.w.Space(), 'x')
		}
	}
	s.add("x")
	s.w.Flush()
	s.w.Lock()
	defer s.w.Unlock()
	s.w.FinishLocked()
	if s.got.String() != "xxxxx" || s.passed != 1 {
		t.Errorf("wrote %q and passed on %d times, want xxxxx and once", s.got.String(), s.passed)
	}
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	s := &sunk{fault: errors.New("gone")}
	s.w.Init(s, 0, 1<<10)
	for range 2 {
		s.add("x")
		s.w.Flush()
	}
	s.w.Lock()
	defer s.w.Unlock()
	s.w.FinishLocked()
	if s.writes != 1 || s.w.Err != s.fault || s.w.WriteLocked() {
		t.Errorf("%d writes, error %v; want one, and the error of it", s.writes, s.w.Err)
	}
	if !s.w.StopLocked() {
		t.Error("nobody writes, and Stop says that somebody does")
	}
}

func TestAWindowGrowsWhileItIsUsedUp(t *testing.T) {
	w := NewWindow()
	open, sent := int64(InitialWindow), int64(0)
	for sent < 64<<20 {
		if open == 0 {
			t.Fatalf("the window stays closed after %d bytes", sent)
		}
		n := open // all that the peer may send comes, and then it is read
		if !w.Receive(int(n), 0) {
			t.Fatalf("%d bytes within the window were refused", n)
		}
		sent, open = sent+n, 0
		for left := n; left > 0; left -= min(left, 4<<10) {
			open += w.Read(min(left, 4<<10))
		}
		if open > MaxStreamWindow {
			t.Fatalf("the window is %d bytes", open)
		}
	}
	if open < MaxStreamWindow/2 {
		t.Errorf("the window is %d bytes after %d that were read at once", open, sent)
	}
	if w.Receive(MaxStreamWindow+1, 0) {
		t.Error("a frame larger than the window was taken")
	}
}

func (s *sunk) Broke(v any) { s.broken <- v }

// A panic below a write leaves the lock free and the writer at rest, whoever writes.
func TestAPanicLeavesTheWriterAtRest(t *testing.T) {
	for name, write := range map[string]func(s *sunk){
		"Flush": func(s *sunk) {
			defer s.w.Guard()
			s.w.Flush()
		},
		"aside": func(s *sunk) {
			s.w.Lock()
			defer s.w.Unlock()
			s.w.FlushAsideLocked()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sunk{broken: make(chan any, 1)}
			s.w.Init(s, 4, 1<<10)
			s.wrote = func() { panic("a test broke it") }
			s.add("x")
			write(s)
			<-s.broken
			s.wrote = nil
			s.add("y")
			s.w.Flush()
			if got := s.got.String(); got != "xy" {
				t.Errorf("wrote %q, want xy", got)
			}
		})
	}
}
