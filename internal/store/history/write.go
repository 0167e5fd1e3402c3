package history

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"headgate/internal/file"
)

// tempPrefix is the prefix of files that a save creates next to documents. They have no
// .yaml suffix, so that they are not read as documents.
const tempPrefix = ".headgate-save-"

// write is one document that is being replaced, made or removed. Its fields that have
// names in JSON are the intent's.
type write struct {
	Name    string `json:"name"`
	Path    string `json:"path"` // with links followed
	Temp    string `json:"temp"` // beside it: what goes in, then what came out
	Was     Digest `json:"was"`
	Now     Digest `json:"now"`
	InPlace bool   `json:"in_place,omitempty"` // it cannot be renamed over

	data   []byte
	old    []byte   // what Was is the digest of, if that was read
	placed bool     // it stands there, or what stood there is out of its place, also after a failure
	file   *os.File // at Temp, while it is written
}

// resolve follows the links of a document's name, so that the file is replaced and
// not the link. One that does not exist stands where it is named.
func resolve(name string) (string, error) {
	path, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		dir, derr := filepath.EvalSymlinks(filepath.Dir(name))
		if derr != nil {
			return "", derr
		}
		if target, lerr := os.Readlink(name); lerr == nil {
			return "", &fs.PathError{Op: "open", Path: name, Err: errors.New("it is a link to " + target + ", which does not exist")}
		}
		return filepath.Join(dir, filepath.Base(name)), nil
	}
	return path, err
}

// readDocument reads a file, bounded.
func readDocument(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	data, err := file.Read(path, maxDocument, "a document has less")
	return data, info, err
}

// current returns what stands at a path and its digest, Absent for nothing.
func current(path string) ([]byte, Digest, error) {
	data, _, err := readDocument(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Absent, nil
	}
	if err != nil {
		return nil, Absent, err
	}
	return data, DigestOf(data), nil
}

// digestAt returns the digest of what stands at a path, Absent for nothing. Known is what
// is likely to stand there, with its digest: to compare is quicker than to work it out.
func digestAt(path string, known []byte, of Digest) (Digest, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Absent, nil
	}
	if err != nil {
		return Absent, err
	}
	defer f.Close()
	return digestOfFile(f, known, of)
}

// digestOfFile is digestAt for a file that is open.
func digestOfFile(f *os.File, known []byte, of Digest) (Digest, error) {
	if known != nil {
		if same, err := file.Holds(f, known); same || err != nil {
			return of, err
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, maxDocument)); err != nil {
		return Absent, err
	}
	return Digest(hex.EncodeToString(sum.Sum(nil))), nil
}

// Writable returns why a document cannot be saved, nil if it can, as far as that can
// be told without doing it.
func Writable(name string) error {
	path, err := resolve(name)
	if err == nil {
		err = (&write{Path: path}).choose()
	}
	if err != nil {
		return &ReadOnly{Name: name, Err: err}
	}
	return nil
}

// choose decides whether a document is replaced by renaming or written in place: if its
// directory is read-only, if it has other links, or if it belongs to another user to whom
// the new file cannot be given. It returns an error if neither works.
func (w *write) choose() error {
	info, err := os.Stat(w.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return mayWriteFolder(filepath.Dir(w.Path))
	}
	if err != nil {
		return err
	}
	if err := mayWrite(w.Path); err != nil {
		return err
	}
	folder := mayWriteFolder(filepath.Dir(w.Path))
	w.InPlace = w.data != nil && (folder != nil || !replaceable(w.Path, info))
	if w.data == nil && w.Now == Absent && w.Was != Absent {
		return folder // it is removed
	}
	return nil
}

