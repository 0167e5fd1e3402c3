package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"headgate/internal/store"
)

func benchOpen(b *testing.B, dir string) *Store {
	b.Helper()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func BenchmarkCommit(b *testing.B) {
	for _, key := range []string{"user/a", "certificate/a"} {
		b.Run(key, func(b *testing.B) {
			s := benchOpen(b, b.TempDir())
			value := bytes.Repeat([]byte("x"), 4<<10)
			for b.Loop() {
				c := store.Change{Put: []store.Entry{{Key: key, Value: value}}, Append: []store.Record{{Stream: "audit", Data: value[:200]}}}
				if _, err := s.Commit(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// withCertificates returns a directory with ten thousand certificates.
func withCertificates(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	s := benchOpen(b, dir)
	s.Close()
	value := bytes.Repeat([]byte("x"), 5<<10)
	for i := range 10_000 {
		if err := os.WriteFile(filepath.Join(dir, "certificates", fmt.Sprintf("%05d.example.com.pem", i)), value, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// BenchmarkTenThousandCertificates opens a state with that many and lists their names.
func BenchmarkTenThousandCertificates(b *testing.B) {
	dir := withCertificates(b)
	benchOpen(b, dir).Close() // takes them up
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s, err := Open(Options{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			s.Close()
		}
	})
	b.Run("list", func(b *testing.B) {
		s := benchOpen(b, dir)
		for b.Loop() {
			names := 0
			for after := ""; ; {
				list, err := s.List(b.Context(), store.PrefixCertificate, after, store.MaxPage)
				if err != nil {
					b.Fatal(err)
				}
				if names += len(list); len(list) < store.MaxPage {
					break
				}
				after = list[len(list)-1].Key
			}
			if names != 10_000 {
				b.Fatalf("%d names", names)
			}
		}
	})
}

func BenchmarkPage(b *testing.B) {
	s := benchOpen(b, b.TempDir())
	data := bytes.Repeat([]byte("r"), 300)
	for range 500 {
		var records [][]byte
		for range store.MaxOperations {
			records = append(records, data)
		}
		if _, err := s.Append(b.Context(), "audit", records); err != nil {
			b.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(s.Dir(), dbName))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if page, err := s.Page(b.Context(), "audit", 0, 50); err != nil || len(page) != 50 {
			b.Fatal(len(page), err)
		}
	}
	b.ReportMetric(float64(info.Size())/(500*store.MaxOperations), "file-bytes/record")
}
