package upgrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"headgate/internal/file"
)

// Protocol is the version of the messages that this program sends, ReadableFrom the oldest
// that it reads. A process reads those of another whose version is at least its own
// ReadableFrom, and the other way round: with each release that adds a version, up- and downgrades by one
// release work. Unknown fields, kinds of information and parts of the state are ignored.
const (
	Protocol     = 1
	ReadableFrom = 1
)

// The kinds of messages. The old process sends files, state, begin and acknowledged;
// the new one hello, then serving or failed. Later the old process sends progress and
// state, the new one stop.
const (
	kindHello        = "hello"
	kindFiles        = "files"
	kindState        = "state"
	kindBegin        = "begin"
	kindServing      = "serving"
	kindFailed       = "failed"
	kindAcknowledged = "acknowledged"
	kindProgress     = "progress"
	kindStop         = "stop"
)

// Message is one message between two processes.
type Message struct {
	// Kind says what it is.
	Kind string `json:"kind"`
	// Protocol and ReadableFrom are in hello and begin.
	Protocol     int `json:"version,omitempty"`
	ReadableFrom int `json:"readable_from,omitempty"`
	// Version, Generation and PID are those of the sender, in hello and begin.
	Version    string `json:"program,omitempty"`
	Generation int    `json:"generation,omitempty"`
	PID        int    `json:"pid,omitempty"`
	// Names are those of the descriptors sent with the message, in their order.
	Names []string `json:"names,omitempty"`
	// Part is the name of a part of the state, Data a piece of it, and More says that
	// another piece follows.
	Part string `json:"part,omitempty"`
	Data []byte `json:"data,omitempty"`
	More bool   `json:"more,omitempty"`
	// Size is how many bytes of a part are in the file that comes with the message, which
	// then has no Data.
	Size int `json:"size,omitempty"`
	// Reason says why a process cannot serve.
	Reason string `json:"reason,omitempty"`
	// Connections is how many connections the old process still has.
	Connections int `json:"connections,omitempty"`
}

// The bounds of a message.
const (
	// maxFiles is how many descriptors a message carries: SCM_MAX_FD of Linux.
	maxFiles = 253
	// maxPiece is how much of a part is in one message, in bytes.
	maxPiece = 24 << 10
	// maxMessage is the longest message that is read. A piece is written as base64.
	maxMessage = 64 << 10
	// maxParts and maxState bound what a new process reads: parts, and bytes in all.
	maxParts = 256
	maxState = 256 << 20
	// maxLate bounds one part that is sent after the new process serves, in bytes.
	maxLate = 32 << 20
)

// File is a descriptor with the name that the new process finds it by.
type File struct {
	Name string
	*os.File
}

// Link is one end of the connection between an old and a new process. One goroutine
// sends and one receives at a time.
type Link interface {
	// Send sends a message with descriptors, which stay open here.
	Send(m *Message, files []*os.File) error
	// Receive waits for the next message. The caller closes the descriptors.
	Receive() (*Message, []*os.File, error)
	// Close closes this end.
	Close() error
}

func encode(m *Message) ([]byte, error) { return json.Marshal(m) }

// decode reads a message. It ignores unknown fields.
func decode(b []byte) (*Message, error) {
	var m Message
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("read a message of the other process: %w", err)
	}
	return &m, nil
}

// Readable reports whether this program and one with other versions read each other's
// messages.
func Readable(version, readableFrom int) bool {
	return version >= ReadableFrom && readableFrom <= Protocol
}

// compatible reports why a process that introduced itself cannot be spoken to.
func compatible(m *Message) error {
	if !Readable(m.Protocol, m.ReadableFrom) {
		return fmt.Errorf("headgate %s speaks the upgrade protocol %d (readable from %d) and this one %d (readable from %d): restart instead",
			m.Version, m.Protocol, m.ReadableFrom, Protocol, ReadableFrom)
	}
	return nil
}

// sendPart sends a part of the state: a large one in a file in memory, so that the time it
// takes does not depend on how often both processes get a processor, otherwise in messages.
func sendPart(l Link, p Part) error {
	if len(p.Data) > maxPiece {
		if f, err := memoryFile(p.Data); err == nil {
			defer f.Close()
			return l.Send(&Message{Kind: kindState, Part: p.Name, Size: len(p.Data)}, []*os.File{f})
		}
	}
	for data, more := p.Data, true; more; {
		piece := data[:min(len(data), maxPiece)]
		data = data[len(piece):]
		more = len(data) > 0
		if err := l.Send(&Message{Kind: kindState, Part: p.Name, Data: piece, More: more}, nil); err != nil {
			return err
		}
	}
	return nil
}

// memoryFile returns a file in memory with data.
func memoryFile(data []byte) (*os.File, error) {
	f, err := file.Memory()
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readPiece returns the piece of a part that came with a message, of at most limit bytes. It
// closes the files of the message.
func readPiece(m *Message, files []*os.File, limit int) ([]byte, error) {
	defer closeAll(files)
	switch {
	case m.Size < 0 || max(m.Size, len(m.Data)) > limit:
		return nil, errors.New("the state that was handed over is too large")
	case m.Size == 0:
		return m.Data, nil
	case len(files) != 1:
		return nil, fmt.Errorf("the part %q of the state came without its file; the limit of open files may be too low", m.Part)
	}
	data := make([]byte, m.Size)
	if _, err := files[0].ReadAt(data, 0); err != nil {
		return nil, fmt.Errorf("read the part %q of the state: %w", m.Part, err)
	}
	return data, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// sendHandover sends files in batches, then the parts of the state, then begin.
func sendHandover(l Link, o Offer, h *Handover) error {
	for rest := h.Files; len(rest) > 0; {
		batch := rest[:min(len(rest), maxFiles)]
		rest = rest[len(batch):]
		m := &Message{Kind: kindFiles}
		var files []*os.File
		for _, f := range batch {
			m.Names, files = append(m.Names, f.Name), append(files, f.File)
		}
		if err := l.Send(m, files); err != nil {
			return err
		}
	}
	for _, p := range h.State {
		if err := sendPart(l, p); err != nil {
			return err
		}
	}
	return l.Send(&Message{Kind: kindBegin, Protocol: Protocol, ReadableFrom: ReadableFrom, Version: o.Version, Generation: o.Generation, PID: o.PID}, nil)
}
