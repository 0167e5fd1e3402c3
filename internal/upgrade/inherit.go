package upgrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Inheritance is what a new process got from the one that it replaces. Its methods may
// be called by several goroutines at once.
type Inheritance struct {
	// Old is the process that is replaced.
	Old  Offer
	link Link

	mu struct {
		sync.Mutex
		files    map[string]*os.File
		state    map[string][]byte
		progress Progress
		late     map[string]func([]byte) // by part
		ended    chan struct{}           // closed when the old process has left
		stopped  bool
	}
}

// Progress is what a new process knows of the old one.
type Progress struct {
	// PID, Version and Generation are those of the old process.
	PID        int
	Version    string
	Generation int
	// Since is when it was replaced.
	Since time.Time
	// Connections is how many connections it still has.
	Connections int
}

// Inherit says hello over a link and receives what the old process hands over. version is
// that of this program.
func Inherit(l Link, version string) (*Inheritance, error) {
	h := &Inheritance{link: l}
	h.mu.files, h.mu.state, h.mu.ended = map[string]*os.File{}, map[string][]byte{}, make(chan struct{})
	if err := l.Send(&Message{Kind: kindHello, Protocol: Protocol, ReadableFrom: ReadableFrom, Version: version, PID: os.Getpid()}, nil); err != nil {
		return nil, err
	}
	for size := 0; ; {
		m, files, err := l.Receive()
		if err != nil {
			h.CloseFiles()
			h.Failed(err)
			return nil, err
		}
		switch m.Kind {
		case kindFiles:
			err = h.keepFiles(m.Names, files)
		case kindState:
			var piece []byte
			if piece, err = readPiece(m, files, maxState-size); err != nil {
				break
			}
			if size += len(piece); len(h.mu.state) > maxParts {
				err = errors.New("the state that was handed over has too many parts")
			}
			h.mu.state[m.Part] = append(h.mu.state[m.Part], piece...)
		case kindBegin:
			h.Old = Offer{Version: m.Version, Generation: m.Generation, PID: m.PID}
			if err = compatible(m); err == nil {
				return h, nil
			}
		}
		if err != nil {
			h.CloseFiles()
			h.Failed(err)
			return nil, err
		}
	}
}

func (h *Inheritance) keepFiles(names []string, files []*os.File) error {
	if len(names) != len(files) {
		closeAll(files)
		return fmt.Errorf("got %d descriptors for %d names; the limit of open files may be too low", len(files), len(names))
	}
	for i, name := range names {
		if was := h.mu.files[name]; was != nil {
			was.Close()
		}
		h.mu.files[name] = files[i]
	}
	return nil
}

// Generation is the number of this process.
func (h *Inheritance) Generation() int {
	if h == nil {
		return 1
	}
	return h.Old.Generation + 1
}

// TakeFile returns the descriptor with a name, once; nil if there is none. The caller
// closes it. A nil inheritance has none.
func (h *Inheritance) TakeFile(name string) *os.File {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.mu.files[name]
	delete(h.mu.files, name)
	return f
}

// CloseFiles closes the descriptors that nothing has taken, and returns their names.
func (h *Inheritance) CloseFiles() (names []string) {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, f := range h.mu.files {
		f.Close()
		names = append(names, name)
	}
	clear(h.mu.files)
	slices.Sort(names)
	return names
}

// Part reads a part of the state into out. It reports false if there is none that can be
// read; a process then begins without it. A nil inheritance has none.
func (h *Inheritance) Part(name string, out any) bool {
	data := h.Bytes(name)
	return data != nil && json.Unmarshal(data, out) == nil
}

// Bytes returns a part of the state as it was sent, nil if there is none.
func (h *Inheritance) Bytes(name string) []byte {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.state[name]
}

// Late has f called with each piece of a part that the old process sends after it was
// replaced, one after the other. It is called before Serving. A nil inheritance has none.
func (h *Inheritance) Late(part string, f func(data []byte)) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.late == nil {
		h.mu.late = map[string]func([]byte){}
	}
	h.mu.late[part] = f
}

// Serving tells the old process that this one can serve, and returns when that has
// released what it held: from then on this process accepts connections and writes. An
// error says that the old process continues, and this one has to end.
func (h *Inheritance) Serving() error {
	if err := h.link.Send(&Message{Kind: kindServing, PID: os.Getpid()}, nil); err != nil {
		return fmt.Errorf("the old process has ended or withdrawn the upgrade: %w", err)
	}
	m, _, err := h.link.Receive()
	if err == nil && m.Kind != kindAcknowledged {
		err = fmt.Errorf("unexpected message %q", m.Kind)
	}
	if err != nil {
		return fmt.Errorf("the old process has ended or withdrawn the upgrade: %w", err)
	}
	h.mu.Lock()
	clear(h.mu.state)
	h.mu.progress = Progress{PID: h.Old.PID, Version: h.Old.Version, Generation: h.Old.Generation, Since: time.Now()}
	h.mu.Unlock()
	go h.follow()
	return nil
}

// follow receives what the old process reports until it has left.
func (h *Inheritance) follow() {
	defer h.link.Close()
	var part []byte // what has come of the one that is being received
	for {
		m, files, err := h.link.Receive()
		if err != nil {
			h.mu.Lock()
			close(h.mu.ended)
			h.mu.Unlock()
			return
		}
		piece, err := readPiece(m, files, maxLate-len(part))
		switch m.Kind {
		case kindProgress:
			h.mu.Lock()
			h.mu.progress.Connections = m.Connections
			h.mu.Unlock()
		case kindState:
			if part = append(part, piece...); err != nil {
				part = part[:0] // what is left of it cannot be read
			}
			if !m.More {
				h.received(m.Part, part)
				part = nil
			}
		}
	}
}

// received passes on a part that has come late.
func (h *Inheritance) received(part string, data []byte) {
	h.mu.Lock()
	f := h.mu.late[part]
	h.mu.Unlock()
	if f != nil {
		f(data)
	}
}

// Failed tells the old process why this one cannot serve. A nil inheritance has none.
func (h *Inheritance) Failed(err error) {
	if h == nil {
		return
	}
	_ = h.link.Send(&Message{Kind: kindFailed, Reason: err.Error()}, nil) // it sees the end of this process, too
}

// Draining returns what is known of the old process while it is there.
func (h *Inheritance) Draining() (p Progress, ok bool) {
	if h == nil {
		return p, false
	}
	select {
	case <-h.mu.ended:
		return p, false
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.progress, h.mu.progress.PID != 0
}

// Stop ends the old process at once. What returns is closed when it has left; nil if it
// has already.
func (h *Inheritance) Stop() <-chan struct{} {
	if _, ok := h.Draining(); !ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.mu.stopped {
		h.mu.stopped = true
		_ = h.link.Send(&Message{Kind: kindStop}, nil) // it has left
	}
	return h.mu.ended
}

// Report tells the new process how many connections this one still has.
func (s *Successor) Report(connections int) error {
	return s.Link.Send(&Message{Kind: kindProgress, Connections: connections}, nil)
}

// Send sends a part of the state after this process was replaced. It is for the goroutine
// that calls Report.
func (s *Successor) Send(p Part) error { return sendPart(s.Link, p) }

// Stopped waits for the new process: it returns true when that asks this one to end at
// once, and false when the link has ended.
func (s *Successor) Stopped() bool {
	for {
		m, files, err := s.Link.Receive()
		closeAll(files)
		if err != nil {
			return false
		}
		if m.Kind == kindStop {
			return true
		}
	}
}
