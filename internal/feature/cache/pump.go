package cache

import (
	"errors"
	"io"
	"time"

	"headgate/internal/exchange"
)

// pump reads once from the server. The caller has set pumping.
func (b *body) pump() {
	n, err := b.receive(b.room())
	b.mu.Lock()
	b.mu.size += int64(n)
	ended := err == nil && b.atEnd()
	if ended {
		b.wakeLocked()
	}
	b.mu.Unlock()
	if ended {
		// All is here, and the end is not far.
		n, err = b.receive(make([]byte, 1))
		b.mu.Lock()
		b.mu.size += int64(n)
		b.mu.Unlock()
	}
	b.pumped(err)
}

// receive reads once from the server. The caller has set pumping.
func (b *body) receive(p []byte) (int, error) {
	returned := false
	defer b.endUnless(&returned)
	n, err := b.mu.source.body().Read(p)
	returned = true
	return n, err
}

// atHand reports whether receive would not wait. The caller has set pumping.
func (b *body) atHand() bool {
	returned := false
	defer b.endUnless(&returned)
	ready := b.mu.source.body().Ready()
	returned = true
	return ready
}

// endUnless ends a body whose reader panics: otherwise its other readers would wait
// forever.
func (b *body) endUnless(returned *bool) {
	if !*returned {
		b.end(errPanicked)
	}
}

// room returns memory behind the present bytes. Only the pump changes pieces.
func (b *body) room() []byte {
	b.mu.Lock()
	end := b.mu.first
	for i := range b.mu.pieces {
		end += int64(len(b.mu.pieces[i].mem))
	}
	size, passing, pieces := b.mu.size, b.mu.passing, len(b.mu.pieces)
	b.mu.Unlock()
	if end > size {
		last := b.mu.pieces[pieces-1].mem
		return last[int64(len(last))-(end-size):]
	}
	want := int64(b.store.arena.largest)
	switch {
	case b.length >= 0:
		want = min(want, b.length-size)
	case size == 0:
		want = min(want, firstPiece)
	}
	if want <= 0 {
		return make([]byte, 1) // for the end, or for more than was announced
	}
	x, ok := piece{}, false
	if !passing && size < b.limit {
		x, ok = b.store.alloc(int(want), b.owner)
	}
	if !ok {
		x = piece{mem: make([]byte, want)}
	}
	b.mu.Lock()
	b.mu.pieces = append(b.mu.pieces, x)
	b.mu.passing = b.mu.passing || !ok
	b.mu.Unlock()
	if !ok && !passing {
		b.giveUp()
	}
	return x.mem
}

// giveUp removes an entry that cannot be stored from the index.
func (b *body) giveUp() {
	b.mu.Lock()
	e := b.mu.entry
	b.mu.Unlock()
	b.store.unlink(e)
}

// state is what can be said of a body when an entry with it is put into the index.
type state uint8

const (
	coming state = iota // the end stores the entry, or removes it from the index
	whole
	lost // it is incomplete, or too large: it cannot be read from the start
	late // what the index has, or has given up, is newer
)

// adopt makes an entry with this body the one that the end of the body acts on, if the
// end is still to come. The entry before, if any, is returned for release. Of a body
// that others may know the caller holds the lock of the entry's shard: of several
// entries, the last in the index is adopted last.
func (b *body) adopt(e *entry) (state, *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.whole.Load():
		return whole, nil
	case b.mu.err != nil, b.mu.passing:
		return lost, nil
	case b.mu.entry == e:
		return coming, nil
	}
	before := b.mu.entry
	e.hold()
	b.mu.entry = e
	return coming, before
}

