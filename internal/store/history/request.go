package history

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"headgate/internal/store"
)

// Request is what is to be saved.
type Request struct {
	// Documents are all documents of the configuration, and those to be removed.
	// Those that are not changed by the save are recorded and not touched.
	Documents []Document
	// When, Who, Why and Via are told in the revision.
	When          time.Time
	Who, Why, Via string
	// Changes are the objects that are not the same as in the revision before; see
	// Revision.
	Changes []string
	// Cutover is kept in the revision; nil for a change that moves no ports from or to
	// another proxy.
	Cutover *Cutover
	// Within is for how long the change waits to be confirmed. 0 means that it is
	// confirmed by being saved.
	Within time.Duration
	// Unconfirmed is a change that is not confirmed and does not wait.
	Unconfirmed bool
	// RollsBack is the number of a revision that is left by this change, 0 for none.
	// It is marked as rolled back, and its wait ends, in the same commit.
	RollsBack int
	// Records are put in streams, such as the audit, in the same commit.
	Records []store.Record
}

// Document is one document of a Save.
type Document struct {
	// Name is the file's: an absolute path.
	Name string
	// Was is the digest of what the change was made from. A document that is another
	// by now refuses the save with *Conflict. It is not looked at for a document that
	// is not written because Was is the digest of Data.
	Was Digest
	// Old is what Was is the digest of, if the caller has it.
	Old []byte
	// Data is the document, nil for one that is to be removed.
	Data []byte
	// Now is the digest of Data, if the caller knows it; otherwise it is worked out.
	Now Digest
	// Packed is what Pack has made of Data, nil if it was not asked.
	Packed *Packed
}

func (d *Document) now() Digest {
	if d.Now == Absent && d.Data != nil {
		d.Now = DigestOf(d.Data)
	}
	return d.Now
}

// Conflict is the error of a save if a document is not the one that the change is based on:
// it was edited. Nothing was saved.
type Conflict struct {
	Name string
	// Have is the digest of what is there.
	Have Digest
}

// Error tells the document.
func (c *Conflict) Error() string {
	if c.Have == Absent {
		return c.Name + " was removed meanwhile"
	}
	return c.Name + " was changed meanwhile"
}

// ReadOnly is the error of a save when a document cannot be written. Nothing was
// saved.
type ReadOnly struct {
	Name string
	Err  error
}

// Error tells the document and why.
func (r *ReadOnly) Error() string {
	err := r.Err
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == r.Name {
		err = at.Err // the name is told already
	}
	return fmt.Sprintf("%s cannot be written: %v", r.Name, err)
}

// Unwrap returns the system's error.
func (r *ReadOnly) Unwrap() error { return r.Err }
