package history

import (
	"errors"
	"fmt"
	"path/filepath"

	"headgate/internal/store"
)

// Place replaces, makes or removes one document without a save: it brings what is saved
// already to the files. Nil data removes the document. Was is the digest of what is there,
// Absent for nothing; if something else is there, that stays, and the error is a *Conflict. A
// crash leaves the document before or the new one, unless it can only be written in place.
func Place(name string, data []byte, was Digest) error {
	return place(name, data, was, func(string) {})
}

func place(name string, data []byte, was Digest, point func(string)) error {
	path, err := resolve(name)
	if err != nil {
		return &ReadOnly{Name: name, Err: err}
	}
	w := &write{Name: name, Path: path, Was: was, data: data}
	if data != nil {
		w.Now = DigestOf(data)
	}
	if w.Was == w.Now {
		return nil
	}
	w.Temp = filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%.16s-0", tempPrefix, store.NewID()))
	if err := w.choose(); err != nil {
		return &ReadOnly{Name: name, Err: err}
	}
	err = w.prepare(point)
	if err == nil {
		err = w.sync()
	}
	if err = errors.Join(err, w.close()); err == nil {
		var have Digest
		if have, err = w.place(point); errors.As(err, new(*Conflict)) {
			err = &Conflict{Name: name, Have: have}
		}
	}
	if w.Now == Absent && err != nil && w.placed {
		return err // what was removed is beside its place, and cannot go back
	}
	if rerr := removeTemp(w.Temp); err == nil && rerr != nil {
		err = rerr
	}
	if errors.As(err, new(*Conflict)) {
		return err
	}
	if err == nil {
		err = syncFolders([]*write{w})
	}
	if err != nil {
		return unwritten(name, err)
	}
	return nil
}
