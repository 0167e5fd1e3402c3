package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// found is an open file that is served. Its owner closes it.
type found struct {
	folder   *folder
	file     *os.File
	name     string // of the file without the coding, below the root
	size     int64
	modified time.Time
	coding   coding
}

// Close closes the file.
func (f *found) Close() { f.folder.close(f.file) }

// find opens the file that a name means. It returns an answer for what is not served, and
// neither of them if the response is a listing.
func (s *source) find(ex *exchange.Exchange, name string, slash bool) (*found, *exchange.Answer) {
	var f *found
	var err error
	if slash {
		f, err = s.findIndex(ex, name)
	} else {
		f, err = s.openRegular(name)
	}
	switch {
	case err == nil:
		return s.encoded(ex, f), nil
	case errors.Is(err, errFolder) && !slash:
		return nil, s.toFolder(ex)
	case errors.Is(err, errFolder):
		return nil, nil
	case !isMissing(err):
		return nil, answerTo(err, name)
	case !s.spa:
		return nil, exchange.Fail(exchange.NotFound, "files: "+describe(err, name))
	}
	if f, err = s.openRegular(s.index[0]); err != nil {
		return nil, answerTo(err, s.index[0])
	}
	return s.encoded(ex, f), nil
}

// findIndex opens the index file of a folder. The error is errFolder if the response is a
// listing, which has been made.
func (s *source) findIndex(ex *exchange.Exchange, name string) (*found, error) {
	var missing error
	for _, index := range s.index {
		full := index
		if name != "." {
			full = ex.Text.Join(name, "/", index)
		}
		f, err := s.openRegular(full)
		if err == nil || !isMissing(err) && !errors.Is(err, errFolder) {
			return f, err
		}
		missing = err
	}
	if errors.Is(missing, errFolder) {
		missing = errNotRegular
	}
	if !s.listing {
		return nil, missing
	}
	return nil, s.list(ex, name)
}

// openRegular opens a regular file. The error is errFolder for a folder.
func (s *source) openRegular(name string) (*found, error) {
	file, info, err := s.folder.file(name)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); !mode.IsRegular() {
		s.folder.close(file)
		if mode.IsDir() {
			return nil, errFolder
		}
		return nil, errNotRegular
	}
	return &found{folder: s.folder, file: file, name: name, size: info.Size(), modified: info.ModTime()}, nil
}

// encoded returns the compressed copy of a file that the client prefers, in place of the
// file, or the file. A copy that is older than the file is not of it.
func (s *source) encoded(ex *exchange.Exchange, f *found) *found {
	if len(s.precompressed) == 0 {
		return f
	}
	w := wishesOf(&ex.Request.Header)
	for {
		c := w.best(s.precompressed)
		if c == identity {
			return f
		}
		copied, err := s.openRegular(ex.Text.Join(f.name, c.extension()))
		if err == nil && !copied.modified.Before(f.modified) {
			f.Close()
			copied.name, copied.coding = f.name, c
			return copied
		}
		if err == nil {
			copied.Close()
		}
		w[c] = 0
	}
}

// toFolder redirects to the path of a folder, which ends with a slash. The path begins with
// one slash: names with empty segments were refused.
func (s *source) toFolder(ex *exchange.Exchange) *exchange.Answer {
	target := ex.Text.Join(ex.Request.Path, "/", ex.Request.Query)
	return &exchange.Answer{
		Reason: exchange.Redirected, Status: statusMoved,
		Fields: []header.Field{{ID: header.Location, Name: header.Location.String(), Value: target}},
	}
}

var (
	errFolder     = errors.New("it is a folder")
	errNotRegular = errors.New("it is not a regular file")
)

// isMissing reports whether an error says that there is no file of the name that may be
// served, and not that it cannot be read at the moment.
func isMissing(err error) bool {
	if errors.As(err, new(*rootError)) {
		return false
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, errNotRegular),
		errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EINVAL):
		return true
	}
	return escapes(err)
}

// escapes reports whether os.Root has refused a name because it leads out of the root, for
// which it has no error that can be compared.
func escapes(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Err != nil && e.Err.Error() == "path escapes from parent"
}

// answerTo returns the answer for a file that cannot be served.
func answerTo(err error, name string) *exchange.Answer {
	cause := "files: " + describe(err, name)
	switch {
	case isMissing(err), errors.Is(err, errFolder):
		return exchange.Fail(exchange.NotFound, cause)
	case errors.Is(err, errBusy), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return &exchange.Answer{Reason: exchange.Overloaded, RetryAfter: 1, Cause: cause}
	}
	return exchange.Fail(exchange.FileUnreadable, cause)
}

// describe returns an error with the name of its file.
func describe(err error, name string) string {
	if e := (*fs.PathError)(nil); errors.As(err, &e) && !errors.As(err, new(*rootError)) {
		err = e.Err
	} else if e != nil {
		return err.Error()
	}
	return name + ": " + err.Error()
}
