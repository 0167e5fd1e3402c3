package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"headgate/internal/store"
)

// partSize is how much of a compressed document one value holds.
const partSize = store.MaxChange - store.MaxKey

// maxDocument bounds a document that is read back, in bytes.
const maxDocument = 64 << 20

// partKey names a part of a document. All but the last are full.
func partKey(d Digest, i int) string { return fmt.Sprintf("%s%s/%d", store.PrefixBlob, d, i) }

// keep keeps a document under its digest unless it is kept already.
func (h *History) keep(ctx context.Context, d Digest, data []byte) error {
	if kept, err := h.isKept(ctx, d); err != nil || kept {
		return err
	}
	parts, err := pack(data)
	if err != nil {
		return err
	}
	return h.keepParts(ctx, d, parts)
}

// isKept reports whether a document is kept, whole: its last part is written last, and
// is the only one that is not full. Of one whose last part is full it says no.
func (h *History) isKept(ctx context.Context, d Digest) (bool, error) {
	list, err := h.options.Store.List(ctx, store.PrefixBlob+string(d)+"/", "", store.MaxPage)
	return slices.ContainsFunc(list, func(m store.Meta) bool { return m.Size < partSize }), err
}

// pack returns the parts of a document, compressed. Who makes a change waits for it, so
// that it is quick before it is small.
func pack(data []byte) ([][]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	return slices.Collect(slices.Chunk(b.Bytes(), partSize)), err
}

// Packed is a document that is made ready to be kept while others look at it.
type Packed struct {
	hashed chan struct{} // closed when there is a digest
	done   chan struct{} // closed when there are parts, or an error
	digest Digest
	parts  [][]byte
	err    error
}

// Pack makes a document ready to be kept. It returns at once; data must not be changed.
func Pack(data []byte) *Packed {
	p := &Packed{hashed: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.digest = DigestOf(data)
		close(p.hashed)
		p.parts, p.err = pack(data)
	}()
	return p
}

// Digest returns the digest of the document.
func (p *Packed) Digest() Digest {
	<-p.hashed
	return p.digest
}

// pack returns the parts of the document, as pack.
func (d *Document) pack() ([][]byte, error) {
	if d.Packed == nil {
		return pack(d.Data)
	}
	<-d.Packed.done
	return d.Packed.parts, d.Packed.err
}

// keepParts keeps the parts of a document, the last of them last.
func (h *History) keepParts(ctx context.Context, d Digest, parts [][]byte) error {
	for i, part := range parts {
		_, err := h.options.Store.Commit(ctx, store.Change{Put: []store.Entry{{Key: partKey(d, i), Value: part}}, Why: "content of a revision"})
		if err != nil {
			return fmt.Errorf("keep the content of a document: %w", err)
		}
	}
	return nil
}

// contents keeps documents, many of them in one commit: each commit waits for the disk.
type contents struct {
	history *History
	waiting []store.Entry
	size    int
}

// add keeps a document, with those after it or at once.
func (c *contents) add(ctx context.Context, d Digest, parts [][]byte) error {
	if len(parts) > 1 {
		return c.history.keepParts(ctx, d, parts)
	}
	size := len(partKey(d, 0)) + len(parts[0])
	if len(c.waiting) == store.MaxOperations || c.size+size > store.MaxChange {
		if err := c.commit(ctx); err != nil {
			return err
		}
	}
	c.waiting = append(c.waiting, store.Entry{Key: partKey(d, 0), Value: parts[0]})
	c.size += size
	return nil
}

// commit keeps the documents that wait.
func (c *contents) commit(ctx context.Context) error {
	if len(c.waiting) == 0 {
		return nil
	}
	_, err := c.history.options.Store.Commit(ctx, store.Change{Put: c.waiting, Why: "contents of a revision"})
	if err != nil {
		return fmt.Errorf("keep the contents of documents: %w", err)
	}
	c.waiting, c.size = nil, 0
	return nil
}

// content returns a document by its digest.
func (h *History) content(ctx context.Context, d Digest) ([]byte, error) {
	var b bytes.Buffer
	for i := 0; ; i++ {
		e, err := h.options.Store.Get(ctx, partKey(d, i))
		if i > 0 && errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the content of a document: %w", err)
		}
		b.Write(e.Value)
		if len(e.Value) < partSize {
			break
		}
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		return nil, fmt.Errorf("read the content of document %s: %w", d, err)
	}
	data, err := io.ReadAll(io.LimitReader(z, maxDocument))
	if err != nil {
		return nil, fmt.Errorf("read the content of document %s: %w", d, err)
	}
	if DigestOf(data) != d {
		return nil, fmt.Errorf("read the content of document %s: it is damaged", d)
	}
	return data, nil
}

// Documents returns the documents of a revision with their content, for a Save that
// goes back to it. What they have to be replaced for is not filled in.
func (h *History) Documents(ctx context.Context, number int) ([]Document, error) {
	r, err := h.Get(number)
	if err != nil {
		return nil, err
	}
	docs := make([]Document, len(r.Documents))
	for i, k := range r.Documents {
		data, err := h.content(ctx, k.Digest)
		if err != nil {
			return nil, fmt.Errorf("revision %d, %s: %w", number, k.Name, err)
		}
		docs[i] = Document{Name: k.Name, Data: data}
	}
	return docs, nil
}

