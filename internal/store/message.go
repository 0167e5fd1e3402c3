package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// The limits of messages between machines.
const (
	// MaxMessage is the maximum size of the data of a message in bytes.
	MaxMessage = 1 << 20
	// MessageLife is how long a message is kept if it is not received.
	MessageLife = 30 * time.Second
	// MaxMessages is the maximum number of messages that wait for one machine, and
	// MaxMessageBytes their maximum total size.
	MaxMessages     = 256
	MaxMessageBytes = 16 << 20
)

// Message is a short-lived message from one machine of a group to another. It is delivered at
// most once, and is in no log, export or copy.
type Message struct {
	// ID identifies the message: see NewID.
	ID ID
	// From and To are the names of the machines. If the engine can verify the sender, From is
	// the verified name, whatever the sender sets.
	From, To string
	// Data is the content, up to MaxMessage bytes.
	Data []byte
	// Age is the time between sending and receiving the message, 0 if the engine does not know
	// it. Send ignores it.
	Age time.Duration
}

// Messenger is a store through which machines send messages to each other. Its methods may be called
// by several goroutines at once.
type Messenger interface {
	// Send sends a message. A nil error does not mean that it is received. The error wraps
	// ErrTooLarge if a limit is exceeded, ErrUnavailable if the message cannot be sent now, and
	// ErrNoMessages if this store cannot send messages.
	Send(ctx context.Context, m Message) error

	// Receive yields the messages for a machine, the oldest first, and waits for more until its
	// context ends or the caller leaves the loop; messages may be lost then. If two loops receive
	// for one machine, each message goes to one of them. An error ends the sequence: call Receive
	// again after a pause. The errors are those of Send.
	Receive(ctx context.Context, to string) iter.Seq2[Message, error]
}

// ErrNoMessages means that a store cannot send messages between machines. The error that wraps it
// says what to do.
var ErrNoMessages = errors.New("this store cannot send messages between machines")

// Check returns an error if the names, the identifier or the size of a message are not valid.
func (m *Message) Check() error {
	if id, err := m.ID.Bytes(); err != nil || len(id) == 0 {
		return fmt.Errorf("message to %q: invalid identifier %q", m.To, m.ID)
	}
	for _, name := range []string{m.From, m.To} {
		if err := CheckName(PrefixNode + name); err != nil || name == "" {
			return fmt.Errorf("message from %q to %q: these must be names of nodes", m.From, m.To)
		}
	}
	if len(m.Data) > MaxMessage {
		return fmt.Errorf("a message of %d bytes, at most %d are allowed: %w", len(m.Data), MaxMessage, ErrTooLarge)
	}
	return nil
}

// Mailbox keeps the messages for one machine in memory, within the limits of this package. The
// zero value is empty and ready. It may be used by several goroutines at once, and must not be copied.
type Mailbox struct {
	// Clock is the clock that measures the age of messages. Nil means time.Now.
	Clock func() time.Time

	mu struct {
		sync.Mutex
		waiting []posted // oldest first
		bytes   int
		arrived chan struct{} // closed when the next message arrives; nil if no one waits
	}
}

type posted struct {
	Message
	at time.Time
}

func (b *Mailbox) now() time.Time {
	if b.Clock != nil {
		return b.Clock()
	}
	return time.Now()
}

// Put adds a message, whose data belongs to the mailbox from then on. The error wraps ErrUnavailable
// if the mailbox is full.
func (b *Mailbox) Put(m Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.expireLocked(now)
	if len(b.mu.waiting) >= MaxMessages || b.mu.bytes+len(m.Data) > MaxMessageBytes {
		return fmt.Errorf("%w: %d messages wait for %s already", ErrUnavailable, len(b.mu.waiting), m.To)
	}
	b.mu.waiting = append(b.mu.waiting, posted{m, now})
	b.mu.bytes += len(m.Data)
	if b.mu.arrived != nil {
		close(b.mu.arrived)
		b.mu.arrived = nil
	}
	return nil
}

// expireLocked drops messages that are too old.
func (b *Mailbox) expireLocked(now time.Time) {
	for len(b.mu.waiting) > 0 && now.Sub(b.mu.waiting[0].at) > MessageLife {
		b.nextLocked()
	}
}

// nextLocked removes the oldest message.
func (b *Mailbox) nextLocked() posted {
	p := b.mu.waiting[0]
	b.mu.waiting[0] = posted{}
	if b.mu.waiting = b.mu.waiting[1:]; len(b.mu.waiting) == 0 {
		b.mu.waiting = nil
	}
	b.mu.bytes -= len(p.Data)
	return p
}

// nextMessage returns the oldest message, or what is closed when there is one.
func (b *Mailbox) nextMessage() (m Message, ok bool, arrived <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.expireLocked(now)
	if len(b.mu.waiting) > 0 {
		p := b.nextLocked()
		p.Age = now.Sub(p.at)
		return p.Message, true, nil
	}
	if b.mu.arrived == nil {
		b.mu.arrived = make(chan struct{})
	}
	return Message{}, false, b.mu.arrived
}

// Receive yields the messages, and waits for more until ctx ends, whose error is the last thing it
// yields, or the loop is left.
func (b *Mailbox) Receive(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for ctx.Err() == nil {
			m, ok, arrived := b.nextMessage()
			if ok {
				if !yield(m, nil) {
					return
				}
				continue
			}
			select {
			case <-arrived:
			case <-ctx.Done():
			}
		}
		yield(Message{}, ctx.Err())
	}
}
