package http2

// Streams holds the open streams of a connection by their numbers, which rise. The
// zero value is empty. It belongs to one goroutine at a time.
type Streams[S any] struct {
	list []Open[S]
}

// Open is an open stream and its number.
type Open[S any] struct {
	ID     uint32
	Stream S
}

// keepStreams is for how many streams memory is kept when none is left.
const keepStreams = 16

// All returns the open streams in the order of their numbers. It is a view: it
// changes when one is added or removed.
func (t *Streams[S]) All() []Open[S] { return t.list }

// Len returns the number of open streams.
func (t *Streams[S]) Len() int { return len(t.list) }

// Add adds a stream, whose number is larger than all before.
func (t *Streams[S]) Add(id uint32, s S) { t.list = append(t.list, Open[S]{id, s}) }

// Get returns the stream with a number, or the zero S.
func (t *Streams[S]) Get(id uint32) (s S) {
	if i, ok := t.find(id); ok {
		return t.list[i].Stream
	}
	return s
}

// Remove removes the stream with a number, and reports whether there was one.
func (t *Streams[S]) Remove(id uint32) bool {
	i, ok := t.find(id)
	if !ok {
		return false
	}
	n := i + copy(t.list[i:], t.list[i+1:])
	t.list[n] = Open[S]{}
	if t.list = t.list[:n]; n == 0 && cap(t.list) > keepStreams {
		t.list = nil
	}
	return true
}

// find returns the index of the stream with this number, or where it would be
// inserted.
func (t *Streams[S]) find(id uint32) (int, bool) {
	lo, hi := 0, len(t.list)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.list[mid].ID < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(t.list) && t.list[lo].ID == id
}