// pruneLocked forgets the oldest revisions while there are too many, or while their
// documents take too much, and the documents that no revision has any more.
func (h *History) pruneLocked(ctx context.Context) error {
	for len(h.mu.revisions) > MaxRevisions {
		if ok, err := h.forgetOldestLocked(ctx); err != nil || !ok {
			return err
		}
	}
	for {
		total, err := h.sweepContentLocked(ctx)
		if err != nil || total <= h.options.MaxContent {
			return err
		}
		if ok, err := h.forgetOldestLocked(ctx); err != nil || !ok {
			return err
		}
	}
}

// forgetOldestLocked removes the oldest revision that is not needed. It returns false if
// there is none.
func (h *History) forgetOldestLocked(ctx context.Context) (bool, error) {
	needed := map[int]bool{h.mu.head.Revision: true}
	confirmed := 0
	for _, r := range slices.Backward(h.mu.revisions) {
		if r.State == Confirmed && confirmed < AlwaysKept {
			needed[r.Number] = true
			confirmed++
		}
	}
	if p, ok, err := h.Pending(ctx); err != nil {
		return false, err
	} else if ok {
		needed[p.Before], needed[p.Revision] = true, true
	}
	i := slices.IndexFunc(h.mu.revisions, func(r Revision) bool { return !needed[r.Number] })
	if i < 0 {
		return false, nil
	}
	_, err := h.options.Store.Commit(ctx, store.Change{Delete: []string{keyOf(h.mu.revisions[i].Number)}, Why: "too many revisions"})
	if err == nil {
		h.mu.revisions = slices.Delete(h.mu.revisions, i, i+1)
	}
	return err == nil, err
}

// keptUnused is how long content is kept that no revision has, where several machines save.
const keptUnused = 10 * time.Minute

// sweepContentLocked removes documents that no revision has, and returns what the
// others take.
func (h *History) sweepContentLocked(ctx context.Context) (total int64, err error) {
	used := map[Digest]bool{}
	for _, r := range h.mu.revisions {
		for _, k := range r.Documents {
			used[k.Digest] = true
		}
	}
	var unused []string
	young := time.Time{} // content that was kept after it is left
	if h.options.Shared {
		now, err := h.options.Store.Now(ctx)
		if err != nil {
			return 0, err
		}
		young = now.Add(-keptUnused)
	}
	for after := ""; ; {
		list, err := h.options.Store.List(ctx, store.PrefixBlob, after, store.MaxPage)
		if err != nil {
			return 0, err
		}
		for _, m := range list {
			digest, _, _ := strings.Cut(strings.TrimPrefix(m.Key, store.PrefixBlob), "/")
			switch {
			case used[Digest(digest)]:
				total += int64(m.Size)
			case !young.IsZero() && m.Modified.After(young):
			default:
				unused = append(unused, m.Key)
			}
			after = m.Key
		}
		if len(list) < store.MaxPage {
			break
		}
	}
	for keys := range slices.Chunk(unused, store.MaxOperations) {
		if _, err := h.options.Store.Commit(ctx, store.Change{Delete: keys, Why: "no revision has it"}); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// takeOverLocked takes up the revisions of state version 1: one file each, with eight
// digits and .yaml, which is removed then. What fails is told and tried again at the
// next start.
func (h *History) takeOverLocked(ctx context.Context) {
	names, err := filepath.Glob(filepath.Join(h.options.Dir, "revisions", "[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9].yaml"))
	if err != nil {
		return
	}
	for _, name := range names {
		number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ".yaml"))
		if err != nil || number == 0 {
			continue
		}
		if _, known := h.findLocked(number); !known {
			err = h.importLocked(ctx, name, number)
		}
		if err == nil {
			err = os.Remove(name)
		}
		if err != nil {
			h.log.Error("revision of an earlier version is not taken over", "file", name, "error", err)
			return
		}
	}
	if err := h.pruneLocked(ctx); err != nil && len(names) > 0 {
		h.log.Error("old revisions are not removed", "error", err)
	}
}

func (h *History) importLocked(ctx context.Context, name string, number int) error {
	data, info, err := readDocument(name)
	if err != nil {
		return err
	}
	d := DigestOf(data)
	if err := h.keep(ctx, d, data); err != nil {
		return err
	}
	r := Revision{Number: number, When: info.ModTime().UTC(), Via: "file", State: Confirmed, Documents: []Kept{{Name: h.options.Config, Digest: d, Size: len(data)}}}
	c := store.Change{Why: "taken over from state version 1"}
	if err := h.addRevision(&c, r); err != nil {
		return err
	}
	next := h.mu.head
	if number > next.Revision {
		next = head{Revision: number}
		if err := addJSON(&c, store.KeyHead, next); err != nil {
			return err
		}
	}
	at, err := h.options.Store.Commit(ctx, c)
	if err != nil {
		return err
	}
	if next != h.mu.head {
		h.mu.head, h.mu.headAt = next, at
	}
	h.replaceLocked(r)
	return nil
}
