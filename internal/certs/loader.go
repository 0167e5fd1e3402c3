package certs

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"headgate/internal/file"
)

// Loader gives a certificate from where it is kept: files, a store, a certificate
// authority's order.
type Loader interface {
	// Key names the place: loaders with the same key give the same certificate.
	Key() string
	// Load returns the current certificate, or an error that describes why it cannot be
	// used.
	Load() (*tls.Certificate, error)
	// Follow calls changed whenever Load would return a different result, until stop is
	// closed. It returns then.
	Follow(stop <-chan struct{}, changed func())
}

// MaxFile is the largest certificate or key file that is read, in bytes.
const MaxFile = 1 << 20

// TooLarge describes a file that is too large.
const TooLarge = "more than a certificate can have"

// pollInterval is how often the files of a certificate are checked.
const pollInterval = 2 * time.Second

// Files loads a certificate and its key from two PEM files.
type Files struct {
	certFile, keyFile string
	used              stamp // of the files when they were loaded last
	failed            error // why they could not be used then, nil if they could
}

// NewFiles returns the loader of two PEM files, which may be one and the same.
func NewFiles(certFile, keyFile string) *Files { return &Files{certFile: certFile, keyFile: keyFile} }

// Key returns the names of the files.
func (f *Files) Key() string { return FilesKey(f.certFile, f.keyFile) }

// FilesKey returns the key of the loader of two files.
func FilesKey(certFile, keyFile string) string { return "files\x00" + certFile + "\x00" + keyFile }

// Load reads the files. The error names the file and the problem.
func (f *Files) Load() (cert *tls.Certificate, err error) {
	f.used = f.stamp()
	cert, err = Load(f.certFile, f.keyFile)
	f.failed = err
	return cert, err
}

// Follow looks at the files now and then. A change is taken up when it has been the
// same for two looks, so that a file is not read half-written. Files that cannot be used
// are tried at each look: that of an owner, of an access list or of the clock cannot be
// seen at them.
func (f *Files) Follow(stop <-chan struct{}, changed func()) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for last := f.used; ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := f.stamp()
		switch {
		case now != last:
		case now != f.used:
			changed()
			f.used = now // also when what calls Load does not
		case f.failed != nil:
			if _, err := Load(f.certFile, f.keyFile); err == nil || err.Error() != f.failed.Error() {
				f.failed = err
				changed()
			}
		}
		last = now
	}
}

// stamp identifies a version of the two files.
type stamp [2]struct {
	size    int64
	changed time.Time
	mode    fs.FileMode
}

func (f *Files) stamp() (s stamp) {
	for i, name := range []string{f.certFile, f.keyFile} {
		if info, err := os.Stat(name); err == nil {
			s[i].size, s[i].changed, s[i].mode = info.Size(), info.ModTime(), info.Mode()
		}
	}
	return s
}

// Load reads a certificate and its key from PEM files. The error names the file and the
// problem.
func Load(certFile, keyFile string) (*tls.Certificate, error) {
	certPEM, err := read(certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := read(keyFile)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, plain(err))
	}
	if cert.Leaf.IsCA && len(cert.Leaf.DNSNames)+len(cert.Leaf.IPAddresses) == 0 {
		return nil, fmt.Errorf("certificate %s: it is an authority's certificate, not a server's; the server's must come first in the file", certFile)
	}
	if now := time.Now(); now.After(cert.Leaf.NotAfter) {
		return nil, fmt.Errorf("certificate %s: expired on %s", certFile, cert.Leaf.NotAfter.Format(time.DateOnly))
	}
	return &cert, nil
}

// plain takes the package name off an error of crypto/tls.
func plain(err error) error {
	if text, ok := bytes.CutPrefix([]byte(err.Error()), []byte("tls: ")); ok {
		return errors.New(string(text))
	}
	return err
}

func read(name string) ([]byte, error) {
	return file.Read(name, MaxFile, TooLarge)
}
