// Package accesslog writes one line for each finished exchange, as a JSON
// object or in the combined form of Apache and nginx, to a file, to standard
// output or to standard error.
//
// Open starts a Log and Log.Record is assigned to exchange.Pipeline.Done.
// Record encodes into a buffer that is usually used only by the current
// processor; it makes no system call, does not wait for the disk and does not
// allocate. Buffers are written when they are full, and otherwise a quarter
// of a second after their first record. Lines of different connections may
// therefore not be in the order of their times.
//
// Memory is bounded: when the disk or the reader of a pipe stalls, records are
// dropped and counted, and requests go on. The package does not rotate files;
// Reopen is for those who do.
package accesslog

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// The bounds of a log's memory and of its waiting.
const (
	// bufferSize is the length at which a buffer is passed to the writer. A
	// buffer has space for another ordinary record.
	bufferSize = 64 << 10
	bufferRoom = 8 << 10
	// queueSize is how many full buffers may wait for the writer.
	queueSize = 64
	// spareSize is how many empty buffers are kept; a log with a shorter queue keeps
	// fewer.
	spareSize = 16
	// maxShards bounds the number of buffers that are being filled.
	maxShards = 64
	// flushDelay is how long a record may stay in a buffer that is not full.
	flushDelay = 250 * time.Millisecond
	// patience is how long Close, Retire and Reopen wait for a stalled disk.
	patience = 5 * time.Second
)

// The formats of a line.
const (
	JSON     = "json"
	Combined = "combined"
)

// The paths that are no files.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Config says where and how a Log writes.
type Config struct {
	// Format is JSON or Combined; "" is JSON.
	Format string
	// Path is Stdout, Stderr or the name of a file, which is appended to and
	// made with mode 0640 when it is absent; "" is Stdout.
	Path string
	// Headers are the fields of requests to include in JSON lines.
	Headers []string
	// ResponseHeaders are the fields of responses to include in JSON lines.
	// Pipeline.Logged has to name them.
	ResponseHeaders []string
	// Omit are the fields that a JSON line has not: see Omittable.
	Omit []string
	// Sample is how many percent of the requests that went well are logged; those that
	// did not always are. 0 is all of them, less than 0 none.
	Sample int
	// Queue is how many full buffers may wait for the disk; 0 is 64, which is 4.5 MiB.
	Queue int
}

// Log is an open access log. All methods may be called by several goroutines
// at once.
type Log struct {
	// Constant.
	app    *slog.Logger
	format func(b []byte, ex *exchange.Exchange, c *clock) []byte
	choice choice
	path   string
	// combined is whether lines are in the form of that name.
	combined bool
	pool     sync.Pool // of *shard: hands each processor its own
	shards   []shard

	next    atomic.Uint32 // the next shard of the pool
	full    chan []byte   // from shards to the writer
	spare   chan []byte   // from the writer to shards
	wake    chan struct{} // a shard has its first record
	reopen  chan chan error
	stop    chan struct{}
	flushed chan struct{} // the flusher has ended
	written chan struct{} // the writer has ended
	once    sync.Once

	unwritten atomic.Uint64 // records lost in the writer
	output    output        // owned by write until late.ended, then guarded by late

	late struct {
		sync.Mutex
		ended bool   // the writer has ended
		lines []byte // what it writes last, at most bufferSize
	}
}

// shard is one buffer that is being filled.
type shard struct {
	mu struct {
		sync.Mutex
		buf    []byte
		clock  clock
		lost   uint64
		closed bool
	}
	_ [128]byte // keeps shards on cache lines of their own, and off their neighbours
}

// Open opens the log and starts writing. Dropped records and write errors are
// reported in the application's log, once until it works again. The caller
// ends the log with Close or Retire.
func Open(c Config, app *slog.Logger) (*Log, error) {
	queue := c.Queue
	if queue == 0 {
		queue = queueSize
	}
	l := &Log{
		app:     app,
		path:    c.Path,
		shards:  make([]shard, shardCount()),
		full:    make(chan []byte, queue),
		spare:   make(chan []byte, min(spareSize, queue/4+1)),
		wake:    make(chan struct{}, 1),
		reopen:  make(chan chan error),
		stop:    make(chan struct{}),
		flushed: make(chan struct{}),
		written: make(chan struct{}),
	}
	var err error
	if l.choice, err = newChoice(&c); err != nil {
		return nil, fmt.Errorf("open access log: %w", err)
	}
	switch c.Format {
	case JSON, "":
		l.format = l.choice.appendRecord
	case Combined:
		l.format, l.combined = appendCombined, true
	default:
		return nil, fmt.Errorf("open access log: unknown format %q", c.Format)
	}
	file, err := openPath(c.Path)
	if err != nil {
		return nil, fmt.Errorf("open access log: %w", err)
	}
	l.output.file = file
	l.pool.New = func() any { return l.nextShard() }
	go l.flush()
	go l.write()
	return l, nil
}

// shardCount returns how many buffers are filled at once: a power of two, the
// number of processors and up to twice as many, at most maxShards.
func shardCount() int {
	n := 1
	for n <= runtime.GOMAXPROCS(0) && n < maxShards {
		n *= 2
	}
	return n
}

// nextShard returns the next shard in turn.
func (l *Log) nextShard() *shard {
	return &l.shards[int(l.next.Add(1))&(len(l.shards)-1)]
}

