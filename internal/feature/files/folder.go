package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// folder opens files below a root. The root is opened with the first request and again
// after a while, so that a folder which replaces it is used. It outlives plans, and is safe
// for concurrent use.
type folder struct {
	path string
	open *openFiles
	root atomic.Pointer[opened]
	mu   struct {
		sync.Mutex
		retired bool
	}
}

// opened is a root and when it was opened.
type opened struct {
	*os.Root
	at int64
}

// rootAge is how long a root is used before its path is opened again.
const rootAge = int64(time.Second)

func newFolder(path string, open *openFiles) *folder { return &folder{path: path, open: open} }

// Retire closes the root. Requests in progress keep their files.
func (d *folder) Retire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.retired = true
	if old := d.root.Swap(nil); old != nil {
		old.Close()
	}
}

// current returns the root, opened not longer ago than rootAge.
func (d *folder) current() (*os.Root, error) {
	now := exchange.Now()
	if r := d.root.Load(); r != nil && now-r.at < rootAge {
		return r.Root, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.root.Load()
	if old != nil && now-old.at < rootAge {
		return old.Root, nil
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, &rootError{err}
	}
	if d.mu.retired {
		return root, nil // closed by the garbage collector: a request or two
	}
	d.root.Store(&opened{root, now})
	if old != nil {
		old.Close()
	}
	return root, nil
}

// rootError says that the root itself cannot be opened.
type rootError struct{ error }

func (e *rootError) Unwrap() error { return e.error }

// file opens the name and returns it with what is known of it. It never waits for the other
// side of a pipe. The error is errBusy if too many files are open.
func (d *folder) file(name string) (*os.File, fs.FileInfo, error) {
	if !d.open.acquire() {
		return nil, nil, errBusy
	}
	f, info, err := d.openNow(name)
	if err != nil {
		d.open.release()
	}
	return f, info, err
}

func (d *folder) openNow(name string) (*os.File, fs.FileInfo, error) {
	for again := false; ; again = true {
		root, err := d.current()
		if err != nil {
			return nil, nil, err
		}
		f, err := root.OpenFile(name, openFlags, 0)
		if errors.Is(err, os.ErrClosed) && !again {
			continue // another request has replaced the root
		}
		if err != nil {
			return nil, nil, err
		}
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, nil, err
		}
		return f, info, nil
	}
}

// close closes what file returned.
func (d *folder) close(f *os.File) {
	f.Close()
	d.open.release()
}

// lookup returns what is known of an entry of a folder, of the file that it leads to if it
// is a link.
func (d *folder) lookup(dir, name string) (fs.FileInfo, error) {
	root, err := d.current()
	if err != nil {
		return nil, err
	}
	return root.Stat(path.Join(dir, name))
}

// errBusy says that too many files are open.
var errBusy = errors.New("too many files are open")

// openFiles bounds how many files are open at once in all folders together, so that clients
// that read slowly leave descriptors for connections.
type openFiles struct {
	max  int64
	open atomic.Int64
}

// shared returns the bound of the process.
func shared(env exchange.Env) *openFiles {
	return exchange.Keep(env, "open files", nil, func() *openFiles { return &openFiles{max: maxOpen()} })
}

// Retire does nothing: the files belong to requests.
func (o *openFiles) Retire() {}

func (o *openFiles) acquire() bool {
	if o.open.Add(1) > o.max {
		o.open.Add(-1)
		return false
	}
	return true
}

func (o *openFiles) release() { o.open.Add(-1) }

// Bounds of openFiles.max.
const (
	minOpenFiles = 16
	maxOpenFiles = 8192
)