// pumped ends a turn at the server, which returned err.
func (b *body) pumped(err error) {
	if err == io.EOF && b.length >= 0 && b.mu.size != b.length {
		err = &exchange.Error{Reason: exchange.UpstreamReset, Err: io.ErrUnexpectedEOF}
	}
	if err == nil && b.length >= 0 && b.mu.size > b.length {
		err = &exchange.Error{Reason: exchange.UpstreamInvalid, Err: errors.New("the body is longer than was announced")}
	}
	if err != nil {
		b.end(err)
		return
	}
	b.mu.Lock()
	b.mu.pumping = false
	alone := len(b.mu.readers) == 0
	passing := b.mu.passing
	b.wakeLocked()
	if alone && passing {
		b.mu.pumping = true
	}
	b.mu.Unlock()
	if alone && passing {
		b.end(errAbandoned)
	}
}

// end ends a body: complete with io.EOF, else incomplete. The caller has set pumping. It
// continues if it was abandoned and a new reader has joined.
func (b *body) end(err error) {
	if err == io.EOF {
		b.compact()
	}
	b.mu.Lock()
	if err == errAbandoned && len(b.mu.readers) > 0 {
		b.mu.pumping = false
		b.wakeLocked()
		b.mu.Unlock()
		return
	}
	stored := err == io.EOF && !b.mu.passing && b.mu.size <= b.limit
	if stored {
		b.whole.Store(true)
	} else {
		b.mu.err = err // io.EOF, if only the end of it is here
	}
	source, e := b.mu.source, b.mu.entry
	b.mu.source, b.mu.entry, b.mu.readers, b.mu.pumping = nil, nil, nil, false
	b.wakeLocked()
	b.mu.Unlock()
	source.close()
	if stored {
		b.store.enqueue(e)
		b.store.combine(e)
	} else {
		b.store.unlink(e)
	}
	e.release()
}

// compact puts a short body of unknown length into one piece of its size.
func (b *body) compact() {
	b.mu.Lock()
	size, old, passing := b.mu.size, b.mu.pieces, b.mu.passing
	b.mu.Unlock()
	if passing || b.length >= 0 || size > int64(b.store.arena.largest) || size > b.limit {
		return
	}
	var one []piece // none for an empty body
	if size > 0 {
		if len(old) == 1 && b.store.arena.classOf(int(size)) == b.store.arena.classOf(len(old[0].mem)) {
			return
		}
		x, ok := b.store.alloc(int(size), b.owner)
		if !ok {
			return
		}
		one = []piece{x}
	}
	b.mu.Lock()
	for _, x := range one {
		b.copyLocked(x.mem, 0)
	}
	b.mu.pieces = one
	b.mu.Unlock()
	for _, p := range old {
		b.store.arena.release(p)
	}
}

// readAhead reads what is at hand of a body that has just begun. Most are whole then.
func (b *body) readAhead() {
	for {
		b.mu.Lock()
		if b.mu.pumping || b.endedLocked() || b.mu.passing || b.mu.size >= atOnce && b.mu.size != b.length {
			b.mu.Unlock()
			return
		}
		b.mu.pumping = true
		b.mu.Unlock()
		if !b.atEnd() && !b.atHand() {
			b.mu.Lock()
			b.mu.pumping = false
			b.wakeLocked()
			b.mu.Unlock()
			return
		}
		b.pump()
	}
}

// atEnd reports whether all announced bytes are here, and only the end is not.
func (b *body) atEnd() bool { return b.length >= 0 && b.mu.size == b.length }

// finish reads the rest without readers. The caller has set pumping.
func (b *body) finish() {
	worked := time.Duration(0)
	for began := time.Now(); ; {
		now := time.Now()
		if b.store.closed.Load() || now.Sub(began) > finishing || worked > busy {
			b.end(errAbandoned)
			return
		}
		atHand := b.atHand()
		b.pump()
		if atHand {
			worked += time.Since(now)
		}
		b.mu.Lock()
		if b.endedLocked() || b.mu.pumping || len(b.mu.readers) > 0 {
			b.mu.Unlock()
			return // who reads goes on
		}
		b.mu.pumping = true
		b.mu.Unlock()
	}
}
