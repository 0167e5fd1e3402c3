package basicauth

import (
	"slices"
	"sync"
	"time"

	"headgate/internal/exchange"
)

// The bounds of the verifier: questions that wait, those of one client, and how many
// requests with one pair wait for its one answer.
const (
	maxWaiting   = 8 * maxOfClient
	maxOfClient  = 64
	maxFollowers = 256
	// busyFor is how long a client is asked to wait that found the verifier full.
	busyFor = time.Second
)

// verifier lets few passwords be hashed at a time. Clients take turns, however many
// questions each has, and those that sent a wrong pair of late come after those
// that did not. Requests with the same pair from the same client are one question.
// Everything is bounded: a client that finds no room is asked to come back.
type verifier struct {
	slots int
	mu    struct {
		sync.Mutex
		running int // goroutines that hash
		waiting int // questions in lines
		asked   map[asked]*flight
		lines   map[uint64]*line // by client
		order   [2][]*line       // whose turn it is; clean clients, then others
	}
}

// asked is what makes two questions one.
type asked struct {
	mark   mark
	client uint64
}

// line are the questions of a client that wait.
type line struct {
	client  uint64
	clean   bool
	flights []*flight
}

// flight is a question on its way. Its verdict stands when done is closed.
type flight struct {
	question *question
	answer   func(*question) verdict
	done     chan struct{}
	verdict  verdict
	wanted   int // requests that wait for it; guarded by the verifier's mu
	started  bool
}

func (d *verifier) open(slots int) {
	d.slots = slots
	d.mu.asked, d.mu.lines = map[asked]*flight{}, map[uint64]*line{}
}

// verify waits for the verdict on a question, which answer gives when its turn has
// come.
func (d *verifier) verify(ex *exchange.Exchange, q *question, answer func(*question) verdict) verdict {
	f := d.join(q, answer)
	if f == nil {
		return verdict{wait: busyFor}
	}
	tick := time.NewTicker(lookUp)
	defer tick.Stop()
	for waited := time.Duration(0); ; waited += lookUp {
		select {
		case <-f.done:
			return f.verdict
		case <-tick.C:
		}
		if gone := ex.Front.Gone(); gone || waited >= longestWait {
			d.leave(f)
			return verdict{gone: gone, wait: busyFor}
		}
	}
}

// join returns the flight of a question: one that is under way, or a new one. It
// is nil when there is no room.
func (d *verifier) join(q *question, answer func(*question) verdict) *flight {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := asked{q.mark, q.client}
	if f := d.mu.asked[key]; f != nil {
		if f.wanted >= maxFollowers {
			return nil
		}
		f.wanted++
		return f
	}
	f := &flight{question: q.copied(), answer: answer, done: make(chan struct{}), wanted: 1}
	if d.mu.running < d.slots {
		d.mu.running++
		f.started = true
		d.mu.asked[key] = f
		go d.work(f)
		return f
	}
	if !d.queueLocked(f) {
		return nil
	}
	d.mu.asked[key] = f
	return f
}

// queueLocked puts a flight at the end of its client's line.
func (d *verifier) queueLocked(f *flight) bool {
	client := f.question.client
	l := d.mu.lines[client]
	if l != nil && len(l.flights) >= maxOfClient || d.mu.waiting >= maxWaiting && !d.makeRoomLocked(l) {
		return false
	}
	if l == nil {
		l = &line{client: client, clean: f.question.clean}
		d.mu.lines[client] = l
		d.mu.order[l.class()] = append(d.mu.order[l.class()], l)
	}
	l.flights = append(l.flights, f)
	d.mu.waiting++
	return true
}

// class is the order that a line belongs to.
func (l *line) class() int {
	if l.clean {
		return 0
	}
	return 1
}

// makeRoomLocked sends away the last question of the client that has the most of
// them, if those are more than the newcomer's line has.
func (d *verifier) makeRoomLocked(newcomer *line) bool {
	var longest *line
	for _, l := range d.mu.lines {
		if longest == nil || len(l.flights) > len(longest.flights) {
			longest = l
		}
	}
	has := 0
	if newcomer != nil {
		has = len(newcomer.flights)
	}
	if longest == nil || len(longest.flights) < has+2 {
		return false
	}
	last := len(longest.flights) - 1
	f := longest.flights[last]
	longest.flights = longest.flights[:last]
	d.mu.waiting--
	d.endLocked(f, verdict{wait: busyFor})
	return true
}

// leave records that one request less waits for a flight. Without waiters it is dropped
// when its turn comes, or now if it is still in a queue.
func (d *verifier) leave(f *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.wanted--; f.wanted > 0 || f.started || d.mu.asked[f.key()] != f {
		return
	}
	l := d.mu.lines[f.question.client]
	for i, other := range l.flights {
		if other == f {
			l.flights = slices.Delete(l.flights, i, i+1)
			d.mu.waiting--
			break
		}
	}
	if len(l.flights) == 0 {
		delete(d.mu.lines, l.client)
		order := &d.mu.order[l.class()]
		*order = slices.DeleteFunc(*order, func(other *line) bool { return other == l })
	}
	d.endLocked(f, verdict{wait: busyFor})
}

func (f *flight) key() asked { return asked{f.question.mark, f.question.client} }

// endLocked gives the verdict on a flight.
func (d *verifier) endLocked(f *flight, v verdict) {
	f.verdict = v
	delete(d.mu.asked, f.key())
	close(f.done)
}

// work answers a question, and then those whose turn comes, until none waits.
func (d *verifier) work(f *flight) {
	for f != nil {
		v := f.answer(f.question)
		d.mu.Lock()
		d.endLocked(f, v)
		if f = d.nextLocked(); f == nil {
			d.mu.running--
		}
		d.mu.Unlock()
	}
}

// nextLocked takes the question whose turn it is out of its line, and puts the
// line at the end of its order. No line in an order is empty.
func (d *verifier) nextLocked() *flight {
	for class := range d.mu.order {
		if len(d.mu.order[class]) == 0 {
			continue
		}
		l := d.mu.order[class][0]
		d.mu.order[class] = d.mu.order[class][1:]
		f := l.flights[0]
		l.flights = l.flights[1:]
		d.mu.waiting--
		f.started = true
		if len(l.flights) > 0 {
			d.mu.order[class] = append(d.mu.order[class], l)
		} else {
			delete(d.mu.lines, l.client)
		}
		return f
	}
	return nil
}
