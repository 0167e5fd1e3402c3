package disk

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long a file must be quiet before it is read: editors write
// in several steps.
const settleTime = 50 * time.Millisecond

// lookInterval is how often the file is checked on systems and network file systems without
// notifications.
const lookInterval = 5 * time.Second

// Watch calls changed when the documents may have changed since it was called last,
// until ctx ends, one call at a time; the first comes soon. It watches the directory:
// editors, and orchestrators that swap links, put another file in the place of the one
// that was read. Other files of the directory may change as often as they like.
func (s *Source) Watch(ctx context.Context, changed func()) {
	events, closeWatch := s.subscribe()
	defer closeWatch()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	// The first look finds what changed since the file was read at the start.
	settled := time.NewTimer(0)
	defer settled.Stop()
	var seen stamps
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				events = nil
				continue
			}
		case <-look.C:
		case <-settled.C:
			changed()
			continue
		}
		if now := s.stamps(); !now.are(seen) {
			seen = now
			settled.Reset(settleTime)
		}
	}
}

// subscribe returns the system's events for the file's directory. Without them the file is
// polled, which is logged once.
func (s *Source) subscribe() (<-chan fsnotify.Event, func()) {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		_, dir, _ := paths(s.path)
		if dir == "" {
			dir = s.path
		}
		if err = w.Add(dir); err != nil {
			w.Close()
		}
	}
	if err != nil {
		s.log.Warn("file change notification is unavailable, polling the configuration file", "every", lookInterval.String(), "error", err)
		return nil, func() {}
	}
	go func() {
		for range w.Errors {
			// Lost events only delay a change until the next look.
		}
	}()
	return w.Events, func() { w.Close() }
}

// stamps are those of all documents, by name. No documents are none.
type stamps map[string]stamp

func (s *Source) stamps() stamps {
	names, _, _ := paths(s.path) // if there are none, Read reports why
	all := make(stamps, len(names))
	for _, name := range names {
		all[name] = stampOf(name)
	}
	return all
}

// are reports whether no document has changed between two looks.
func (s stamps) are(t stamps) bool { return s != nil && t != nil && maps.EqualFunc(s, t, stamp.is) }

// stamp identifies a version of a file without reading it.
type stamp struct {
	info os.FileInfo // nil if there is no file
	file string      // the target of links
}

func stampOf(name string) stamp {
	info, err := os.Stat(name)
	if err != nil {
		return stamp{}
	}
	s := stamp{info: info}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		s.file = real
	}
	return s
}

// is reports whether the file has not changed between two looks.
func (s stamp) is(t stamp) bool {
	if s.info == nil || t.info == nil {
		return s.info == t.info
	}
	return s.file == t.file && os.SameFile(s.info, t.info) &&
		s.info.Size() == t.info.Size() && s.info.ModTime().Equal(t.info.ModTime())
}
