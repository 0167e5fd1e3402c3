package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/local"
)

// Archive is a backup that is being restored. Its documents are applied with an Edit: Begin
// stores before it what they may need; after it, Finish restores the rest, or Undo removes
// what Begin has stored. Close it.
type Archive struct {
	control *Control
	from    *local.Archive
	docs    []history.Document
	added   []string // keys that Begin has put
}

// ErrNoDocuments says that an archive holds no configuration.
var ErrNoDocuments = errors.New("the archive holds no configuration")

// OpenArchive unpacks an archive and reads the documents that were active when it was made.
// Nothing is changed.
func (c *Control) OpenArchive(ctx context.Context, r io.Reader, passphrase string) (*Archive, error) {
	from, err := c.files.OpenArchive(ctx, r, passphrase)
	if err != nil {
		return nil, err
	}
	a := &Archive{control: c, from: from}
	if a.docs, err = headOf(ctx, from); err != nil {
		from.Close()
		return nil, fmt.Errorf("restore: %w; nothing was changed", err)
	}
	return a, nil
}

// headOf returns the documents of the newest revision in a store.
func headOf(ctx context.Context, from *local.Archive) ([]history.Document, error) {
	h, err := history.Open(ctx, history.Options{Store: from, Dir: from.Dir()})
	if err != nil {
		return nil, err
	}
	r, ok := h.Head()
	if !ok || len(r.Documents) == 0 {
		return nil, ErrNoDocuments
	}
	return h.Documents(ctx, r.Number)
}

// Close removes what was unpacked.
func (a *Archive) Close() error { return a.from.Close() }

// Documents returns the documents of the archive under the names that they have here:
// the same path or the same file name; where there is one document here and one in the
// archive, it is that. In a folder, documents that are not in the archive are removed.
func (a *Archive) Documents(now config.Documents) (config.Documents, error) {
	out := config.Documents{Dir: now.Dir}
	one := len(now.List) == 1 && len(a.docs) == 1
	for _, d := range a.docs {
		name := ""
		for _, have := range now.List {
			if full, err := filepath.Abs(have.Name); one || err == nil && full == d.Name || filepath.Base(have.Name) == filepath.Base(d.Name) {
				name = have.Name
				break
			}
		}
		switch {
		case name != "":
		case a.control.Folder(now) != "":
			name = filepath.Join(now.Dir, filepath.Base(d.Name))
		default:
			return now, fmt.Errorf("the archive has the documents %s, and this headgate serves one file: start it with a folder as --config, and restore again", a.names())
		}
		if slices.ContainsFunc(out.List, func(o config.Document) bool { return o.Name == name }) {
			return now, fmt.Errorf("two documents of the archive have the name %s", filepath.Base(name))
		}
		out.List = append(out.List, config.Document{Name: name, Data: d.Data})
	}
	return out, nil
}

func (a *Archive) names() string {
	var all []string
	for _, d := range a.docs {
		all = append(all, filepath.Base(d.Name))
	}
	return strings.Join(all, ", ")
}

// What Begin stores if it is absent. An existing certificate is newer, or was uploaded
// here.
var restoredIfAbsent = []string{store.PrefixCertificate, store.PrefixAccount, store.KeySticky, store.PrefixECH}

// RestoreCertificates puts certificates, and the accounts that they are ordered with, that are not
// here. A certificate comes with the record of its order, without which it would be ordered again.
// The group of a pair comes, too, so that "headgate node init" makes this machine a member of it.
func (a *Archive) RestoreCertificates(ctx context.Context) error {
	var put []store.Entry
	for _, prefix := range restoredIfAbsent {
		entries, _, err := a.from.Snapshot(ctx, prefix)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if absent, err := a.isAbsent(ctx, e.Key); err != nil {
				return err
			} else if absent {
				put = append(put, e)
			}
		}
	}
	orders, err := a.orders(ctx, put)
	if err != nil {
		return err
	}
	put = append(orders, put...) // who finds the certificate finds its order
	group, err := a.group(ctx)
	if err != nil {
		return err
	}
	put = append(put, group...)
	for _, e := range put {
		a.added = append(a.added, e.Key)
	}
	if err := a.commit(ctx, put, nil); err != nil {
		return errors.Join(err, a.Undo(context.WithoutCancel(ctx)))
	}
	return nil
}

