package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"headgate/internal/testhouse"
)

// aDatabase returns the bytes of a state.db with pages of each kind.
func aDatabase(t testing.TB) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), dbName)
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{PageSize: 1024, NoSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	value := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n*37%700) }
	for round := range 3 {
		err := db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{bucketMeta, bucketEntries, bucketStreams} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				for n := range 60 {
					if name == bucketStreams && n < 3 {
						inner, err := b.CreateBucketIfNotExists([]byte{'s', byte(n)})
						if err != nil {
							return err
						}
						b := inner
						for k := range 1 + n*20 {
							err = errors.Join(err, b.Put([]byte{1, byte(k)}, value(k)))
						}
						if err != nil {
							return err
						}
						continue
					}
					key := []byte{2, byte(n), byte(round)}
					if name == bucketEntries {
						err = errors.Join(err, b.Put(key, value(n+round)), b.Delete([]byte{2, byte(n), byte(round - 1), 0}))
					}
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reseal makes the checksums of the meta pages right, so that what was changed in them is
// looked at.
func reseal(data []byte) {
	const size = 1024
	for at := pageHeader; at+metaBytes <= len(data) && at < 2*size; at += size {
		h := fnv.New64a()
		h.Write(data[at:][:56])
		binary.NativeEndian.PutUint64(data[at+56:], h.Sum64())
	}
}

// useWholly reads and writes a database that was found good. A guard that caught a panic or
// a fault returns it.
func useWholly(t *testing.T, name string) error {
	t.Helper()
	return guard(func() error {
		db, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return err
		}
		defer db.Close()
		var walk func(b *bbolt.Bucket) error
		walk = func(b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				if v == nil {
					if inner := b.Bucket(k); inner != nil {
						return walk(inner)
					}
				}
				bytes.Count(v, k)
				return nil
			})
		}
		if err := db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return walk(b) })
		}); err != nil {
			return err
		}
		return db.Update(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
				c := b.Cursor()
				k, v := c.First()
				if k == nil || v == nil {
					return nil
				}
				if err := c.Delete(); err != nil {
					return err
				}
				return b.Put([]byte("new"), make([]byte, 3000))
			})
		})
	})
}

// holds checks a database that may be hostile: it is refused, or it can be used.
func holds(t *testing.T, data []byte) {
	t.Helper()
	name := filepath.Join(t.TempDir(), dbName)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	err := checkPages(name)
	if d := (*damaged)(nil); err != nil && !errors.As(err, &d) {
		t.Errorf("a database in memory could not be read: %v", err)
	}
	if err != nil {
		return
	}
	if err := useWholly(t, name); err != nil {
		t.Errorf("found good, and then: %v", err)
	}
}

func TestAGoodDatabaseIsGood(t *testing.T) {
	data := aDatabase(t)
	name := filepath.Join(t.TempDir(), dbName)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(checkPages(name), useWholly(t, name), checkPages(name)); err != nil {
		t.Error(err)
	}
}

// TestHostileDatabases changes some of the numbers of a good database: page numbers, counts,
// lengths. It is refused without a crash, or it can be read and written wholly.
func TestHostileDatabases(t *testing.T) {
	good := aDatabase(t)
	testhouse.Lives(t, 1, 40, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 34))
		data := bytes.Clone(good)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(data)/1024) * 1024
			switch r.IntN(4) {
			case 0: // the header of a page, or a number of a meta page
				at += r.IntN(10) * 8
			case 1: // an element
				at += pageHeader + r.IntN(16)*4
			case 2: // a page becomes another one
				copy(data[at:at+1024], data[r.IntN(len(data)/1024)*1024:])
				continue
			default:
				at += r.IntN(1016)
			}
			if r.IntN(2) == 0 {
				data[at] = byte(r.IntN(40))
			} else {
				binary.NativeEndian.PutUint32(data[at:], []uint32{0, 1, 3, 0xffff, 0x7fffffff, 0xffffffff, uint32(r.IntN(80))}[r.IntN(7)])
			}
		}
		if r.IntN(8) == 0 {
			data = data[:r.IntN(len(data))]
		}
		reseal(data)
		holds(t, data)
	})
}

func FuzzDatabase(f *testing.F) {
	good := aDatabase(f)
	f.Add(uint32(4096), []byte{4, 0, 0, 0}, uint32(2048), []byte{1})
	f.Add(uint32(16+32), []byte{0xff, 0xff}, uint32(0), []byte{})
	f.Fuzz(func(t *testing.T, at uint32, with []byte, again uint32, more []byte) {
		data := bytes.Clone(good)
		copy(data[int(at)%len(data):], with)
		copy(data[int(again)%len(data):], more)
		reseal(data)
		holds(t, data)
	})
}