// Record writes the line of a finished exchange. It keeps nothing of ex.
func (l *Log) Record(ex *exchange.Exchange) {
	if l.choice.selects(ex) {
		l.record(ex, nil)
	}
}

// RecordSession writes the line of a connection through a TCP proxy, or of a
// session through a UDP proxy, that has ended. It keeps nothing of p.
func (l *Log) RecordSession(p *exchange.Session) { l.record(nil, p) }

// record writes the line of an exchange or else of a passage.
func (l *Log) record(ex *exchange.Exchange, p *exchange.Session) {
	s := l.lockShard()
	ok := l.recordLocked(s, ex, p)
	s.mu.Unlock()
	l.pool.Put(s)
	if !ok {
		l.recordLate(ex, p)
	}
}

// appendLine appends the line of an exchange or else of a passage.
func (l *Log) appendLine(b []byte, ex *exchange.Exchange, p *exchange.Session, c *clock) []byte {
	switch {
	case p == nil:
		return l.format(b, ex, c)
	case l.combined:
		return appendCombinedSession(b, p, c)
	}
	return appendSession(b, p, c)
}

// lockShard returns the shard of the current processor, locked. A processor
// that finds it locked acquires another and keeps that, so that no two stay
// on one.
func (l *Log) lockShard() *shard {
	s := l.pool.Get().(*shard)
	if !s.mu.TryLock() {
		s = l.nextShard()
		s.mu.Lock()
	}
	return s
}

// recordLocked appends to the buffer of s. It returns false when the log has
// ended.
func (l *Log) recordLocked(s *shard, ex *exchange.Exchange, p *exchange.Session) bool {
	if s.mu.closed {
		return false
	}
	if len(s.mu.buf) >= bufferSize && !l.handLocked(s) {
		s.mu.lost++
		return true
	}
	if len(s.mu.buf) == 0 {
		l.beginLocked(s)
	}
	s.mu.buf = l.appendLine(s.mu.buf, ex, p, &s.mu.clock)
	if len(s.mu.buf) >= bufferSize {
		l.handLocked(s)
	}
	return true
}

// beginLocked prepares s for its first record and notifies the flusher.
func (l *Log) beginLocked(s *shard) {
	if s.mu.buf == nil {
		s.mu.buf = l.spareBuffer()
	}
	s.mu.clock.set()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// handLocked hands the buffer of s to the writer. It returns false when too
// much is waiting there; then the buffer stays.
func (l *Log) handLocked(s *shard) bool {
	select {
	case l.full <- s.mu.buf:
		s.mu.buf = nil
		return true
	default:
		return false
	}
}

// spareBuffer returns an empty buffer.
func (l *Log) spareBuffer() []byte {
	select {
	case b := <-l.spare:
		return b
	default:
		return make([]byte, 0, bufferSize+bufferRoom)
	}
}

// recordLate writes a record of an exchange that ended after the log was retired:
// immediately, because there is no flush any more. If the writer has not written the
// records before it, it writes them, too.
func (l *Log) recordLate(ex *exchange.Exchange, p *exchange.Session) {
	var c clock
	c.set()
	line := l.appendLine(nil, ex, p, &c)
	l.late.Lock()
	defer l.late.Unlock()
	switch {
	case l.late.ended:
		if err := l.output.write(line); err != nil {
			l.unwritten.Add(1)
		}
	case len(l.late.lines)+len(line) > bufferSize:
		l.unwritten.Add(1)
	default:
		l.late.lines = append(l.late.lines, line...)
	}
}

// Lost returns how many records were dropped or could not be written.
func (l *Log) Lost() uint64 {
	n := l.unwritten.Load()
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += s.mu.lost
		s.mu.Unlock()
	}
	return n
}

// Reopen opens the file by its name again, after it was moved away. Records
// until then are in the old file, which is closed when Reopen returns. If the
// file cannot be opened the log keeps the old one. Reopen does nothing for
// standard output and standard error.
func (l *Log) Reopen() error {
	if isStandard(l.path) {
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	result := make(chan error, 1)
	select {
	case l.reopen <- result:
	case <-l.written:
		return fmt.Errorf("reopen access log %s: %w", l.path, os.ErrClosed)
	case <-timer.C:
		return fmt.Errorf("reopen access log %s: the disk does not answer", l.path)
	}
	select {
	case err := <-result:
		return err
	case <-timer.C:
		return fmt.Errorf("reopen access log %s: the disk does not answer", l.path)
	}
}

// Retire writes what is buffered and ends the background work, for a log that
// no current plan uses. Exchanges in progress may still call Record: their
// lines are written at once. The file is closed when the last of them has
// released the log. Retire waits a few seconds for a stalled disk, then
// discards what is left.
func (l *Log) Retire() {
	l.once.Do(func() { close(l.stop) })
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-l.written:
	case <-timer.C:
		l.app.Warn("access log not flushed: the disk or pipe does not respond", "path", l.path)
	}
}

// Close is Retire for the last log of a process: the file is closed too, and
// later records are lost. It returns the error of closing the file.
func (l *Log) Close() error {
	l.Retire()
	select {
	case <-l.written:
	default:
		return fmt.Errorf("close access log %s: the disk or pipe does not answer", l.path)
	}
	l.late.Lock()
	defer l.late.Unlock()
	return l.output.close()
}