// prepare writes the new document beside the old one, with its mode and owner. It is not on
// the disk before sync, and has to be closed.
func (w *write) prepare(point func(string)) error {
	if w.InPlace || w.Now == Absent {
		return nil
	}
	mode := fs.FileMode(0o600)
	info, err := os.Stat(w.Path)
	if err == nil {
		mode = info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(w.Temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w.file = f
	half := len(w.data) / 2
	_, err = f.Write(w.data[:half])
	point("half of a document")
	if err == nil {
		_, err = f.Write(w.data[half:])
	}
	if err == nil && info != nil {
		err = giveOwner(f, info)
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	point("document prepared")
	return err
}

// sync waits until what was prepared is on the disk.
func (w *write) sync() error {
	if w.file == nil {
		return nil
	}
	return w.file.Sync()
}

// close ends what prepare has begun.
func (w *write) close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// place makes the new document the one that stands at its path. If another one than
// the old stands there, that is put back and the error is *Conflict, with its digest.
func (w *write) place(point func(string)) (Digest, error) {
	var have Digest
	var err error
	switch {
	case w.InPlace:
		have, err = w.overwrite(point)
	case w.Was == Absent:
		have, err = w.create(point)
	case w.Now == Absent:
		have, err = w.remove(point)
	default:
		have, err = w.swap(point)
	}
	return have, err
}

// create puts a new document where none may be. Its temporary name is left for clean if it
// cannot be removed.
func (w *write) create(point func(string)) (Digest, error) {
	err := os.Link(w.Temp, w.Path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// No hard links here: the look and the renaming are two steps.
		if _, have, cerr := current(w.Path); cerr != nil || have != Absent {
			return have, errors.Join(cerr, &Conflict{Name: w.Name, Have: have})
		}
		err = os.Rename(w.Temp, w.Path)
		w.placed = err == nil
		return Absent, err
	}
	if err != nil {
		_, have, cerr := current(w.Path)
		return have, errors.Join(cerr, &Conflict{Name: w.Name, Have: have})
	}
	w.placed = true
	point("document linked")
	_ = os.Remove(w.Temp)
	return Absent, nil
}

// remove takes a document away, and puts it back if it was another one.
func (w *write) remove(point func(string)) (Digest, error) {
	if err := os.Rename(w.Path, w.Temp); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Absent, &Conflict{Name: w.Name}
		}
		return Absent, err
	}
	w.placed = true
	point("document taken away")
	_, have, err := current(w.Temp)
	if err != nil || have == w.Was {
		return have, err
	}
	if err := os.Link(w.Temp, w.Path); err != nil {
		return have, err // what stands there now is newer; the other is kept by clean
	}
	w.placed = false
	return have, errors.Join(os.Remove(w.Temp), &Conflict{Name: w.Name, Have: have})
}

// swap exchanges the new document with what stands there, and back if that is not the
// old one: an edit by hand is never lost.
func (w *write) swap(point func(string)) (Digest, error) {
	point("before exchange")
	if err := exchange(w.Temp, w.Path); err != nil {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Absent, &Conflict{Name: w.Name}
		case !isUnsupported(err):
			return Absent, err
		}
		// No exchange here: between the look and the renaming an edit can be lost.
		if _, have, err := current(w.Path); err != nil || have != w.Was {
			return have, errors.Join(err, &Conflict{Name: w.Name, Have: have})
		}
		err := os.Rename(w.Temp, w.Path)
		w.placed = err == nil
		return w.Was, err
	}
	w.placed = true
	point("exchanged")
	have, err := digestAt(w.Temp, w.old, w.Was)
	if err == nil && have == w.Was {
		return have, nil
	}
	back := exchange(w.Temp, w.Path)
	w.placed = back != nil
	return have, errors.Join(err, back, &Conflict{Name: w.Name, Have: have})
}

// overwrite writes the new document over the old one.
func (w *write) overwrite(point func(string)) (Digest, error) {
	f, err := os.OpenFile(w.Path, os.O_RDWR, 0)
	if err != nil {
		return Absent, err
	}
	have, err := digestOfFile(f, w.old, w.Was)
	if err == nil && have != w.Was {
		f.Close()
		return have, &Conflict{Name: w.Name, Have: have}
	}
	half := len(w.data) / 2
	if err == nil {
		_, err = f.WriteAt(w.data[:half], 0)
	}
	point("half of a document in place")
	if err == nil {
		_, err = f.WriteAt(w.data[half:], int64(half))
	}
	point("document in place, not cut")
	if err == nil {
		err = f.Truncate(int64(len(w.data)))
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return have, err
}

// undo puts back what stood there before, if the save has changed that.
func (w *write) undo(old []byte) error {
	switch {
	case w.InPlace:
		return w.undoInPlace(old)
	case !w.placed:
		return nil
	case w.Was == Absent:
		return (&write{Name: w.Name, Path: w.Path, Temp: w.Temp, Was: w.Now}).takeBack()
	case w.Now == Absent:
		if err := os.Link(w.Temp, w.Path); err != nil {
			return ignoreConflict(err)
		}
		return os.Remove(w.Temp)
	}
	_, have, err := current(w.Path)
	if err != nil || have != w.Now {
		return err // it was edited since: keep that
	}
	if err := exchange(w.Temp, w.Path); err == nil || !isUnsupported(err) {
		return err
	}
	return file.Replace(w.Path, old)
}

// takeBack removes a document that a failed save has made.
func (w *write) takeBack() error {
	// Two names of one file cannot be renamed to each other: both would stay.
	if err := removeTemp(w.Temp); err != nil {
		return err
	}
	_, err := w.remove(func(string) {})
	var conflict *Conflict
	if errors.As(err, &conflict) {
		return nil
	}
	return err
}

func ignoreConflict(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// undoInPlace writes the old document back over ours, or over a part of it.
func (w *write) undoInPlace(old []byte) error {
	data, have, err := current(w.Path)
	if err != nil || have == w.Was {
		return err
	}
	if have != w.Now && !torn(data, old, w.data) {
		return nil // it was edited since: keep that
	}
	back := &write{Name: w.Name, Path: w.Path, Was: have, Now: w.Was, InPlace: true, data: old}
	_, err = back.overwrite(func(string) {})
	return err
}

func removeTemp(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolders makes the names in the folders of documents durable.
func syncFolders(writes []*write) error {
	done := map[string]bool{}
	for _, w := range writes {
		if dir := filepath.Dir(w.Path); !w.InPlace && !done[dir] {
			done[dir] = true
			if err := file.SyncDir(dir); err != nil {
				return unwritten(w.Name, err)
			}
		}
	}
	return nil
}
