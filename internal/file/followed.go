package file

import (
	"os"
	"sync/atomic"
	"time"
)

// Wanted is a file that settings name.
type Wanted struct {
	// Name is the path as the settings have it.
	Name string
	// Max is how many bytes it may have, and TooLarge says what a larger one is.
	Max      int64
	TooLarge string
}

// Followed is a file that was read completely, and is read again on request when it has
// changed. It is safe for concurrent use.
type Followed struct {
	// constant
	name, tooLarge string
	max            int64

	content atomic.Pointer[Content]
}

// Content is what a file held at one time. It is not changed: two moments with
// the same Content are the same file.
type Content struct {
	// Data is what the file holds.
	Data  []byte
	stamp Stamp
}

// Stamp tells one state of a file from another. Stamps are compared with ==.
type Stamp struct {
	size  int64
	moved time.Time
}

// StampOf returns the stamp of a file as it is now; that of one which cannot be looked at is
// always the same.
func StampOf(name string) Stamp {
	info, err := os.Stat(name)
	if err != nil {
		return Stamp{size: -1}
	}
	return Stamp{info.Size(), info.ModTime()}
}

// Follow loads a file as Read does.
func Follow(name string, max int64, tooLarge string) (*Followed, error) {
	f := &Followed{name: name, tooLarge: tooLarge, max: max}
	c, err := f.read()
	if err != nil {
		return nil, err
	}
	f.content.Store(c)
	return f, nil
}

// read reads the file. The stamp is taken before, so that a change while it is
// read is found by the next look.
func (f *Followed) read() (*Content, error) {
	s := StampOf(f.name)
	data, err := Read(f.name, f.max, f.tooLarge)
	return &Content{data, s}, err
}

// Content returns the file as it was when it was loaded last. It reads nothing.
func (f *Followed) Content() *Content { return f.content.Load() }

// Refresh takes the file up if it has changed. The error says why it could not
// be; the content stays then.
func (f *Followed) Refresh() error {
	if StampOf(f.name) == f.content.Load().stamp {
		return nil
	}
	c, err := f.read()
	if err == nil {
		f.content.Store(c)
	}
	return err
}
