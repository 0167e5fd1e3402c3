package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"headgate/internal/file"
	"headgate/internal/store"
)

// folder says which entries are files of their own, and where.
type folder struct {
	prefix string // of the key; what follows it is the file's name
	dir    string // in the state directory
	suffix string
}

// folders is what traffic needs, and what a person may want to read, copy or mend.
var folders = []folder{
	{store.PrefixRevision, "revisions", ".json"},
	{store.PrefixBlob, "blobs", ".gz"},
	{store.PrefixCertificate, "certificates", ".pem"},
	{store.PrefixCDN, "cdn", ".txt"},
	{"key/", "keys", ".key"},
}

// singles are the entries in files whose keys have no prefix.
var singles = map[string]string{
	store.KeyHead:    "head.json",
	store.KeyConfirm: "confirm.json",
}

// maxFileName is how long the name of a file gets, in bytes.
const maxFileName = 255

// fileOf returns where the file of an entry is in the state directory, "" for an
// entry that has none.
func fileOf(key string) (string, error) {
	if name, ok := singles[key]; ok {
		return name, nil
	}
	for _, f := range folders {
		if rest, ok := strings.CutPrefix(key, f.prefix); ok {
			name := escape(rest) + f.suffix
			if len(name) > maxFileName {
				return "", fmt.Errorf("the key %q is too long for the name of a file: %w", key, store.ErrTooLarge)
			}
			return filepath.Join(f.dir, name), nil
		}
	}
	return "", nil
}

// keyOf returns the key of a file in a folder; ok is false for other people's files.
func (f folder) keyOf(name string) (key string, ok bool) {
	rest, ok := strings.CutSuffix(name, f.suffix)
	if !ok || rest == "" {
		return "", false
	}
	raw, ok := unescape(rest)
	key = f.prefix + raw
	return key, ok && escape(raw) == rest && store.CheckKey(key) == nil
}

// plain are the bytes that stand for themselves in the names of files. Capitals do
// not, since some file systems hold them for the same.
const plain = "abcdefghijklmnopqrstuvwxyz0123456789-_."

// escape returns the name of a file for the rest of a key.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '/':
			b.WriteByte('~')
		case strings.IndexByte(plain, c) < 0 || c == '.' && i == 0:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescape(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '~' {
			b.WriteByte('/')
			continue
		}
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		c, err := hex.DecodeString(s[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.WriteByte(c[0])
		i += 2
	}
	return b.String(), true
}

// maxOnDisk bounds a file that is read: the largest value, sealed and in base64.
const maxOnDisk = store.MaxChange*3/2 + 1024

// readFile reads the file of an entry and what tells it from another.
func (s *Store) readFile(name string) ([]byte, fileRef, error) {
	path := filepath.Join(s.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileRef{}, err
	}
	data, err := file.Read(path, maxOnDisk, "an entry has less")
	if err != nil {
		return nil, fileRef{}, err
	}
	return data, fileRef{digest: sha256.Sum256(data), size: int64(len(data)), written: info.ModTime()}, nil
}

// step is a file to be put in its place, or to be removed, when state.db has decided.
type step struct {
	key    string
	name   string // in the state directory
	staged string // what is put there, "" to remove
	ref    fileRef
}

// stage writes the file of an entry beside its place. It is not synced: the files of a
// commit are when all of them are written, as the disk is then waited for once.
func (s *Store) stage(key, name string, data []byte, n int) (step, *os.File, error) {
	st := step{key: key, name: name, ref: fileRef{digest: sha256.Sum256(data), size: int64(len(data))}}
	path := filepath.Join(s.dir, stagedName, fmt.Sprintf("%d", n))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return st, nil, err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		os.Remove(path)
		return st, nil, err
	}
	s.point("staged")
	if info, err := f.Stat(); err == nil {
		st.ref.written = info.ModTime()
	}
	st.staged = filepath.Join(stagedName, filepath.Base(path))
	return st, f, nil
}

// place puts files in their places after their commit. What fails is told and done
// again later: the commit is durable.
func (s *Store) place(steps []step) (left []step) {
	dirs := map[string]bool{}
	for _, st := range steps {
		path := filepath.Join(s.dir, st.name)
		var err error
		if st.staged != "" {
			err = os.Rename(filepath.Join(s.dir, st.staged), path)
		} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			s.log.Error("file of the state is not in its place yet", "key", st.key, "file", path, "error", err)
			left = append(left, st)
			continue
		}
		s.point("placed")
		dirs[filepath.Dir(path)] = true
	}
	var all sync.WaitGroup
	for dir := range dirs { // at once, as syncStaged
		all.Go(func() {
			if err := file.SyncDir(dir); err != nil {
				s.log.Error("names in the state directory may not outlive a loss of power", "folder", dir, "error", err)
			}
		})
	}
	all.Wait()
	s.point("synced")
	return left
}

// onDisk lists the files that are entries, by key, with what the file system says.
func (s *Store) onDisk() map[string]fileRef {
	all := map[string]fileRef{}
	for key, name := range singles {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil && info.Mode().IsRegular() {
			all[key] = fileRef{size: info.Size(), written: info.ModTime()}
		}
	}
	for _, f := range folders {
		list, err := os.ReadDir(filepath.Join(s.dir, f.dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Error("folder of the state cannot be read", "error", err)
		}
		for _, d := range list {
			key, ok := f.keyOf(d.Name())
			if !ok {
				continue
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				all[key] = fileRef{size: info.Size(), written: info.ModTime()}
			}
		}
	}
	return all
}

// same reports whether a file is, by its metadata, the one that was written: an edit
// changes its time or size.
func (r fileRef) same(now fileRef) bool {
	return r.size == now.size && r.written.Equal(now.written.Truncate(time.Nanosecond))
}