// group returns the archived group of a pair, with its authority and its members, if this machine
// shares nothing and has none.
func (a *Archive) group(ctx context.Context) (put []store.Entry, err error) {
	if a.control.shared {
		return nil, nil
	}
	if absent, err := a.isAbsent(ctx, store.KeyGroupAuthority); err != nil || !absent {
		return nil, err
	}
	for _, prefix := range []string{store.KeyGroupAuthority, store.KeyEpoch, store.PrefixGroupMember} {
		entries, _, err := a.from.Snapshot(ctx, prefix)
		if err != nil {
			return nil, err
		}
		put = append(put, entries...)
	}
	return put, nil
}

// isAbsent reports whether this machine has no entry with a key.
func (a *Archive) isAbsent(ctx context.Context, key string) (bool, error) {
	_, err := a.control.state.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// orders returns the archived records of the orders of certificates, as far as this machine has
// none.
func (a *Archive) orders(ctx context.Context, certificates []store.Entry) (put []store.Entry, err error) {
	for _, e := range certificates {
		name, ok := strings.CutPrefix(e.Key, store.PrefixCertificate)
		if !ok {
			continue
		}
		order, err := a.from.Get(ctx, store.PrefixOrder+name)
		if errors.Is(err, store.ErrNotFound) {
			continue // uploaded
		}
		if err != nil {
			return nil, err
		}
		if absent, err := a.isAbsent(ctx, order.Key); err != nil {
			return nil, err
		} else if absent {
			put = append(put, order)
		}
	}
	return put, nil
}

// Undo removes what Begin has stored.
func (a *Archive) Undo(ctx context.Context) error {
	gone := a.added
	a.added = nil
	return a.commit(ctx, nil, gone)
}

// Finish replaces users, people and tokens by those of the archive, and ends their sessions.
// An archive without users keeps the existing users and API tokens, since otherwise anyone
// could become the first user. Waits is the name of the revision, if it waits to be
// confirmed: if it is reverted, what was replaced is, too.
func (a *Archive) Finish(ctx context.Context, waits string) error {
	prefixes := restoredWhole
	if users, err := a.from.List(ctx, store.PrefixUser, "", 1); err != nil {
		return err
	} else if len(users) == 0 {
		prefixes = []string{store.PrefixPerson, store.PrefixGateToken}
	}
	var put []store.Entry
	for _, prefix := range prefixes {
		archived, _, err := a.from.Snapshot(ctx, prefix)
		if err != nil {
			return err
		}
		put = append(put, archived...)
	}
	if waits == "" {
		return a.replaceWhole(ctx, prefixes, put)
	}
	defer a.control.finishRestore() // it may have been reverted
	a.control.restoring.Lock()
	defer a.control.restoring.Unlock()
	revision, err := strconv.Atoi(waits)
	if err == nil {
		err = a.control.keepBefore(ctx, revision)
	}
	if err != nil {
		return err
	}
	return a.replaceWhole(ctx, prefixes, put)
}

// replaceWhole replaces what is under prefixes, and ends the sessions of those who are
// replaced.
func (a *Archive) replaceWhole(ctx context.Context, prefixes []string, put []store.Entry) error {
	var gone []string
	for _, prefix := range prefixes {
		have, _, err := a.control.state.Snapshot(ctx, prefix)
		if err != nil {
			return err
		}
		for _, e := range have {
			if !slices.ContainsFunc(put, func(w store.Entry) bool { return w.Key == e.Key }) {
				gone = append(gone, e.Key)
			}
		}
		for _, sessions := range sessionsOf[prefix] {
			all, _, err := a.control.state.Snapshot(ctx, sessions)
			if err != nil {
				return err
			}
			for _, e := range all {
				gone = append(gone, e.Key)
			}
		}
	}
	return a.commit(ctx, put, gone)
}

// inCommit is how many entries are put or deleted in one commit, and how many bytes.
const (
	inCommit      = store.MaxOperations
	bytesInCommit = store.MaxChange / 2
)

// commit puts entries and deletes keys, in as many commits as it takes.
func (a *Archive) commit(ctx context.Context, put []store.Entry, gone []string) error {
	now, err := a.control.state.Now(ctx)
	if err != nil {
		return err
	}
	for len(put)+len(gone) > 0 {
		c := store.Change{Why: "restore"}
		size := 0
		for len(put) > 0 && len(c.Put) < inCommit && (size == 0 || size+len(put[0].Value) <= bytesInCommit) {
			c.Put = append(c.Put, store.Entry{Key: put[0].Key, Value: put[0].Value, TTL: store.TTL(now, put[0].Expires)})
			size += len(put[0].Value)
			put = put[1:]
		}
		if len(put) == 0 {
			n := min(len(gone), inCommit-len(c.Put))
			c.Delete, gone = gone[:n], gone[n:]
		}
		if _, err := a.control.state.Commit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
