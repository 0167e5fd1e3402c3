package accesslog

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// flush passes buffers that are not full to the writer, a short time after
// their first record. It never waits for the disk, so it can report a writer
// that does.
func (l *Log) flush() {
	defer close(l.flushed)
	timer := time.NewTimer(flushDelay)
	timer.Stop()
	var told uint64
	for {
		select {
		case <-l.wake:
			timer.Reset(flushDelay)
			select {
			case <-timer.C:
			case <-l.stop:
			}
			l.collect()
			told = l.tellLost(told)
		case <-l.stop:
			l.collectLast()
			l.tellLost(told)
			return
		}
	}
}

// collect passes all buffers with records to the writer. What the writer
// cannot accept stays for the next time.
func (l *Log) collect() {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		if len(s.mu.buf) > 0 && !l.handLocked(s) {
			l.wakeAgain()
		}
		s.mu.Unlock()
	}
}

// wakeAgain lets flush come back to a buffer that it could not hand over.
func (l *Log) wakeAgain() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// collectLast closes the shards, hands over what is in them, waiting for the
// writer if it must, and ends the writer.
func (l *Log) collectLast() {
	defer close(l.full)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		buf := s.mu.buf
		s.mu.buf, s.mu.closed = nil, true
		s.mu.Unlock()
		if len(buf) == 0 {
			continue
		}
		select {
		case l.full <- buf:
		case <-deadline.C:
			l.unwritten.Add(lines(buf))
			deadline.Reset(0)
		}
	}
}

// tellLost logs once that records are being dropped, and once how many it
// were.
func (l *Log) tellLost(told uint64) uint64 {
	var lost uint64
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		lost += s.mu.lost
		s.mu.Unlock()
	}
	if lost == told {
		return told
	}
	l.app.Warn("access log drops records: the disk or pipe is too slow", "path", l.path, "dropped", lost)
	return lost
}

// write is the one goroutine that writes. It ends when full is closed.
func (l *Log) write() {
	defer close(l.written)
	failing := false
	for {
		select {
		case buf, ok := <-l.full:
			if !ok {
				l.writeLate(failing)
				return
			}
			failing = l.writeBuffer(buf, failing)
		case result := <-l.reopen:
			failing = l.drain(failing)
			result <- l.openAgain()
		}
	}
}

// writeLate writes what was recorded since the shards were closed. From then on the
// recording goroutine writes.
func (l *Log) writeLate(failing bool) {
	l.late.Lock()
	defer l.late.Unlock()
	if len(l.late.lines) > 0 {
		l.writeBuffer(l.late.lines, failing)
	}
	l.late.ended, l.late.lines = true, nil
}

// drain writes the waiting buffers, so that they are in the file that is
// about to be closed.
func (l *Log) drain(failing bool) bool {
	l.collect()
	for {
		select {
		case buf, ok := <-l.full:
			if !ok {
				return failing
			}
			failing = l.writeBuffer(buf, failing)
		default:
			return failing
		}
	}
}

// writeBuffer writes one buffer and releases it. It returns whether writing
// failed, which it logs once.
func (l *Log) writeBuffer(buf []byte, failing bool) bool {
	err := l.output.write(buf)
	if err != nil {
		l.unwritten.Add(lines(buf))
		if !failing {
			l.app.Error("access log cannot be written, records are dropped", "path", l.path, "error", err)
		}
	} else if failing {
		l.app.Info("access log is written again", "path", l.path, "lost", l.unwritten.Load())
	}
	if cap(buf) <= 2*bufferSize {
		select {
		case l.spare <- buf[:0]:
		default:
		}
	}
	return err != nil
}

// openAgain replaces the file by the one that has its name now.
func (l *Log) openAgain() error {
	file, err := openPath(l.path)
	if err != nil {
		return fmt.Errorf("reopen access log: %w", err)
	}
	old := l.output.file
	l.output = output{file: file}
	return old.Close()
}

// lines counts the records in a buffer.
func lines(buf []byte) uint64 { return uint64(bytes.Count(buf, []byte{'\n'})) }

// output is the file that lines go to.
type output struct {
	file *os.File
	// broken says that the last write ended within a line.
	broken bool
}

// write writes whole lines. After a write that ended within a line, it ends
// that line first.
func (o *output) write(buf []byte) error {
	if o.broken {
		if _, err := o.file.Write([]byte{'\n'}); err != nil {
			return err
		}
		o.broken = false
	}
	n, err := o.file.Write(buf)
	if err != nil && n > 0 {
		o.broken = buf[n-1] != '\n'
	}
	return err
}

// close closes the file unless it is standard output or standard error.
func (o *output) close() error {
	if o.file == os.Stdout || o.file == os.Stderr {
		return nil
	}
	return o.file.Close()
}

func isStandard(path string) bool { return path == "" || path == Stdout || path == Stderr }

// openPath opens a log file for appending.
func openPath(path string) (*os.File, error) {
	switch path {
	case Stdout, "":
		return os.Stdout, nil
	case Stderr:
		return os.Stderr, nil
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|noWait, 0o640)
}
